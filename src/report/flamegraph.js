// SPDX-License-Identifier: MIT
/*
 * flamegraph.js - what makes the picture a tool
 *
 * The picture is complete without this script.  With it, frames are laid out
 * anew for the window, and for the frame that is zoomed to.  The state is in
 * the address (#zoom=FRAME&search=REGEX), so that the browser's back button
 * works and a view can be passed on.
 *
 * Frames stand in the document depth-first, root first.  All names are read
 * from text nodes and written to text nodes; nothing is made from markup.
 */
(function () {
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const HTML = "http://www.w3.org/1999/xhtml";
const svg = document.currentScript.ownerSVGElement;
const root = svg.getElementById("frames");
const head = svg.getElementById("head");
const page = svg.getElementById("page");
const number = (element, name) => Number(element.getAttribute("data-" + name));
const MARGIN = number(root, "margin");
const TOP = number(root, "top");
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
 * The frames, tied to their parents and children.  The list is copied first:
 * a live one is searched from its start after each change of the document.
 */
const frames = [...root.children].map((element, id) => {
	const title = element.querySelector("title");
	const lines = title.textContent.split("\n");

	title.remove();		/* the tip says it, and better */
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
		parent: null,
		children: [],
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

let zoomed = frames[0];
let pattern = null;
let width = 0;

/* A monospaced font: one character tells the width of all. */
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
	const y = TOP + row * ROW;

	frame.rect.setAttribute("x", x.toFixed(2));
	frame.rect.setAttribute("y", y);
	frame.rect.setAttribute("width",
		Math.max(frame.pixels - GAP, LEAST).toFixed(2));
	frame.text.setAttribute("x", (x + 4).toFixed(2));
	frame.text.setAttribute("y", y + ROW - 6);
	frame.text.textContent = fit(frame.lines[0], frame.pixels);
	frame.element.classList.toggle("above", above);
}

/* The picture is as high as what is shown of it. */
function layOut() {
	rows = 1;
	for (const frame of frames) {
		frame.pixels = pixelsOf(frame);
		frame.shown = frame.pixels >= LEAST;
		frame.element.style.display = frame.shown ? "" : "none";
		if (frame.shown)
			rows = Math.max(rows, frame.depth + 1);
	}
	const height = TOP + rows * ROW + MARGIN;

	svg.setAttribute("height", height);
	page.setAttribute("height", Math.max(height, window.innerHeight));
	for (const frame of frames)
		if (frame.shown)
			place(frame);
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

function measure() {
	width = Math.max(window.innerWidth || 1200, 480);
	svg.removeAttribute("viewBox");
	svg.setAttribute("width", width);
	const tools = Math.min(580, width - 2 * MARGIN);

	holder.setAttribute("x", width - MARGIN - tools);
	holder.setAttribute("width", tools);
}

/* The head stays in sight in a picture that is taller than the window. */
function stick() {
	const y = svg.parentNode === document ? window.scrollY : 0;

	head.setAttribute("transform", "translate(0 " + y + ")");
}

/* What a search found: frames, and their share without counting twice. */
function mark() {
	let hits = 0, until = -1, matched = 0;
	const end = zoomed.x + zoomed.size;

	svg.classList.toggle("searching", pattern !== null);
	for (const frame of frames) {
		const hit = pattern !== null && pattern.test(frame.lines[0]);

		frame.element.classList.toggle("hit", hit);
		if (!hit)
			continue;
		hits++;
		if (frame.x < until || frame.depth < zoomed.depth ||
		    frame.x < zoomed.x || frame.x + frame.size > end)
			continue;
		matched += frame.size;
		until = frame.x + frame.size;
	}
	result.textContent = pattern === null ? "" : hits === 0 ? "no match" :
		(100 * matched / (zoomed.size || 1)).toFixed(2) + " % matched";
}

function compile(text) {
	search.classList.remove("wrong");
	if (text === "")
		return null;
	try {
		return new RegExp(text, "i");
	} catch (error) {
		search.classList.add("wrong");
		return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
			"i");
	}
}

/* The address is the state: read it, and draw. */
function follow() {
	const words = new URLSearchParams(window.location.hash.slice(1));
	const text = words.get("search") || "";

	zoomed = frames[Number(words.get("zoom"))] || frames[0];
	if (search.value !== text)
		search.value = text;
	pattern = compile(text);
	layOut();
	mark();
	reset.disabled = zoomed === frames[0] && pattern === null;
}

/* A new zoom is a step that "back" undoes; a search is not. */
function go(zoom, text, isStep) {
	const words = new URLSearchParams();

	if (zoom.id)
		words.set("zoom", zoom.id);
	if (text)
		words.set("search", text);
	const hash = "#" + words.toString();

	if (hash === (window.location.hash || "#"))
		return;
	if (isStep)
		window.history.pushState(null, "", hash);
	else
		window.history.replaceState(null, "", hash);
	follow();
}

/* What is said of a frame beside the pointer. */
const float = make("foreignObject", { width: 1, height: 1, class: "over" }, svg);
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

/* One frame is in the order of the Tab key: the one used last. */
let current = frames[0];

root.addEventListener("focusin", (event) => {
	const frame = frameOf(event);

	current.element.setAttribute("tabindex", "-1");
	current = frame || current;
	current.element.setAttribute("tabindex", "0");
});

function choose(frame) {
	if (!frame)
		return;
	frame.element.focus({ preventScroll: true });
	frame.element.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/* The next frame of the same row that is drawn, in direction 1 or -1. */
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
	Backspace: () => window.history.back(),
	"/": () => search.select(),
};

document.addEventListener("keydown", (event) => {
	const typing = event.target === search;
	const plain = !event.ctrlKey && !event.metaKey && !event.altKey;

	if ((event.ctrlKey || event.metaKey) && event.key === "f") {
		search.focus();
		search.select();
	} else if (event.key === "Escape") {
		hideTip();
		search.blur();
		go(frames[0], "", true);
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
reset.addEventListener("click", () => go(frames[0], "", true));
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
if (!inverted)
	window.scrollTo(0, document.documentElement.scrollHeight || 1e6);
stick();
})();
