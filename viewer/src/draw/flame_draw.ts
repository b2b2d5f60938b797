/* SPDX-License-Identifier: MIT */
/*
 * flame_draw.ts - the picture of a layout: boxes as pixels, then their names
 *
 * Only the rows in sight are drawn.  All sizes here are pixels of the device.
 */
import { NONE, type Profile } from "../profile";
import type { Tree } from "../tree";
import { boxOf, rowsIn, type Layout } from "./flame_layout";
import type { Labels } from "./labels";
import { shadeOf, type Palette } from "./palette";
import { fillBox, fillPattern, mix, type Raster } from "./raster";
import type { Surface } from "./surface";

export const ROW = 19;		/* CSS pixels */
const PAD = 4;			/* CSS pixels before a name */

export interface FlameScene {
	profile: Profile;
	layout: Layout;
	icicle: boolean;
	found: Uint8Array | null;	/* by function; null: no search */
	scrollTop: number;		/* CSS pixels */
	current: number;		/* node; NONE */
	hasFocus: boolean;
	hover: number;			/* box; -1 */
}

export const fontOf = (scale: number): string =>
	`${Math.round(12 * scale)}px system-ui, "Segoe UI", "Noto Sans", ` +
	`"DejaVu Sans", sans-serif`;

/* The row's upper edge in the picture of all rows, in CSS pixels. */
export function rowTop(scene: FlameScene, row: number): number {
	const { layout, icicle } = scene;

	return ROW * (icicle ? row : rowsIn(layout) - 1 - row);
}

export function rowAt(scene: FlameScene, y: number): number {
	const at = Math.floor((y + scene.scrollTop) / ROW);

	return scene.icicle ? at : rowsIn(scene.layout) - 1 - at;
}

/* -- colours ------------------------------------------------------------ */

/* A change by this much has the next deeper colour, as in 'seam diff'. */
const LEVELS = [0.05, 0.20];
const MORE = ["more0", "more1", "more2"] as const;
const LESS = ["less0", "less1", "less2"] as const;

/* Grey: no change, or too few samples to say so. */
function changePixel(palette: Palette, tree: Tree, node: number): number {
	const change = tree.change![node]!, b = tree.total[node]!;
	const a = b - change, size = Math.abs(change) / Math.max(a, 1e-9 * b);
	const level = LEVELS.filter(l => size >= l).length;

	return tree.few?.[node] || size < 0.01 ? palette.pixel.same :
	       palette.pixel[(change > 0 ? MORE : LESS)[level]!];
}

function framePixel(palette: Palette, scene: FlameScene, node: number): number {
	const { tree } = scene.layout, func = tree.func[node]!;

	if (func === NONE)
		return palette.pixel.group;
	if (scene.found?.[func])
		return palette.pixel.hit;
	return tree.change ? changePixel(palette, tree, node) :
	       tree.inlined[node] ? palette.pixel.inlined :
	       palette.layers[scene.profile.functions.layer[func]!]![
			shadeOf(func)]!;
}

/* -- boxes -------------------------------------------------------------- */

interface Picture {
	raster: Raster;
	image: ImageData;
}

let last: Picture | null = null;	/* of the same size, to be used again */

function pictureOf({ context, width, height }: Surface): Picture {
	if (last?.raster.width !== width || last.raster.height !== height) {
		const image = context.createImageData(width, height);

		last = { image, raster: { width, height,
			pixels: new Uint32Array(image.data.buffer) } };
	}
	return last;
}

/* The rows that are in sight, one more at the end. */
function rowsInSight(scene: FlameScene, height: number): [number, number] {
	const a = rowAt(scene, 0), b = rowAt(scene, height);

	return [Math.max(0, Math.min(a, b)),
		Math.min(rowsIn(scene.layout), Math.max(a, b) + 1)];
}

interface Box {
	x0: number;
	x1: number;
	y0: number;
	y1: number;
}

/* Neighbours are a pixel apart where they are wide enough for it. */
function edges(layout: Layout, box: number, y0: number, y1: number,
	       scale: number): Box {
	const x0 = Math.round(layout.left[box]!);
	const x1 = Math.round(layout.right[box]!);

	return { x0, x1: x1 - x0 > 3 ? x1 - 1 : x1, y0,
		 y1: y1 - Math.max(1, Math.round(scale)) };
}

/* The share of a frame that waited, from its right edge. */
function fillWaiting(r: Raster, palette: Palette, b: Box, share: number,
		     base: number, scale: number): void {
	const from = b.x1 - Math.round((b.x1 - b.x0) * Math.min(1, share));

	fillBox(r, from, b.y0, b.x1, b.y1, mix(base, palette.pixel.page, 0.45));
	fillPattern(r, from, b.y0, b.x1, b.y1,
		    mix(palette.pixel.blocked, base, 0.6), "hatch", scale, 0);
}

function fillRow(r: Raster, { palette, scale }: Surface, scene: FlameScene,
		 row: number, y0: number, y1: number): void {
	const { layout } = scene, { tree, top } = layout;
	const isCaller = row < tree.depth[top]!;

	for (let i = layout.start[row]!; i < layout.start[row + 1]!; i++) {
		const b = edges(layout, i, y0, y1, scale);
		const node = layout.node[i]!, share = tree.waiting[node]! /
			tree.total[node]!;

		if (layout.rest[i]) {
			fillBox(r, b.x0, b.y0, b.x1, b.y1,
				palette.pixel.raised);
			fillPattern(r, b.x0, b.y0, b.x1, b.y1,
				    palette.pixel.edge, "hatch", scale, 0);
			continue;
		}
		const full = framePixel(palette, scene, node);
		const pixel = isCaller ? mix(full, palette.pixel.page, 0.5) :
			      full;

		fillBox(r, b.x0, b.y0, b.x1, b.y1, pixel);
		if (share > 0)
			fillWaiting(r, palette, b, share, pixel, scale);
	}
}

/* -- names -------------------------------------------------------------- */

/* An id of a label: functions, then threads, then the root, then no stack. */
export function labelOf(profile: Profile, tree: Tree, node: number): number {
	const func = tree.func[node]!, n = profile.functions.n;
	const thread = tree.thread[node]!, t = profile.threads.length;

	return node === 0 ? n + t : func !== NONE ? func :
	       thread !== NONE ? n + thread : n + t + 1;
}

function writeRow({ context, scale }: Surface, scene: FlameScene,
		  labels: Labels, row: number, baseline: number): void {
	const { layout, profile } = scene, pad = PAD * scale;

	for (let i = layout.start[row]!; i < layout.start[row + 1]!; i++) {
		const left = Math.round(layout.left[i]!);
		const room = layout.right[i]! - left - 2 * pad;

		if (layout.rest[i] || room < 12 * scale)
			continue;
		const text = labels.fit(labelOf(profile, layout.tree,
						layout.node[i]!), room);

		if (text)
			context.fillText(text, left + pad, baseline);
	}
}

/* -- what is pointed at ------------------------------------------------- */

function outline({ context, scale }: Surface, scene: FlameScene, box: number,
		 colour: string, thick: number): void {
	const { layout } = scene, line = thick * scale;
	let row = 0;

	while (layout.start[row + 1]! <= box)
		row++;
	const left = Math.round(layout.left[box]!);
	const right = Math.max(left + 2 * line, layout.right[box]!);

	context.strokeStyle = colour;
	context.lineWidth = line;
	context.strokeRect(left + line / 2, (rowTop(scene, row) -
		scene.scrollTop) * scale + line / 2, right - left - line,
		ROW * scale - line);
}

export function drawFlame(surface: Surface, scene: FlameScene,
			  labels: Labels): void {
	const { context, palette, scale, height } = surface;
	const { raster, image } = pictureOf(surface);
	const [first, end] = rowsInSight(scene, height / scale);
	const yOf = (row: number) => Math.round((rowTop(scene, row) -
		scene.scrollTop) * scale);

	raster.pixels.fill(palette.pixel.page);
	for (let row = first; row < end; row++)
		fillRow(raster, surface, scene, row, yOf(row),
			yOf(row) + Math.round(ROW * scale));
	context.putImageData(image, 0, 0);
	context.font = fontOf(scale);
	context.textBaseline = "middle";
	context.fillStyle = palette.css.text;
	for (let row = first; row < end; row++)
		writeRow(surface, scene, labels, row,
			 yOf(row) + Math.round((ROW - 0.5) / 2 * scale));
	if (scene.hover >= 0)
		outline(surface, scene, scene.hover, palette.css.text, 1);
	const current = scene.current === NONE ? -1 :
			boxOf(scene.layout, scene.current);

	if (current >= 0)
		outline(surface, scene, current, scene.hasFocus ?
			palette.css.accent : palette.css.edge,
			scene.hasFocus ? 2.5 : 1.5);
}
