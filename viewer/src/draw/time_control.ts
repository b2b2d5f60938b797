/* SPDX-License-Identifier: MIT */
/*
 * time_control.ts - pointer, wheel and keys of the time line
 *
 * The visible range changes many times a second, so it is not in the component
 * but in a control: a handler changes it and asks for a picture.
 */
import type { Selection } from "../select";
import { nsAt } from "./time_draw";
import {
	clampRange, durationOf, gutterOf, OVERVIEW, panRange, TOP, zoomRange,
	type Range, type Scene,
} from "./time_scene";
import { tipAt, trackTip, type Tip } from "./time_tip";
import { CALL_ROW, trackAt, type Track } from "./tracks";

export interface Control {
	scene: Scene;
	width: number;		/* of the canvas, CSS pixels */
	gesture: Gesture | null;
	select: (next: Selection) => void;
	/* a picture; the tracks too, where their heights change */
	changed: () => void;
	scrollTo: (top: number) => void;
	visibleHeight: () => number;
	toggleOpen: (thread: number) => void;
	announce: (text: string) => void;
}

interface Gesture {
	kind: "select" | "pan" | "overview" | "track";
	x: number;		/* where it began */
	moved: boolean;
	view: Range;		/* as it was then */
	track: number;
}

const grainOf = (c: Control): number => (c.scene.view.to - c.scene.view.from) /
	Math.max(1, c.width - gutterOf(c.width));

export function setView(c: Control, view: Range): void {
	c.scene.view = view;
	c.changed();
}

/* -- selection ---------------------------------------------------------- */

/* Edges as whole ns; all of the recording is no range. */
export function selectRange(c: Control, range: Range): void {
	const { selection, profile } = c.scene, whole = durationOf(profile);
	const from = Math.max(0, Math.floor(range.from));
	const to = Math.ceil(range.to);

	c.select({ ...selection, from, to: to >= whole ? Infinity : to });
}

/* Only this thread; with @add, this one too; again, all. */
export function selectTrack(c: Control, track: Track, add: boolean): void {
	const { selection } = c.scene, threads = selection.threads ?? [];
	const { profile } = c.scene;
	const ids = track.kind === "thread" ? [track.id] :
		    track.kind === "heading" && track.id >= 0 ?
		    c.scene.tracks.filter(t => t.kind === "thread" &&
			profile.threads[t.id]!.process === track.id)
			.map(t => t.id) : [];
	const has = ids.length > 0 && ids.every(id => threads.includes(id));
	const kept = add ? threads.filter(id => !ids.includes(id)) : [];
	const next = has && (add || threads.length === ids.length) ? kept :
		     [...kept, ...ids];

	if (ids.length)
		c.select({ ...selection, threads: next.length ?
			next.sort((a, b) => a - b) : null });
}

/* -- pointer ------------------------------------------------------------ */

export interface Point {
	x: number;		/* CSS pixels of the canvas */
	y: number;
}

const trackIndex = (c: Control, point: Point): number => point.y < TOP ? -1 :
	trackAt(c.scene.tracks, point.y - TOP + c.scene.scrollTop);

export function pointerDown(c: Control, point: Point, pans: boolean): void {
	const track = trackIndex(c, point);

	c.gesture = {
		kind: point.y < OVERVIEW ? "overview" :
		      point.x < gutterOf(c.width) ? "track" :
		      pans ? "pan" : "select",
		x: point.x, moved: false, view: c.scene.view, track,
	};
	if (track >= 0)
		c.scene.current = track;
	if (c.gesture.kind === "overview")
		pointerDrag(c, point);
}

const MOVED = 4;		/* pixels: less is a click */

export function pointerDrag(c: Control, point: Point): void {
	const g = c.gesture, { profile } = c.scene;

	if (!g)
		return;
	g.moved ||= Math.abs(point.x - g.x) >= MOVED;
	if (g.kind === "overview") {
		const at = nsAt({ from: 0, to: durationOf(profile) }, c.width,
				point.x);
		const half = (g.view.to - g.view.from) / 2;

		setView(c, clampRange(profile, { from: at - half,
						 to: at + half }));
	} else if (g.kind === "pan") {
		setView(c, panRange(profile, g.view, (g.x - point.x) *
				    grainOf(c)));
	} else if (g.kind === "select" && g.moved) {
		const [a, b] = [g.x, point.x].map(x => nsAt(c.scene.view,
			c.width, Math.max(gutterOf(c.width), x)));

		c.scene.drag = { from: Math.max(0, Math.min(a!, b!)),
				 to: Math.min(durationOf(profile),
					      Math.max(a!, b!)) };
		c.changed();
	}
}

export function pointerUp(c: Control, point: Point, add: boolean): void {
	const g = c.gesture, { drag, tracks } = c.scene;

	c.gesture = null;
	c.scene.drag = null;
	if (g?.kind === "track" && g.track >= 0 && !g.moved &&
	    g.track === trackIndex(c, point))
		selectTrack(c, tracks[g.track]!, add);
	else if (g?.kind === "select" && drag && drag.to > drag.from)
		selectRange(c, drag);
	c.changed();
}

export function cancelGesture(c: Control): void {
	c.gesture = null;
	c.scene.drag = null;
	c.changed();
}

const WHEEL = 0.0015;		/* of the logarithm of the range, a pixel */

/* Returns whether the wheel was used; over names it scrolls the tracks. */
export function wheel(c: Control, point: Point, dx: number, dy: number,
		      pans: boolean): boolean {
	const { view, profile } = c.scene;
	const ns = pans ? dx || dy : Math.abs(dx) > Math.abs(dy) ? dx : 0;

	if (point.x < gutterOf(c.width) && point.y > OVERVIEW)
		return false;
	setView(c, ns ? panRange(profile, view, ns * grainOf(c)) :
		zoomRange(profile, view, nsAt(view, c.width, point.x),
			  Math.exp(dy * WHEEL)));
	return true;
}

/* What the tool tip has for @point; null: nothing. */
export function tipOf(c: Control, point: Point): Tip | null {
	const index = trackIndex(c, point), track = c.scene.tracks[index];

	if (!track)
		return null;
	if (track.kind === "heading")
		return null;
	if (point.x < gutterOf(c.width))
		return trackTip(c.scene, track);
	return tipAt(c.scene, track,
		     point.y - TOP + c.scene.scrollTop - track.y,
		     nsAt(c.scene.view, c.width, point.x), grainOf(c));
}

/* -- keys --------------------------------------------------------------- */

/* The middle of what is visible: keys act there. */
const middleOf = (c: Control): number =>
	(c.scene.view.from + c.scene.view.to) / 2;

function zoom(c: Control, factor: number): void {
	setView(c, zoomRange(c.scene.profile, c.scene.view, middleOf(c),
			     factor));
}

function pan(c: Control, share: number): void {
	const { view, profile } = c.scene;

	setView(c, panRange(profile, view, share * (view.to - view.from)));
}

function setEdge(c: Control, edge: "from" | "to"): void {
	const { selection, profile } = c.scene, at = middleOf(c);
	const to = Math.min(selection.to, durationOf(profile));

	selectRange(c, edge === "from" ?
		{ from: at, to: to > at ? to : durationOf(profile) } :
		{ from: selection.from < at ? selection.from : 0, to: at });
}

/* The next track in direction @step that is not a heading. */
function moveTrack(c: Control, step: number): void {
	const { tracks } = c.scene;
	let index = c.scene.current;

	do
		index += step;
	while (tracks[index]?.kind === "heading");
	if (!tracks[index])
		return;
	c.scene.current = index;
	showTrack(c, tracks[index]!);
	describeTrack(c);
	c.changed();
}

function showTrack(c: Control, track: Track): void {
	const room = c.visibleHeight() - TOP, { scrollTop } = c.scene;

	if (track.y < scrollTop)
		c.scrollTo(Math.max(0, track.y - 24));
	else if (track.y + track.height > scrollTop + room)
		c.scrollTo(Math.min(track.y, track.y + track.height - room));
}

function describeTrack(c: Control): void {
	const track = c.scene.tracks[c.scene.current];

	if (track)
		c.announce([trackTip(c.scene, track).title,
			    ...trackTip(c.scene, track).lines].join(". "));
}

/* What the chosen track has in the middle, for all rows of its calls. */
function describeMiddle(c: Control): void {
	const track = c.scene.tracks[c.scene.current], grain = grainOf(c);

	if (!track)
		return;
	const parts = [0, ...Array.from({ length: track.marked +
		track.rows }, (_, d) => track.band + d * CALL_ROW + 1)].map(y => tipAt(c.scene, track, y,
			middleOf(c), grain));
	const text = parts.filter(tip => tip !== null)
		.map(tip => [tip.title, ...tip.lines].join(", ")).join(". ");

	c.announce(text || "nothing here");
}

function zoomToSelection(c: Control): void {
	const { selection, profile } = c.scene;
	const to = Math.min(selection.to, durationOf(profile));
	const room = 0.02 * (to - selection.from);

	setView(c, clampRange(profile, { from: selection.from - room,
					 to: to + room }));
}

export const wholeView = (c: Control): void => setView(c, { from: 0,
	to: durationOf(c.scene.profile) });

function onTrack(c: Control, act: (track: Track) => void): void {
	const track = c.scene.tracks[c.scene.current];

	if (track)
		act(track);
}

/* Each key, and what the help says. */
export const KEYS: readonly { keys: string[]; shown: string; does: string;
	act: (c: Control, event: KeyboardEvent) => void }[] = [
	{ keys: ["ArrowLeft"], shown: "←", does: "earlier",
	  act: (c, e) => pan(c, e.shiftKey ? -0.5 : -0.1) },
	{ keys: ["ArrowRight"], shown: "→", does: "later",
	  act: (c, e) => pan(c, e.shiftKey ? 0.5 : 0.1) },
	{ keys: ["ArrowUp"], shown: "↑", does: "the track above",
	  act: c => moveTrack(c, -1) },
	{ keys: ["ArrowDown"], shown: "↓", does: "the track below",
	  act: c => moveTrack(c, 1) },
	{ keys: ["+", "="], shown: "+", does: "closer",
	  act: c => zoom(c, 1 / 1.5) },
	{ keys: ["-", "_"], shown: "−", does: "farther",
	  act: c => zoom(c, 1.5) },
	{ keys: ["0", "Home"], shown: "0", does: "all of the recording",
	  act: wholeView },
	{ keys: ["["], shown: "[", does: "select from the middle line",
	  act: c => setEdge(c, "from") },
	{ keys: ["]"], shown: "]", does: "select to the middle line",
	  act: c => setEdge(c, "to") },
	{ keys: ["z"], shown: "z", does: "show the selected time",
	  act: zoomToSelection },
	{ keys: ["Enter"], shown: "Enter", does: "only this thread, or all",
	  act: (c, e) => onTrack(c, t => selectTrack(c, t, e.shiftKey)) },
	{ keys: ["e"], shown: "e", does: "all depths of calls, or few",
	  act: c => onTrack(c, t => t.kind === "thread" &&
		  c.toggleOpen(t.id)) },
	{ keys: ["w"], shown: "w", does: "arrows from wakers",
	  act: c => {
		c.scene.showWakers = !c.scene.showWakers;
		c.changed();
	  } },
	{ keys: ["i"], shown: "i", does: "what is in the middle",
	  act: describeMiddle },
];

/* Returns whether the key was used. */
export function onKey(c: Control, event: KeyboardEvent): boolean {
	const key = KEYS.find(k => k.keys.includes(event.key));

	if (!key || event.ctrlKey || event.altKey || event.metaKey)
		return false;
	if (c.scene.current < 0)
		c.scene.current = c.scene.tracks.findIndex(t =>
			t.kind === "thread");
	key.act(c, event);
	return true;
}
