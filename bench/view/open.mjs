// SPDX-License-Identifier: MIT
// open.mjs - how long pages take from the disk to their first picture
//
//	node open.mjs PAGE...
//
// In headless Chromium, by file:// URL; until the frame after the first one in
// which the time line's canvas has a size.  CPU is of the page's main thread.
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../../viewer/package.json",
				      import.meta.url));
const { chromium } = require("playwright-core");
const RUNS = 3;

/* Runs in the page, before its own script. */
function watch() {
	const step = () => {
		if (document.querySelector(".timeline canvas")?.height)
			requestAnimationFrame(() => {
				window.firstPicture = performance.now();
			});
		else
			requestAnimationFrame(step);
	};

	requestAnimationFrame(step);
}

async function openOnce(browser, path) {
	const page = await browser.newPage({
		viewport: { width: 1280, height: 900 } });
	const session = await page.context().newCDPSession(page);

	page.on("pageerror", error => {
		console.error(error);
		process.exitCode = 1;
	});
	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	await page.addInitScript(watch);
	await page.goto(pathToFileURL(path).href);
	await page.waitForFunction(() => window.firstPicture > 0, null,
				   { timeout: 120000 });
	const wall = await page.evaluate(() => window.firstPicture);
	const { metrics } = await session.send("Performance.getMetrics");
	const of = name => metrics.find(m => m.name === name).value;
	const coarse = await page.locator(
		"text=coarser than the recording").count() > 0;

	await page.click("role=tab[name='About']");
	const facts = await page.textContent("dl.facts");

	await page.close();
	return { wall, cpu: 1000 * of("TaskDuration"),
		 heap: of("JSHeapUsedSize") / 2 ** 20, coarse,
		 rows: /In this page(.*?)(Not in it|Clock|$)/.exec(facts)?.[1] };
}

const middle = values => values.sort((a, b) => a - b)[values.length >> 1];

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
	args: ["--no-sandbox"] });

for (const path of process.argv.slice(2)) {
	const runs = [];

	for (let i = 0; i < RUNS; i++)
		runs.push(await openOnce(browser, path));
	const [{ rows, coarse }] = runs, { size } = statSync(path);
	const [samples, calls] = rows.match(/\d[\d,]*/g).map(n =>
		Number(n.replace(/,/g, "")));

	console.log(`${(size / 1e6).toFixed(1)} MB: ${rows}` +
		    `${coarse ? "; the page says that it is coarser" : ""}`);
	console.log(`${(size / (samples + calls)).toFixed(1)} bytes a row of ` +
		    "samples and calls, with stacks, names and the viewer");
	console.log(`first picture, ms: wall ${middle(runs.map(r => r.wall))
		.toFixed(0)}, CPU ${middle(runs.map(r => r.cpu)).toFixed(0)}`);
}
await browser.close();
