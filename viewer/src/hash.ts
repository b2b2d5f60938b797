/* SPDX-License-Identifier: MIT */
/*
 * hash.ts - what the page shows, as the hash of its URL
 *
 * A link has the whole state: the selection, the tab, the function that was
 * chosen.  A hash may be from anywhere, so all of it is checked against the
 * profile, and what does not fit is as if it was not there.
 */
import { LAYERS, type Profile } from "./profile";
import { ALL, type Selection } from "./select";

export const TABS = [
	"time", "flame", "table", "sandwich", "calls", "source", "compare",
	"about",
] as const;
export type Tab = typeof TABS[number];

/* How stacks are added up for a picture of them; the first one: as a tree. */
export const SHAPES = ["merged", "threads", "inverted", "time"] as const;
export type Shape = typeof SHAPES[number];

export interface View {
	tab: Tab;
	recording: number;	/* of the page's */
	func: number | null;	/* that sandwich, calls and source are about */
	by: string;		/* key of the table's rows */
	sort: string;		/* column of tables */
	icicle: boolean;
	shape: Shape;
	selection: Selection;
	/* the selection that a comparison begins at; null: by itself */
	before: Selection | null;
}

export const FIRST_VIEW: View = {
	tab: "time", recording: 0, func: null, by: "function", sort: "",
	icicle: true, shape: "merged", selection: ALL, before: null,
};

/* -- a selection -------------------------------------------------------- */

const number = (value: number) => value === Infinity ? "" : String(value);

export function writeSelection(s: Selection): Record<string, string> {
	const out: Record<string, string> = {};

	if (s.from > 0 || s.to < Infinity)
		out.time = `${number(s.from)},${number(s.to)}`;
	if (s.threads)
		out.threads = s.threads.join(",");
	if (s.layers)
		out.layers = s.layers.map(i => LAYERS[i]).join(",");
	if (s.events)
		out.events = s.events.join(",");
	if (s.module !== null)
		out.module = String(s.module);
	if (s.search)
		out.search = s.search;
	if (s.calls)
		out.calls = [s.calls.func, s.calls.min, number(s.calls.max)]
			.join(",");
	return out;
}

function readNumber(text: string | undefined, otherwise: number): number {
	const value = text ? Number(text) : NaN;

	return Number.isFinite(value) && value >= 0 ? value : otherwise;
}

/* "1,2,9" as indices below @n, each once, in order; null: none or all. */
function readIndices(text: string | null, n: number): number[] | null {
	const found = new Set((text ?? "").split(",").filter(Boolean)
		.map(Number).filter(i => Number.isInteger(i) && i >= 0 &&
					 i < n));

	return found.size ? [...found].sort((a, b) => a - b) : null;
}

function readIndex(text: string | null, n: number): number | null {
	return readIndices(text?.split(",")[0] ?? null, n)?.[0] ?? null;
}

function readLayers(text: string | null): number[] | null {
	const words = (text ?? "").split(",");
	const found = LAYERS.map((_, i) => i)
		.filter(i => words.includes(LAYERS[i]!));

	return found.length && found.length < LAYERS.length ? found : null;
}

function readCalls(text: string | null, profile: Profile):
		Selection["calls"] {
	const parts = (text ?? "").split(",");
	const func = readIndex(parts[0] ?? null, profile.functions.n);

	return func === null || parts.length !== 3 ? null :
	       { func, min: readNumber(parts[1], 0),
		 max: readNumber(parts[2], Infinity) };
}

const MAX_SEARCH = 1000;	/* characters */

function readSelection(get: (key: string) => string | null,
		       profile: Profile): Selection {
	const time = (get("time") ?? "").split(",");

	return {
		from: readNumber(time[0], 0), to: readNumber(time[1], Infinity),
		threads: readIndices(get("threads"), profile.threads.length),
		layers: readLayers(get("layers")),
		events: readIndices(get("events"), profile.events.length),
		module: readIndex(get("module"), profile.modules.n),
		search: (get("search") ?? "").slice(0, MAX_SEARCH),
		calls: readCalls(get("calls"), profile),
	};
}

/* -- a view ------------------------------------------------------------- */

export function writeHash(view: View): string {
	const out: Record<string, string> = writeSelection(view.selection);

	if (view.recording)
		out.recording = String(view.recording);
	if (view.func !== null)
		out.func = String(view.func);
	if (view.by !== FIRST_VIEW.by)
		out.by = view.by;
	if (view.sort)
		out.sort = view.sort;
	if (!view.icicle)
		out.up = "1";
	if (view.shape !== FIRST_VIEW.shape)
		out.shape = view.shape;
	if (view.before)
		out.before = new URLSearchParams(writeSelection(view.before))
			.toString() || "all";
	/* commas are as they are, for people */
	return `#${view.tab}${Object.entries(out).map(([key, value]) =>
		`&${key}=${encodeURIComponent(value).replace(/%2C/g, ",")}`)
		.join("")}`;
}

export function readHash(hash: string, profiles: Profile[], first: Tab): View {
	const [word = "", ...rest] = hash.replace(/^#/, "").split("&");
	const params = new URLSearchParams(rest.join("&"));
	const recording = readIndex(params.get("recording"), profiles.length) ??
			  0;
	const profile = profiles[recording]!;
	const before = params.get("before");
	const nested = new URLSearchParams(before ?? "");

	return {
		recording,
		tab: TABS.find(tab => tab === word) ?? first,
		func: readIndex(params.get("func"), profile.functions.n),
		by: (params.get("by") ?? FIRST_VIEW.by).slice(0, 20),
		sort: (params.get("sort") ?? "").slice(0, 20),
		icicle: params.get("up") !== "1",
		shape: SHAPES.find(shape => shape === params.get("shape")) ??
			FIRST_VIEW.shape,
		selection: readSelection(key => params.get(key), profile),
		before: before === null ? null :
			readSelection(key => nested.get(key), profile),
	};
}
