// SPDX-License-Identifier: MIT
/*
 * flamegraph.js - zoom, search and keyboard navigation of a flame graph
 *
 * The picture is complete without this script.  The script lays frames out for
 * the window and for the zoomed frame.  The state is in the URL fragment
 * (#zoom=FRAME&search=REGEX), so that the browser's back button works and a
 * view can be shared.  Where the fragment cannot be changed (a sandboxed page,
 * too many changes a second), the view changes nevertheless.
 *
 * Frames are in the document depth-first, root first.  All names are read
 * from text nodes and written to text nodes; nothing is parsed as markup.
 */
(function () {
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const HTML = "http://www.w3.org/1999/xhtml";
const svg = document.currentScript.ownerSVGElement;
const root = svg.getElementById("frames");
const head = svg.getElementById("head");
const page = svg.getElementById("page");
const foot = svg.getElementById("foot");	/* of comparisons, or null */
const number = (element, name) => Number(element.getAttribute("data-" + name));
const MARGIN = number(root, "margin");
const TOP = number(root, "top");
const NARROW = 900;		/* pixels; below it, tools have their own row */
const TOOLS_ROW = 40;
const ROW = number(root, "row");
const inverted = number(root, "inverted") === 1;
const GAP = 0.7;		/* pixels between neighbours */
const LEAST = 0.3;		/* pixels: narrower frames are left out */

function make(name, attributes, parent) {
	const element = document.createElementNS(SVG, name);

	for (const key in attributes)
		element.setAttribute(key, attributes[key]);
	parent.appendChild(element);
	return element;
}

function makeHtml(name, attributes, parent) {
	const element = document.createElementNS(HTML, name);

	for (const key in attributes)
		element.setAttribute(key, attributes[key]);
	parent.appendChild(element);
	return element;
}

/*
 * The frames, linked to their parents and children.  The list is copied first:
 * a live one is scanned from its start after each change of the document.
 */
const elements = [...root.children];
const frames = elements.filter((e) => !e.classList.contains("rest"))
.map((element, id) => {
	const title = element.querySelector("title");
	const lines = title.textContent.split("\n");

	title.remove();		/* replaced by the tip */
	element.setAttribute("aria-label", lines.join(", "));
	element.setAttribute("tabindex", id === 0 ? "0" : "-1");
	return {
		id: id,
		element: element,
		rect: element.querySelector("rect"),
		text: element.querySelector("text") ||
			make("text", {}, element),
		x: number(element, "x"),
		size: number(element, "w"),
		depth: Number(element.getAttribute("aria-level")) - 1,
		lines: lines,
		mark: element.getAttribute("data-mark") || "",
		parent: null,
		children: [],
		rest: null,		/* element in place of narrow callees */
		restSize: 0,		/* of callees that are not elements */
		list: null,		/* those: see listOf() */
		shown: true,
		pixels: 0,
	};
});
const path = [];
let rows = 1;

for (const frame of frames) {
	path.length = frame.depth;
	path.push(frame);
	if (frame.depth) {
		frame.parent = path[frame.depth - 1];
		frame.parent.children.push(frame);
	}
	frame.element.frame = frame;
}

/* A .rest element follows the frame of its caller. */
elements.forEach((element, i) => {
	if (!element.classList.contains("rest"))
		return;
	const frame = elements[i - 1].frame;

	frame.rest = element;
	frame.restSize = number(element, "w");
});

let zoomed = frames[0];
let pattern = null;
let width = 0;
let top = TOP;			/* of the first row */

/* The font is monospaced. */
function characterWidth() {
	const probe = make("text", {}, svg);

	probe.textContent = "0".repeat(50);
	const length = probe.getComputedTextLength() / 50;

	probe.remove();
	return length || 7;
}

const CHARACTER = characterWidth();

function fit(name, pixels) {
	const n = Math.floor((pixels - 7) / CHARACTER);

	if (n < 3)
		return "";
	return name.length <= n ? name : name.slice(0, n - 1) + "…";
}

/* The width of a frame when the zoomed one fills the window. */
function pixelsOf(frame) {
	const room = width - 2 * MARGIN;
	const end = frame.x + frame.size, zoomedEnd = zoomed.x + zoomed.size;

	if (frame === zoomed)
		return room;
	if (frame.depth < zoomed.depth)
		return frame.x <= zoomed.x && end >= zoomedEnd ? room : 0;
	return frame.x >= zoomed.x && end <= zoomedEnd ?
		room * frame.size / zoomed.size : 0;
}

function place(frame) {
	const above = frame.depth < zoomed.depth;
	const x = above || frame === zoomed ? MARGIN :
		MARGIN + (frame.x - zoomed.x) *
		(width - 2 * MARGIN) / zoomed.size;
	const row = inverted ? frame.depth : rows - 1 - frame.depth;
	const y = top + row * ROW;

	frame.left = x;
	frame.rect.setAttribute("x", x.toFixed(2));
	frame.rect.setAttribute("y", y);
	frame.rect.setAttribute("width",
		Math.max(frame.pixels - GAP, LEAST).toFixed(2));
	frame.text.setAttribute("x", (x + 4).toFixed(2));
	frame.text.setAttribute("y", y + ROW - 6);
	frame.text.textContent = fit((frame.mark ? frame.mark + " " : "") +
		frame.lines[0], frame.pixels);
	frame.element.classList.toggle("above", above);
}

/* Width of the callees that are not in the file, or not shown now. */
function restOf(frame) {
	if (frame.depth < zoomed.depth || !frame.shown)
		return 0;
	return frame.children.reduce((sum, child) => child.shown ? sum :
		sum + child.pixels, frame.pixels * frame.restSize /
		(frame.size || 1));
}

/* One element in their place, right of the shown callees. */
function placeRest(frame, pixels) {
	if (pixels < 2 * GAP) {
		if (frame.rest)
			frame.rest.style.display = "none";
		return;
	}
	if (!frame.rest) {
		frame.rest = make("g", { class: "rest" }, root);
		make("title", {}, frame.rest).textContent =
			"narrow frames; zoom in to see them";
		make("rect", { height: ROW - 1, rx: 2 }, frame.rest);
	}
	const depth = frame.depth + 1;
	const rect = frame.rest.querySelector("rect");
	const x = frame.children.reduce((end, child) => child.shown ?
		end + child.pixels : end, frame.left);

	frame.rest.style.display = "";
	rect.setAttribute("x", x.toFixed(2));
	rect.setAttribute("y", top + ROW *
		(inverted ? depth : rows - 1 - depth));
	rect.setAttribute("width", (pixels - GAP).toFixed(2));
}

/* The height of the picture is that of the shown frames. */
function layOut() {
	rows = 1;
	for (const frame of frames) {
		frame.pixels = pixelsOf(frame);
		frame.shown = frame.pixels >= LEAST;
		frame.element.style.display = frame.shown ? "" : "none";
		if (frame.shown)
			rows = Math.max(rows, frame.depth + 1);
	}
	const rests = frames.map(restOf);

	for (const frame of frames)
		if (rests[frame.id] >= 2 * GAP)
			rows = Math.max(rows, frame.depth + 2);
	const height = top + rows * ROW + MARGIN +
		(foot ? number(foot, "height") : 0);

	if (foot)
		foot.setAttribute("transform", "translate(0 " +
			(top + rows * ROW) + ")");
	svg.setAttribute("height", height);
	page.setAttribute("height", Math.max(height, window.innerHeight));
	for (const frame of frames)
		if (frame.shown)
			place(frame);
	for (const frame of frames)
		placeRest(frame, rests[frame.id]);
}

/* The tools above the frames. */
const holder = make("foreignObject", { y: 40, height: 34 }, head);
const bar = makeHtml("div", { class: "html bar" }, holder);
const result = makeHtml("output", { "aria-live": "polite" }, bar);
const search = makeHtml("input", {
	type: "search", placeholder: "Search (regex)", spellcheck: "false",
	"aria-label": "Search frames by regular expression",
}, bar);
const back = makeHtml("button", { type: "button", title: "Backspace" }, bar);
const reset = makeHtml("button", { type: "button", title: "Escape" }, bar);

back.textContent = "← Back";
reset.textContent = "Reset";

/* @text cut to @room pixels, with the whole text as a tool tip. */
function shorten(element, text, room) {
	element.textContent = text;
	const length = element.getComputedTextLength();

	if (length <= room)
		return;
	element.textContent = text.slice(0,
		Math.max(1, Math.floor(text.length * room / length) - 2)) + "…";
	make("title", {}, element).textContent = text;
}

const title = head.querySelector(".title");
const subtitle = head.querySelector(".sub");
const words = [svg.querySelector("title").textContent, subtitle.textContent];

/* clientWidth: without a scroll bar. */
function measure() {
	width = Math.max(document.documentElement.clientWidth ||
		window.innerWidth || 1200, 320);
	const narrow = width < NARROW;
	const room = width - 2 * MARGIN;
	const tools = narrow ? room : Math.min(580, room);

	top = TOP + (narrow ? TOOLS_ROW : 0);
	svg.classList.toggle("narrow", narrow);
	svg.removeAttribute("viewBox");
	svg.setAttribute("width", width);
	head.querySelector(".band").setAttribute("height", top - 8);
	head.querySelector(".rule").setAttribute("d",
		"M0 " + (top - 9) + ".5H10000");
	shorten(title, words[0], room);
	shorten(subtitle, words[1], room);
	holder.setAttribute("x", width - MARGIN - tools);
	holder.setAttribute("y", narrow ? TOP - 10 : 40);
	holder.setAttribute("width", tools);
}

/* Keep the head visible in a picture that is taller than the window. */
function stick() {
	const y = svg.parentNode === document ? window.scrollY : 0;

	head.setAttribute("transform", "translate(0 " + y + ")");
}

const names = svg.getElementById("names").textContent.split("\n");
const isCut = number(svg.getElementById("names"), "cut") === 1;

/* The callees of @frame that are not elements, depth-first. */
function listOf(frame) {
	const list = { depth: [], name: [], size: [] };
	const sizes = [frame.restSize];
	const text = frame.rest.getAttribute("data-list") || "";
	let depth = 0;

	for (const [, up, name, size] of
	     text.matchAll(/(?:\^([^,]+))?,([^,:^]+)(?::([^,^]+))?/g)) {
		depth += 1 - parseInt(up || "0", 16);
		sizes[depth] = size ? parseInt(size, 16) : sizes[depth - 1];
		list.depth.push(depth);
		list.name.push(parseInt(name, 16));
		list.size.push(sizes[depth]);
	}
	return list;
}

/* Size of the callees that are not elements; nested ones count once. */
function matchedInRest(frame, hits) {
	let sum = 0, outer = Infinity;

	if (!frame.restSize)
		return 0;
	frame.list = frame.list || listOf(frame);
	frame.list.depth.forEach((depth, i) => {
		if (depth > outer)
			return;
		outer = hits[frame.list.name[i]] ? depth : Infinity;
		sum += outer === depth ? frame.list.size[i] : 0;
	});
	return sum;
}

/* The size of @frame, or of its callees that are not elements. */
function markFrame(frame, hits) {
	const hit = pattern !== null && pattern.test(frame.lines[0]);
	const inRest = pattern !== null && matchedInRest(frame, hits);

	frame.element.classList.toggle("hit", hit);
	if (frame.rest)
		frame.rest.classList.toggle("hit", inRest > 0);
	return hit ? frame.size : inRest;
}

/* Mark the frames found; their share counts nested ones once. */
function mark() {
	const hits = names.map((name) => pattern !== null &&
		pattern.test(name));
	const end = zoomed.x + zoomed.size;
	let found = false, until = -1, matched = 0;

	svg.classList.toggle("searching", pattern !== null);
	for (const frame of frames) {
		const size = markFrame(frame, hits);

		found = found || size > 0;
		if (frame.x < until || frame.depth < zoomed.depth ||
		    frame.x < zoomed.x || frame.x + frame.size > end)
			continue;
		matched += size;
		if (frame.element.classList.contains("hit"))
			until = frame.x + frame.size;
	}
	result.textContent = pattern === null ? "" :
		(wrong ? "bad regex, taken as text: " : "") +
		(!found ? "no match" : (isCut ? "at least " : "") +
		(100 * matched / (zoomed.size || 1)).toFixed(2) + " % matched");
	result.title = wrong;
}

let wrong = "";			/* error of the regular expression */

function compile(text) {
	wrong = "";
	if (text === "")
		return null;
	try {
		return new RegExp(text, "i");
	} catch (error) {
		wrong = error.message;
		return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
			"i");
	}
}

/* The number of zooms that "back" can undo. */
function stepsBack() {
	return window.history.state && window.history.state.step || 0;
}

function show(zoom, text) {
	zoomed = zoom;
	if (search.value !== text)
		search.value = text;
	pattern = compile(text);
	search.classList.toggle("wrong", wrong !== "");
	search.setAttribute("aria-invalid", String(wrong !== ""));
	layOut();
	mark();
	back.disabled = stepsBack() === 0;
	reset.disabled = zoomed === frames[0] && pattern === null;
}

/* Show the state in the URL: at load, and after back or forward. */
function follow() {
	const words = new URLSearchParams(window.location.hash.slice(1));

	show(frames[Number(words.get("zoom"))] || frames[0],
		words.get("search") || "");
}

/* A zoom adds a history entry, which "back" undoes; a search does not. */
function go(zoom, text, isStep) {
	const words = new URLSearchParams();
	const steps = stepsBack();

	if (zoom.id)
		words.set("zoom", zoom.id);
	if (text)
		words.set("search", text);
	const hash = "#" + words.toString();

	try {
		if (hash === (window.location.hash || "#"))
			;	/* unchanged */
		else if (isStep)
			window.history.pushState({ step: steps + 1 }, "", hash);
		else
			window.history.replaceState({ step: steps }, "", hash);
	} catch (error) {
		/* the view does not depend on the URL */
	}
	show(zoom, text);
}

/* Reset zoom and search, and scroll to the root. */
function goHome() {
	hideTip();
	search.blur();
	go(frames[0], "", true);
	window.scrollTo(0, inverted ? 0 : svg.getBoundingClientRect().height);
}

/*
 * A picture that is taller than the window is scrolled to its root, but not in
 * a headless browser: its screenshot starts at the top of the document.
 */
function isInteractive() {
	return !/Headless/.test(window.navigator.userAgent);
}

/* The tip: details of a frame, beside the pointer. */
const float = make("foreignObject", { width: 1, height: 1, class: "over" },
	svg);
const tip = makeHtml("div", { class: "html tip", role: "status" }, float);

float.style.overflow = "visible";
float.style.pointerEvents = "none";
float.style.display = "none";

function showTip(frame, x, y) {
	tip.replaceChildren();
	makeHtml("b", {}, tip).textContent = frame.lines[0];
	for (const line of frame.lines.slice(1))
		makeHtml("span", {}, tip).textContent = line;
	if (zoomed !== frames[0] && frame.depth >= zoomed.depth)
		makeHtml("span", {}, tip).textContent =
			(100 * frame.size / zoomed.size).toFixed(2) +
			" % of " + zoomed.lines[0].slice(0, 60);
	float.style.display = "";
	const box = tip.getBoundingClientRect();
	const top = svg.getBoundingClientRect().top;
	const right = x + 14 + box.width > width - 4;
	const below = y + 18 + box.height <= window.innerHeight - top - 4;

	float.setAttribute("x", Math.max(4, right ? x - 10 - box.width :
		x + 14));
	float.setAttribute("y", below ? y + 18 :
		Math.max(-top + 4, y - 10 - box.height));
}

function hideTip() {
	float.style.display = "none";
}

function frameOf(event) {
	const element = event.target.closest && event.target.closest(".f");

	return element ? element.frame : null;
}

root.addEventListener("pointermove", (event) => {
	const frame = frameOf(event);
	const box = svg.getBoundingClientRect();

	if (frame)
		showTip(frame, event.clientX - box.left,
			event.clientY - box.top);
});
root.addEventListener("pointerleave", hideTip);
root.addEventListener("click", (event) => {
	const frame = frameOf(event);

	if (!frame)
		return;
	hideTip();
	choose(frame);
	go(frame, search.value, true);
});

/* Only the frame used last is in the Tab order. */
let current = frames[0];

function setCurrent(frame) {
	if (!frame)
		return;
	current.element.setAttribute("tabindex", "-1");
	current = frame;
	current.element.setAttribute("tabindex", "0");
}

root.addEventListener("focusin", (event) => setCurrent(frameOf(event)));

/* In a window without focus, focus() moves the focus without an event. */
function choose(frame) {
	if (!frame)
		return;
	setCurrent(frame);
	frame.element.focus({ preventScroll: true });
	frame.element.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/* The next shown frame of the same row, in direction 1 or -1. */
function beside(frame, step) {
	for (let i = frame.id + step; frames[i]; i += step)
		if (frames[i].depth === frame.depth && frames[i].shown)
			return frames[i];
	return null;
}

function largestChild(frame) {
	return frame.children.filter((child) => child.shown)
		.reduce((a, b) => a && a.size >= b.size ? a : b, null);
}

const keys = {
	ArrowLeft: () => choose(beside(current, -1)),
	ArrowRight: () => choose(beside(current, 1)),
	ArrowUp: () => choose(inverted ? current.parent :
		largestChild(current)),
	ArrowDown: () => choose(inverted ? largestChild(current) :
		current.parent),
	Home: () => choose(frames[0]),
	Enter: () => go(current, search.value, true),
	" ": () => go(current, search.value, true),
	Backspace: () => stepsBack() && window.history.back(),
	"/": () => search.select(),
};

document.addEventListener("keydown", (event) => {
	const typing = event.target === search;
	const plain = !event.ctrlKey && !event.metaKey && !event.altKey;

	setCurrent(frameOf(event));
	if ((event.ctrlKey || event.metaKey) && event.key === "f") {
		search.focus();
		search.select();
	} else if (event.key === "Escape") {
		goHome();
	} else if (typing && event.key === "Enter") {
		choose(frames.find((frame) => frame.shown &&
			frame.element.classList.contains("hit")));
	} else if (!typing && plain && event.target.nodeName !== "button" &&
		   keys[event.key]) {
		if (event.key === "/")
			search.focus();
		keys[event.key]();
		hideTip();
		if (event.key.startsWith("Arrow"))
			showTip(current, Number(current.text.getAttribute("x")),
				Number(current.text.getAttribute("y")) - 8);
	} else {
		return;
	}
	event.preventDefault();
});
search.addEventListener("input", () => go(zoomed, search.value, false));
back.addEventListener("click", () => window.history.back());
reset.addEventListener("click", goHome);
window.addEventListener("popstate", follow);
window.addEventListener("hashchange", follow);
window.addEventListener("scroll", stick, { passive: true });
window.addEventListener("resize", () => {
	measure();
	layOut();
});

svg.appendChild(head);
svg.appendChild(float);
measure();
follow();
/* the picture may have added a scroll bar, which reduces the width */
if (document.documentElement.clientWidth &&
    document.documentElement.clientWidth !== width) {
	measure();
	layOut();
}
if (!inverted && isInteractive())
	window.scrollTo(0, svg.getBoundingClientRect().height);
stick();
})();
