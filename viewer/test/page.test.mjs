// SPDX-License-Identifier: MIT
// page.test.mjs - the page in a browser, by mouse and by keyboard
//
//	SEAM=PROGRAM SEAM_CORPUS=FOLDER [BROWSER=FILE] node --test page.test.mjs
//
// A page of a recording of the corpus is opened from the disk; nothing it does
// may fail, reach for the network, or break a rule of accessibility.  All tests
// run in Chromium and in Firefox.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync }
	from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { doubleClick, isFirefox, launch } from "./browser.mjs";

const seam = process.env.SEAM ?? "seam";
const corpus = process.env.SEAM_CORPUS ?? ".";
const axe = readFileSync(createRequire(import.meta.url)
	.resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "seam-page-"));
const recording = join(corpus, "view/requests.seam");
const TABS = ["Time line", "Flame graph", "Table", "Sandwich", "Calls",
	      "Source", "Compare", "About"];
const WIDTHS = [1280, 360], THEMES = ["light", "dark"];
const WAIT = { timeout: 10000 };

let browser, file;

function makePage(of, name, ...options) {
	const out = join(folder, name);

	try {
		execFileSync(seam, ["view", of, "-o", out, ...options],
			     { stdio: "pipe" });
	} catch (error) {
		if (error.status !== 3)		// data was lost
			throw error;
	}
	return out;
}

before(async () => {
	browser = await launch();
	file = makePage(recording, "page.html",
			`--symfs=${join(corpus, "view/root")}`);
});

after(async () => {
	await browser?.close();
	rmSync(folder, { recursive: true });
});

// An open page whose errors, messages and requests are collected.
async function open(hash = "", options = {}, path = file) {
	const page = await browser.newPage({
		viewport: { width: 1280, height: 900 }, ...options });
	const wrong = [];

	page.on("pageerror", e => wrong.push(String(e)));
	page.on("console", m => ["error", "warning"].includes(m.type()) &&
		wrong.push(m.text()));
	page.on("dialog", d => {
		wrong.push(`dialog ${d.message()}`);
		void d.dismiss();
	});
	page.on("request", r => /^(file|data|blob):/.test(r.url()) ||
		wrong.push(`request ${r.url()}`));
	page.wrong = wrong;
	page.setDefaultTimeout(WAIT.timeout);
	await page.goto(`file://${path}${hash}`);
	await page.waitForSelector("[role=tab]");
	return page;
}

async function close(page) {
	assert.deepEqual(page.wrong, []);
	await page.close();
}

const selectedTab = page => page.textContent("[role=tab][aria-selected=true]");
const hash = page => page.evaluate(() => location.hash);
const chips = page => page.$$eval(".chips li > span", all =>
	all.map(chip => chip.textContent));
const tab = (page, name) => page.click(`role=tab[name="${name}"]`);

async function chooseTheme(page, theme) {
	while ((await page.textContent("#theme")).trim() !== theme)
		await page.click("#theme");
}

// In dark only colours can be wrong that are right in light.
async function violations(page, theme) {
	return page.evaluate(async rules => {
		const { violations } = await window.axe.run(document, {
			resultTypes: ["violations"],
			...rules && { runOnly: rules } });

		return violations.map(v => `${v.id}: ${v.nodes.slice(0, 2)
			.map(n => n.html.slice(0, 200)).join(" | ")}`);
	}, theme === "dark" ? ["color-contrast"] : null);
}

for (const theme of THEMES)
	for (const width of WIDTHS)
		test(`no view breaks a rule of axe: ${theme}, ${width} pixels`,
		     async () => {
			const page = await open("", {
				bypassCSP: true,	// to run axe
				viewport: { width, height: 900 } });

			await page.evaluate(axe);
			await chooseTheme(page, theme);
			for (const name of TABS) {
				await tab(page, name);
				if (name === "Calls")
					await page.click(
						"text=p99 and slower");
				if (name === "Flame graph")
					await page.click("text=The same as a " +
							 "table");
				assert.deepEqual(await violations(page, theme), [],
						 name);
				// nothing is wider than the window
				assert.ok(await page.evaluate(() =>
					document.documentElement.scrollWidth <=
					innerWidth), `${name} is too wide`);
			}
			await close(page);
		});

test("tabs by mouse, by arrow keys and by digits", async () => {
	const page = await open();

	for (const name of TABS) {
		await tab(page, name);
		assert.equal(await selectedTab(page), name);
	}
	await page.focus("[role=tab][aria-selected=true]");
	await page.keyboard.press("ArrowRight");
	assert.equal(await selectedTab(page), TABS[0]);
	await page.keyboard.press("End");
	assert.equal(await selectedTab(page), "About");
	for (const [i, name] of TABS.entries()) {
		await page.keyboard.press(String(i + 1));
		assert.equal(await selectedTab(page), name);
	}
	await close(page);
});

test("Back undoes each step, and a link restores all of it", async () => {
	const page = await open("#table");

	await page.selectOption("text=Rows by", "thread");
	await page.click(".grid button.link");
	assert.equal((await chips(page)).length, 1);
	await page.click("role=group[name=Layers] >> text=Kernel");
	assert.deepEqual((await chips(page)).length, 2);

	const link = await hash(page), other = await open(link);

	assert.deepEqual(await chips(other), await chips(page));
	assert.match(link, /^#table&threads=\d+&layers=native&by=thread$/);
	await close(other);
	await page.goBack();
	assert.equal((await chips(page)).length, 1);
	await page.goBack();
	assert.equal((await chips(page)).length, 0);
	await page.goForward();
	assert.equal((await chips(page)).length, 1);
	await close(page);
});

test("chips are removed by keyboard", async () => {
	const page = await open("#table&layers=native&search=main");

	assert.equal((await chips(page)).length, 2);
	await page.focus(".chips li:first-child button");
	await page.keyboard.press("Enter");
	assert.deepEqual(await chips(page), ["“main” marked"]);
	await page.keyboard.press("x");
	assert.deepEqual(await chips(page), []);
	await close(page);
});

test("a hash that fits nothing selects nothing", async () => {
	const page = await open("#nonsense&threads=99999,x&layers=moon&" +
		"time=b,-1&calls=1e9,a,b&module=-3&func=0.5&before=%00");

	assert.deepEqual(await chips(page), []);
	await close(page);
});

test("a row leads to callers and callees", async () => {
	const page = await open("#table");
	const first = page.locator("tbody [data-row]").first();
	const name = (await first.textContent()).trim();

	await first.focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("ArrowUp");
	await page.keyboard.press("Enter");
	assert.equal(await selectedTab(page), "Sandwich");
	assert.match(await page.textContent("#panel [role=status]"),
		     new RegExp(`^${name}: `));
	// the tree opens and closes by keyboard
	const row = page.locator("[role=treegrid] tbody tr").first();

	await row.locator("button.link").focus();
	await page.keyboard.press("ArrowLeft");
	assert.equal(await row.getAttribute("aria-expanded"), "false");
	await page.keyboard.press("ArrowRight");
	assert.equal(await row.getAttribute("aria-expanded"), "true");
	await close(page);
});

test("columns sort both ways", async () => {
	const page = await open("#table");
	const self = () => page.$$eval("tbody tr td:nth-child(7)", all =>
		all.map(cell => Number(cell.textContent.replace(/,/g, ""))));
	const values = await self();

	assert.deepEqual(values, [...values].sort((a, b) => b - a));
	await page.click("role=columnheader >> text=Self");
	const up = await self();

	assert.deepEqual(up, [...up].sort((a, b) => a - b));
	assert.equal(await page.getAttribute("th[aria-sort]", "aria-sort"),
		     "ascending");
	await close(page);
});

const answer = page => page.textContent("#answer");

test("a drag over the histogram answers what the slow calls did",
     async () => {
	const page = await open("#calls");
	const box = await page.locator(".histogram svg").boundingBox();
	const y = box.y + box.height / 2;

	await page.mouse.move(box.x + box.width * 0.7, y);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * 0.9, y, { steps: 5 });
	await page.mouse.move(box.x + box.width - 2, y, { steps: 5 });
	await page.mouse.up();
	assert.match(await answer(page), /calls? of handle_request of this/);
	assert.match(await answer(page), /What differs most: .* more a call/);
	assert.match((await chips(page))[0], /^inside handle_request of/);
	await page.goBack();
	assert.equal(await page.locator("#answer").count(), 0);
	await close(page);
});

test("the same by buttons and by sliders", async () => {
	const page = await open("#calls");

	await page.focus("text=p99 and slower");
	await page.keyboard.press("Enter");
	const text = await answer(page);

	assert.match(text, /What differs most/);
	await page.focus("text=all lengths");
	await page.keyboard.press("Enter");
	assert.equal(await page.locator("#answer").count(), 0);
	await page.focus(".histogram input");
	for (let i = 0; i < 3; i++)
		await page.keyboard.press("ArrowRight");
	assert.match(await answer(page), /calls of handle_request/);
	// every other view has only what is inside these calls
	await tab(page, "Table");
	assert.match((await chips(page))[0], /^inside handle_request/);
	await tab(page, "Compare");
	assert.match(await page.textContent("#panel"), /a call in A/);
	await close(page);
});

test("the slowest calls lead to their time and thread", async () => {
	const page = await open("#calls");

	await page.click(".slowest button");
	assert.equal(await selectedTab(page), "Time line");
	assert.match(await hash(page), /^#time&time=\d+,\d+&threads=\d+/);
	await close(page);
});

// -- flame graph -----------------------------------------------------------

const ROW = 19;		// pixels of a frame
const current = page => page.textContent("[role=treeitem][tabindex='0']");
const focused = page => page.evaluate(() =>
	document.activeElement.textContent);
const zoomed = page => page.textContent(".flame [role=status]");

// The middle of the frame in the row @row, at @share of the width.
async function pointAt(page, row, share) {
	const box = await page.locator(".flame canvas").boundingBox();

	return [box.x + share * box.width, box.y + (row + 0.5) * ROW];
}

test("a frame is zoomed by click, a double click opens its function",
     async () => {
	const page = await open("#flame");

	await page.mouse.move(...await pointAt(page, 5, 0.3));
	const name = await page.textContent(".flame .tip b");

	assert.match(await page.textContent(".flame .tip"),
		     /total .*% of all/);
	await page.mouse.click(...await pointAt(page, 5, 0.3));
	assert.match(await zoomed(page), new RegExp(`^${name}: .*% of all`));
	// its callers have all of the width, so the right edge is one of them
	await page.mouse.move(...await pointAt(page, 4, 0.99));
	await page.mouse.click(...await pointAt(page, 0, 0.99));
	assert.equal(await zoomed(page), "");
	await page.waitForTimeout(600);		// no double click
	await doubleClick(page, ...await pointAt(page, 5, 0.3));
	assert.equal(await selectedTab(page), "Sandwich");
	assert.match(await page.textContent("#panel [role=status]"),
		     new RegExp(`^${name}: `));
	await close(page);
});

for (const [hash, callee, caller] of [
	["#flame", "ArrowDown", "ArrowUp"],
	["#flame&up=1", "ArrowUp", "ArrowDown"]])
	test(`frames by keyboard, ${hash}`, async () => {
		const page = await open(hash);
		const key = key => page.keyboard.press(key);

		await page.focus("[role=treeitem][tabindex='0']");
		assert.match(await focused(page), /^all;/);
		for (let i = 0; i < 5; i++)
			await key(callee);
		const name = await focused(page);

		assert.match(name, /^allocate;.*total .* of all/);
		assert.equal(await page.getAttribute(":focus", "aria-level"),
			     "6");
		// only callers and neighbours are in the document
		assert.ok(await page.locator("[role=treeitem]").count() < 60);
		assert.ok(await page.isVisible(".flame .tip"));
		await key("ArrowRight");
		assert.notEqual(await focused(page), name);
		await key("ArrowLeft");
		assert.equal(await focused(page), name);
		await key("Enter");
		assert.match(await zoomed(page), /^allocate: /);
		await key(callee);
		await key("Enter");
		await key("Backspace");
		assert.match(await zoomed(page), /^allocate: /);
		await key(caller);
		assert.equal((await focused(page)).split(";")[0], "allocate");
		await key(caller);
		assert.match(await focused(page), /^handle_request;/);
		await key("Escape");
		assert.equal(await zoomed(page), "");
		await key("s");
		assert.equal(await selectedTab(page), "Sandwich");
		await close(page);
	});

test("a search marks frames with their share, and zoom outlives filters",
     async () => {
	const page = await open("#flame&search=allocate");

	assert.match(await zoomed(page),
		     /^“allocate” is in \d+\.\d\d% of all \(\d+ frames?\)/);
	await page.mouse.click(...await pointAt(page, 5, 0.3));
	assert.match(await zoomed(page), /^allocate: /);
	await page.click("role=group[name=Layers] >> text=Kernel");
	assert.match(await zoomed(page), /^allocate: /);
	assert.match(await current(page), /^allocate;/);
	await page.click("text=Whole graph");
	assert.match(await zoomed(page), /^“allocate” is in/);
	await close(page);
});

test("stacks by thread, inverted, in the order of time; as a table, as text",
     async () => {
	const page = await open("#flame");
	const total = await page.textContent(".buttons [role=status]");
	const rows = () => page.$$eval("#panel [role=treegrid] tbody .name, " +
		"#panel [role=treegrid] tbody td > .link", all =>
		all.map(e => e.querySelector("button")?.textContent ??
			     e.textContent));
	const shape = value => page.selectOption("text=Stacks", value);

	await page.click("text=The same as a table");
	const merged = await rows();

	assert.equal(merged[0], "all");
	await shape("threads");
	assert.match((await rows())[1], /^\S+ \d+$/);
	await shape("time");
	assert.match((await rows())[1], /^\S+ \d+$/);
	await shape("inverted");
	assert.match(await hash(page), /^#flame&shape=inverted$/);
	assert.equal(await page.textContent(".buttons [role=status]"), total);
	assert.ok(!(await page.textContent("#panel [role=treegrid] thead"))
		.includes("Self"));
	// the first row below all is the function with the most time of its own
	const [, first] = await rows();

	await page.goBack();
	await page.goBack();
	await page.goBack();
	assert.deepEqual(await rows(), merged);
	await tab(page, "Table");
	assert.equal(await page.textContent("tbody [data-row]"), first);

	await tab(page, "Flame graph");
	await page.evaluate(() => Object.defineProperty(navigator, "clipboard", {
		value: { writeText: async text => { window.copied = text; } },
	}));
	await page.focus("[role=treeitem][tabindex='0']");
	for (let i = 0; i < 5; i++)
		await page.keyboard.press("ArrowDown");
	await page.keyboard.press("c");
	await page.waitForSelector("text=Copied 5 frames.");
	assert.match(await page.evaluate(() => window.copied),
		     /^allocate  native · .*\n(.*\n){3}.*$/);
	await close(page);
});

test("the picture follows the theme and the window", async () => {
	const page = await open("#flame");
	const corner = () => page.$eval(".flame canvas", canvas => {
		const one = new OffscreenCanvas(1, 1).getContext("2d");

		one.drawImage(canvas, 9 - canvas.width, 3 - canvas.height);
		return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3)
			.join();
	});
	const settle = () => page.waitForTimeout(100);

	await settle();
	assert.equal(await corner(), "255,255,255");
	await chooseTheme(page, "dark");
	await settle();
	assert.equal(await corner(), "18,23,29");
	await page.setViewportSize({ width: 500, height: 700 });
	await settle();
	assert.ok(await page.$eval(".flame canvas", canvas =>
		canvas.width === Math.round(canvas.getBoundingClientRect()
			.width * devicePixelRatio)));
	await close(page);
});

// A point of the time line: shares of the time, CSS pixels from the top.
async function timeAt(page, share, y) {
	const box = await page.locator(".timeline canvas").boundingBox();
	const left = Math.round(Math.max(76, Math.min(170, box.width * 0.2)));

	return [box.x + left + share * (box.width - left), box.y + y];
}

const timeOf = async page => ((await hash(page)).match(
	/&time=(\d+),(\d*)/) ?? []).slice(1).map(Number);

test("a drag over the time line selects a time, a name its thread", async () => {
	const page = await open("#time");

	await page.waitForSelector(".timeline canvas");
	await page.mouse.move(...await timeAt(page, 0.25, 110));
	await page.mouse.down();
	await page.mouse.move(...await timeAt(page, 0.5, 110), { steps: 4 });
	await page.mouse.up();
	const [from, to] = await timeOf(page);

	assert.ok(Math.abs(to / from - 2) < 0.05, `${from} ${to}`);
	const [, y] = await timeAt(page, 0, 95);

	await page.mouse.click((await page.locator(".timeline canvas")
		.boundingBox()).x + 20, y);
	assert.match(await hash(page), /&threads=\d+/);
	await page.goBack();
	await page.goBack();
	assert.deepEqual(await timeOf(page), []);
	await close(page);
});

test("the wheel and keys move the time line, [ and ] select", async () => {
	const page = await open("#time");
	const table = async () => {
		await page.click("text=For what is visible now");
		return (await page.textContent(".timeline caption"))
			.match(/[\d.]+/g).map(Number);
	};

	await page.click("text=The tracks as a table");
	const [a, b] = await table(), middle = (a + b) / 2;

	await page.mouse.move(...await timeAt(page, 0.5, 110));
	await page.mouse.wheel(0, -500);
	const [c, d] = await table();

	assert.ok(d - c < 0.6 * (b - a) && c < middle && d > middle);
	await page.focus(".timeline [role=application]");
	await page.keyboard.press("[");
	for (let i = 0; i < 3; i++)
		await page.keyboard.press("ArrowRight");
	await page.keyboard.press("]");
	const [from, to] = (await timeOf(page)).map(ns => ns / 1e9);

	assert.ok(Math.abs(to - from - 0.3 * (d - c)) < 0.02 * (d - c));
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	assert.match(await hash(page), /&threads=\d+/);
	await page.keyboard.press("i");
	assert.match(await page.textContent(".timeline .unseen"), /\w/);
	await page.keyboard.press("w");
	assert.equal(await page.getAttribute('role=button[name="Wakers"]',
					     "aria-pressed"),
		     "true");
	await page.keyboard.press("0");
	assert.deepEqual(await table(), [a, b]);
	await close(page);
});

test("keys are listed by '?', and Escape closes the list", async () => {
	const page = await open();

	await page.keyboard.press("?");
	assert.ok(await page.isVisible("dialog"));
	await page.keyboard.press("Escape");
	assert.ok(!await page.isVisible("dialog"));
	await page.keyboard.press("/");
	await page.keyboard.type("all3");
	await page.keyboard.press("Enter");
	assert.deepEqual(await chips(page), ["“all3” marked"]);
	await close(page);
});

test("the colours follow the system until they are chosen", async () => {
	const page = await open();
	const colour = () => page.evaluate(() =>
		getComputedStyle(document.documentElement).backgroundColor);
	const light = await colour();

	await chooseTheme(page, "dark");
	assert.notEqual(await colour(), light);
	await chooseTheme(page, "auto");
	assert.equal(await colour(), light);
	if (!isFirefox) {
		await page.emulateMedia({ colorScheme: "dark" });
		await page.waitForFunction(() =>
			document.documentElement.dataset.theme === "dark");
		await chooseTheme(page, "light");
		assert.equal(await colour(), light);
	}
	await close(page);
});

const HOSTILE = "\u001b[31m\u202egnp.exe\u2066<img src=x onerror=alert(1)>" +
	"<script>alert(2)</script>`${alert(3)}`</td></textarea>";

test("hostile names are text, whole or cut, in every view", async () => {
	const copy = join(folder, "hostile.seam");

	cpSync(recording, copy, { recursive: true });
	const map = readdirSync(join(copy, "xray"))
		.find(name => name.endsWith(".yaml"));
	const path = join(copy, "xray", map);
	const quoted = id => JSON.stringify(HOSTILE + id + "A".repeat(65536));

	writeFileSync(path, readFileSync(path, "utf8")
		.replace(/(id: (\d+), .*?)version/g, (_, before, id) =>
			`${before}function-name: ${quoted(id)}, version`));
	const page = await open("#calls", {}, makePage(copy, "hostile.html"));

	assert.match(await page.textContent("#panel"), /\\u202egnp\.exe/);
	assert.equal(await page.locator("img").count(), 0);
	for (const name of TABS) {
		await tab(page, name);
		assert.ok(await page.evaluate(() =>
			document.body.textContent.length < 1e6));
		assert.ok(await page.evaluate(() =>
			!/[\u001b\u202e\u2066]/.test(document.body.innerText)));
	}
	await close(page);
});

test("a damaged recording says so", async () => {
	const path = join(folder, "damaged.html");
	const text = readFileSync(file, "utf8");
	const at = text.indexOf("class=\"recording\">") + 5000;
	const page = await browser.newPage();

	writeFileSync(path, text.slice(0, at) +
		(text[at] === "A" ? "B" : "A") + text.slice(at + 1));
	await page.goto(`file://${path}`);
	await page.waitForSelector("[role=alert]", WAIT);
	assert.match(await page.textContent("[role=alert]"),
		     /^The recording in this page cannot be read: /);
	await page.close();
});
