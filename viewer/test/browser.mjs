// SPDX-License-Identifier: MIT
// browser.mjs - the browser of page.test.mjs, and where browsers differ
//
// BROWSER is the file of a Chromium or a Firefox.  Playwright drives Firefox as
// Debian has it by WebDriver BiDi.  That protocol can neither change the
// system's colours while Firefox ESR runs nor make a double click.
import { basename } from "node:path";
import { chromium, firefox } from "playwright-core";

const executablePath = process.env.BROWSER ?? "/usr/bin/chromium";

export const isFirefox = basename(executablePath).startsWith("firefox");

// Its system has light colours, as those of Playwright's Chromium.
export const launch = () => isFirefox ?
	firefox.launch({
		executablePath, channel: "moz-firefox", firefoxUserPrefs: {
			"layout.css.prefers-color-scheme.content-override": 1 },
	}) :
	chromium.launch({ executablePath, args: ["--no-sandbox"] });

export async function doubleClick(page, x, y) {
	if (!isFirefox) {
		await page.mouse.dblclick(x, y);
		return;
	}
	await page.mouse.click(x, y);
	await page.evaluate(([x, y]) => document.elementFromPoint(x, y)
		.dispatchEvent(new MouseEvent("click", { detail: 2, clientX: x,
			clientY: y, bubbles: true })), [x, y]);
}
