// SPDX-License-Identifier: MIT
// view.mjs - times of the canvases on a synthetic profile, in a browser
//
// draw_page.tsx is the time line or the flame graph alone.  A frame's script is
// its event handlers and its callbacks; 'all' has the browser's own work too, as
// the drawing of texts.  Both are CPU time, so other load does not count.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const viewer = new URL("../../viewer/", import.meta.url);
const require = createRequire(new URL("package.json", viewer));
const { build } = require("esbuild");
const { chromium } = require("playwright-core");

const FRAMES = 240;

/* Runs in the page: @n frames with one wheel event each. */
function turn({ n, dx, dy, shift }) {
	const canvas = document.querySelector("canvas");
	const box = canvas.getBoundingClientRect();

	return new Promise(resolve => {
		const step = () => {
			performance.mark("step");
			if (n-- === 0)
				return resolve();
			canvas.dispatchEvent(new WheelEvent("wheel", {
				deltaX: dx, deltaY: dy, shiftKey: shift,
				clientX: box.left + box.width * 0.6,
				clientY: box.top + 150, bubbles: true,
				cancelable: true }));
			/* after the picture's own request */
			requestAnimationFrame(() => requestAnimationFrame(step));
		};

		requestAnimationFrame(step);
	});
}

/* Runs in the page: @n changes of the time range, each with its picture. */
async function changeRanges(n) {
	const frame = () => new Promise(requestAnimationFrame);

	for (let i = 0; i < n; i++) {
		await frame();
		performance.mark("step");
		window.changeRange(i);
		await frame();
		await frame();
	}
	await frame();
	performance.mark("step");
}

/*
 * The CPU time of the page's main thread in scripts, between two marks "step",
 * in ms: other load on the machine does not count.
 */
async function scriptTimes(browser, page, work) {
	await browser.startTracing(page, { categories: ["devtools.timeline",
		"blink.user_timing"] });
	await work();
	const { traceEvents } = JSON.parse(await browser.stopTracing());
	const marks = traceEvents.filter(e => e.name === "step")
		.map(e => e.ts).sort((a, b) => a - b);
	const sums = marks.slice(1).map(() => 0);

	for (const e of traceEvents) {
		if (e.name !== "FireAnimationFrame" && e.name !== "RunMicrotasks" &&
		    e.name !== "TimerFire")
			continue;
		/* the callback that has a mark belongs to it */
		const at = marks.findLastIndex(ts => ts < e.ts + e.dur);

		if (at >= 0 && at < sums.length && e.tdur)
			sums[at] += e.tdur / 1000;
	}
	return sums;
}

const sorted = values => [...values].sort((a, b) => a - b);
const quantile = (values, q) => sorted(values)[Math.min(values.length - 1,
	Math.floor(q * values.length))];
const ms = value => value.toFixed(1).padStart(8);

function row(label, ...values) {
	console.log(label.padEnd(46) + values.map(v =>
		typeof v === "number" ? ms(v) : String(v).padStart(8)).join(""));
}

async function taskMs(session) {
	const { metrics } = await session.send("Performance.getMetrics");

	return 1000 * metrics.find(m => m.name === "TaskDuration").value;
}

async function move(browser, page, session, label, wheel) {
	const before = await taskMs(session);
	const times = await scriptTimes(browser, page, () => page.evaluate(turn,
		{ n: FRAMES, dx: 0, dy: 0, shift: false, ...wheel }));
	const all = (await taskMs(session) - before) / FRAMES;

	row(label, quantile(times, 0.5), quantile(times, 0.99),
	    Math.max(...times), all);
}

/* From a profile in memory to the first picture. */
async function firstPicture(browser, page, session, label) {
	const before = await taskMs(session);

	await browser.startTracing(page, { categories: ["devtools.timeline"] });
	await page.evaluate(() => {
		window.began = performance.now();
		window.start();
	});
	await page.waitForFunction(() => window.drawn > 0, null,
				   { timeout: 60000 });
	const { traceEvents } = JSON.parse(await browser.stopTracing());
	const wall = await page.evaluate(() => window.drawn - window.began);

	console.log(`${label.padEnd(46)}${ms(await taskMs(session) - before)}` +
		    `, longest part ${Math.max(...traceEvents.map(e =>
			(e.name === "FunctionCall" && e.tdur || 0) / 1000))
			.toFixed(1)}, wall ${wall.toFixed(0)}`);
}

async function open(browser, folder, view, scale) {
	const page = await browser.newPage({
		viewport: { width: 1280, height: 900 },
		deviceScaleFactor: scale });

	page.on("pageerror", error => {
		console.error(error);
		process.exitCode = 1;
	});
	await page.goto(`${pathToFileURL(join(folder, "index.html"))}?size=` +
			`large&wait&view=${view}`);
	return page;
}

async function timeLine(browser, folder, scale) {
	const page = await open(browser, folder, "time", scale);
	const session = await page.context().newCDPSession(page);

	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	heading(`time line, ${scale} device pixels a pixel`);
	await firstPicture(browser, page, session, "first picture, all");
	for (const [label, dy, n] of [["half", -231, 2], ["1 in 50", -1000, 2],
				      ["1 in 10,000", -1000, 4]]) {
		await page.evaluate(turn, { n, dx: 0, dy, shift: false });
		await move(browser, page, session, `pan, ${label} in view`,
			   { dx: 7, shift: true });
	}
	await move(browser, page, session, "zoom out", { dy: 35 });
	await page.click("text=All depths of calls");
	await move(browser, page, session, "zoom in, all depths of calls",
		   { dy: -35 });
	await page.close();
}

async function flameGraph(browser, folder) {
	const page = await open(browser, folder, "flame", 1);
	const session = await page.context().newCDPSession(page);

	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	heading("flame graph");
	await firstPicture(browser, page, session, "first picture, all");
	console.log(`frames of the tree: ${await page.evaluate(() =>
		window.nodes)}`);
	const times = await scriptTimes(browser, page, () =>
		page.evaluate(changeRanges, 40));

	row("change of the time range", quantile(times, 0.5),
	    quantile(times, 0.99), Math.max(...times));
	await page.close();
}

function heading(text) {
	console.log(`\n${text.padEnd(46)}  median     p99     max     all`);
}

const folder = mkdtempSync(join(tmpdir(), "seam-view-"));

try {
	await build({
		absWorkingDir: viewer.pathname, bundle: true, minify: true,
		entryPoints: ["src/test/draw_page.tsx"], format: "iife",
		jsx: "automatic", jsxImportSource: "preact",
		outdir: folder, logLevel: "error",
	});
	writeFileSync(join(folder, "index.html"), "<!DOCTYPE html>" +
		"<meta charset=utf-8><link rel=stylesheet href=draw_page.css>" +
		"<div id=app></div><script src=draw_page.js></script>");
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: ["--no-sandbox"] });

	console.log("\nthe page, 1,000,000 samples and 1,000,000 calls of 24 " +
		    `threads; Chromium ${browser.version()}; ms of CPU`);
	await timeLine(browser, folder, 1);
	await timeLine(browser, folder, 2);
	await flameGraph(browser, folder);
	await browser.close();
} finally {
	rmSync(folder, { recursive: true });
}
