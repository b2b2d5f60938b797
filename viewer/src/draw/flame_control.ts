/* SPDX-License-Identifier: MIT */
/*
 * flame_control.ts - pointer, keys and zoom of the flame graph
 *
 * What changes with each movement is in the scene, which a handler changes
 * before it asks for a picture; the zoom is the component's state.
 */
import { NONE } from "../profile";
import type { Tree } from "../tree";
import { ROW, rowAt, rowTop, type FlameScene } from "./flame_draw";
import { beside, boxAt, boxOf, sameNode, widestCallee } from "./flame_layout";
import { frameText, restText } from "./flame_text";
import { hideTip, showTip } from "./tip_box";

/* Of one tree: what was shown, the last one now; and the current frame. */
export interface Zoom {
	tree: Tree;
	tops: number[];
	current: number;
}

export interface FlameControl {
	scene: FlameScene;
	scale: number;		/* device pixels a CSS pixel */
	zoom: Zoom;
	setZoom: (next: Partial<Zoom>) => void;
	copy: (node: number) => void;
	onFunction: (func: number) => void;
	invalidate: () => void;
	scroller: HTMLElement;
	tip: HTMLElement;
	twin: HTMLElement;	/* has the tree for keyboards */
	pressed: number;	/* the frame of the first click; NONE */
	/* what to do once the twin has the current frame */
	pending: "" | "focus" | "focus and tip";
}

/* In another tree, as after a change of the selection, the same functions. */
export function carried(zoom: Zoom, tree: Tree): Zoom {
	const same = (node: number) => sameNode(zoom.tree, node, tree);

	return {
		tree, current: same(zoom.current),
		tops: zoom.tops.map(same).filter((node, i) => node > 0 ||
						 zoom.tops[i] === 0),
	};
}

export const topOf = (zoom: Zoom): number => zoom.tops[zoom.tops.length - 1]!;

/* -- steps -------------------------------------------------------------- */

export function zoomTo(c: FlameControl, node: number): void {
	const { tops } = c.zoom;

	c.scene.hover = -1;
	c.setZoom({ current: node, tops: node === topOf(c.zoom) ? tops :
		[...tops, node] });
}

export function zoomBack(c: FlameControl): void {
	if (c.zoom.tops.length > 1)
		c.setZoom({ tops: c.zoom.tops.slice(0, -1),
			    current: topOf(c.zoom) });
}

export function zoomReset(c: FlameControl): void {
	c.setZoom({ tops: [0], current: c.zoom.current });
}

function moveTo(c: FlameControl, node: number): void {
	if (node === NONE)
		return;
	c.pending = "focus and tip";
	c.setZoom({ current: node });
}

function openFunction(c: FlameControl, node: number): void {
	const func = node === NONE ? NONE : c.zoom.tree.func[node]!;

	if (func !== NONE)
		c.onFunction(func);
}

/* -- what is seen ------------------------------------------------------- */

/* Scroll so that the row of @node is in sight. */
export function reveal(c: FlameControl, node: number): void {
	const { scene, scroller } = c;
	const y = rowTop(scene, c.zoom.tree.depth[node]!);

	if (y < scroller.scrollTop)
		scroller.scrollTop = y;
	else if (y + ROW > scroller.scrollTop + scroller.clientHeight)
		scroller.scrollTop = y + ROW - scroller.clientHeight;
	scene.scrollTop = scroller.scrollTop;
}

/* (@x, @y) are of the picture that is in sight. */
function showText(c: FlameControl, box: number, x: number, y: number): void {
	const { layout, profile } = c.scene, { tree } = layout;
	const node = layout.node[box]!, rest = layout.rest[box]!;
	const text = rest ? restText(profile, tree, node, rest) :
		     frameText(profile, tree, node, layout.top);
	const area = c.tip.parentElement!.getBoundingClientRect();
	const at = c.scroller.getBoundingClientRect();

	showTip(c.tip, text.title, text.lines, x + at.left - area.left,
		y + at.top - area.top);
}

function showCurrent(c: FlameControl): void {
	const { scene, zoom } = c, { layout } = scene;
	const box = boxOf(layout, zoom.current);

	reveal(c, zoom.current);
	if (box >= 0)
		showText(c, box, layout.left[box]! / c.scale,
			 rowTop(scene, zoom.tree.depth[zoom.current]!) -
			 scene.scrollTop);
}

export function focusCurrent(c: FlameControl): void {
	c.twin.querySelector<HTMLElement>("[tabindex='0']")
		?.focus({ preventScroll: true });
}

/* After a rendering, which may have moved the focused element or removed it. */
export function settle(c: FlameControl): void {
	const { pending } = c;

	c.pending = "";
	if (pending)
		focusCurrent(c);
	if (pending === "focus and tip")
		showCurrent(c);
}

/* -- pointer ------------------------------------------------------------ */

interface Point {
	x: number;
	y: number;
	box: number;		/* -1: none */
}

function pointOf(c: FlameControl, event: MouseEvent): Point {
	const at = (event.currentTarget as HTMLElement).getBoundingClientRect();
	const x = event.clientX - at.left, y = event.clientY - at.top;

	return { x, y, box: boxAt(c.scene.layout, rowAt(c.scene, y),
				  x * c.scale) };
}

export function pointerClick(c: FlameControl, event: MouseEvent): void {
	const { layout } = c.scene, { box } = pointOf(c, event);

	/* the first click moved what is under the pointer of the second one */
	if (event.detail > 1) {
		openFunction(c, c.pressed);
		return;
	}
	c.pressed = NONE;
	if (box < 0)
		return;
	const node = layout.node[box]!;

	c.pending = "focus";
	if (layout.rest[box])
		zoomTo(c, layout.tree.parent[node]!);
	else
		zoomTo(c, c.pressed = node);
}

export function pointerMove(c: FlameControl, event: MouseEvent): void {
	const { x, y, box } = pointOf(c, event);

	if (box !== c.scene.hover) {
		c.scene.hover = box;
		c.invalidate();
	}
	if (box < 0)
		hideTip(c.tip);
	else
		showText(c, box, x, y);
}

export function pointerLeave(c: FlameControl): void {
	c.scene.hover = -1;
	hideTip(c.tip);
	c.invalidate();
}

/* -- keys --------------------------------------------------------------- */

const UPSIDE_DOWN: Record<string, string> = {
	ArrowUp: "ArrowDown", ArrowDown: "ArrowUp",
};

/* By key, where callers are on top. */
const ACTS: Record<string, (c: FlameControl, node: number) => void> = {
	ArrowRight: (c, node) => moveTo(c, beside(c.scene.layout, node, 1)),
	ArrowLeft: (c, node) => moveTo(c, beside(c.scene.layout, node, -1)),
	ArrowDown: (c, node) => moveTo(c, widestCallee(c.scene.layout, node)),
	ArrowUp: (c, node) => moveTo(c, c.zoom.tree.parent[node]!),
	Home: c => moveTo(c, 0),
	Enter: zoomTo,
	" ": zoomTo,
	Backspace: zoomBack,
	Escape: zoomReset,
	s: openFunction,
	c: (c, node) => c.copy(node),
};

export function pressKey(c: FlameControl, event: KeyboardEvent): void {
	const key = !c.scene.icicle && UPSIDE_DOWN[event.key] || event.key;
	const act = Object.hasOwn(ACTS, key) ? ACTS[key] : undefined;

	if (!act || event.ctrlKey || event.altKey || event.metaKey)
		return;
	event.preventDefault();
	c.pending = "focus";
	hideTip(c.tip);
	act(c, c.zoom.current);
}

export function focusChange(c: FlameControl, hasFocus: boolean): void {
	c.scene.hasFocus = hasFocus;
	if (hasFocus)
		reveal(c, c.zoom.current);
	else
		hideTip(c.tip);
	c.invalidate();
}
