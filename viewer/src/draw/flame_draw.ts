/* SPDX-License-Identifier: MIT */
/*
 * flame_draw.ts - a picture of a call tree: the visible rows of a layout
 *
 * Coordinates are pixels of the device.
 */
import { threadName } from "../engine/rows";
import { NONE, type Profile } from "../profile";
import { formatChange } from "../text";
import type { Tree } from "../tree";
import { changeOf } from "./flame_change";
import type { Layout } from "./flame_layout";
import { cutMiddle, shown, type Labels, type Width } from "./labels";
import { shadeOf, type Palette } from "./palette";
import type { Surface } from "./surface";

export const ROW = 19;		/* CSS pixels */

export interface FlameScene {
	profile: Profile;
	tree: Tree;
	layout: Layout;
	zoomed: number;
	icicle: boolean;
	scrollTop: number;	/* CSS pixels */
	height: number;		/* of all rows, or more */
	current: number;	/* frame with the keyboard's focus; -1 */
	hovered: number;	/* box; -1 */
	isSearching: boolean;
}

/* By frame: threads and the root have no function. */
export function nodeName(profile: Profile, tree: Tree, node: number): string {
	const func = tree.func[node]!;

	if (func !== NONE)
		return profile.functions.name[func] ?? "";
	return tree.thread[node] !== NONE ?
	       threadName(profile, tree.thread[node]!) :
	       node === 0 ? "all" : "[no stack]";
}

/* CSS pixels from the upper edge of all rows. */
export function yOf(scene: FlameScene, row: number): number {
	return scene.icicle ? row * ROW : scene.height - (row + 1) * ROW;
}

export function rowAt(scene: FlameScene, y: number): number {
	return Math.floor((scene.icicle ? y : scene.height - y) / ROW);
}

function colourOf(scene: FlameScene, palette: Palette, node: number): string {
	const { profile, tree } = scene, func = tree.func[node]!;

	if (tree.change) {
		const { sign, level } = changeOf(tree, node);

		return sign === 0 ? palette.css.same : sign < 0 ?
		       palette.css[`less${level}`] :
		       palette.css[`more${level}`];
	}
	if (func === NONE)
		return palette.css.group;
	if (profile.functions.name[func] === "[unknown]")
		return palette.css.unknown;
	const layer = profile.functions.layer[func]!, shade = shadeOf(func);

	return tree.inlined[node] && layer === 1 ? palette.inlinedCss[shade]! :
	       palette.layerCss[layer]![shade]!;
}

const patterns = new WeakMap<Palette, Map<string, CanvasPattern | null>>();

/* Lines from the lower left; @colour and nothing between. */
function hatch(surface: Surface, colour: string): CanvasPattern | null {
	const { context, scale, palette } = surface;
	const kept = patterns.get(palette) ?? new Map();
	const key = `${colour} ${scale}`, side = Math.round(6 * scale);

	patterns.set(palette, kept);
	if (kept.has(key))
		return kept.get(key)!;
	const tile = document.createElement("canvas");

	tile.width = tile.height = side;
	const pen = tile.getContext("2d")!;

	pen.strokeStyle = colour;
	pen.lineWidth = 1.2 * scale;
	pen.beginPath();
	for (const at of [-side, 0, side]) {
		pen.moveTo(at - 1, side + 1);
		pen.lineTo(at + side + 1, -1);
	}
	pen.stroke();
	const pattern = context.createPattern(tile, "repeat");

	kept.set(key, pattern);
	return pattern;
}

/* A strip at the lower edge, as long as the share of the time in waits. */
function drawWaiting(surface: Surface, scene: FlameScene, node: number,
		     x: number, y: number, width: number, height: number): void {
	const { context, palette, scale } = surface;
	const { waiting, total } = scene.tree;
	const share = waiting[node]! / (total[node]! || 1);
	const pattern = hatch(surface, palette.css.text);
	const isAll = share > 0.995;
	const strip = isAll ? height : Math.round(5 * scale);

	if (share <= 0 || !pattern)
		return;
	context.globalAlpha = isAll ? 0.28 : 0.75;
	context.fillStyle = pattern;
	context.fillRect(x, y + height - strip, Math.max(1, width *
		Math.min(1, share)), strip);
	context.globalAlpha = 1;
}

function drawRest(surface: Surface, scene: FlameScene, box: number, x: number,
		  y: number, width: number, height: number): void {
	const { context, palette } = surface, { layout } = scene;
	const isHit = scene.isSearching && layout.hit[box];
	const pattern = hatch(surface, isHit ? palette.css.hit :
			      palette.css.edge);

	context.fillStyle = palette.css.page;
	context.fillRect(x, y, width, height);
	if (pattern) {
		context.fillStyle = pattern;
		context.fillRect(x, y, width, height);
	}
	context.strokeStyle = isHit ? palette.css.hit : palette.css.edge;
	if (width > 4)
		context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
}

/* "+5.1% name" in a comparison: the sign tells what the colour does. */
function labelOf(scene: FlameScene, names: Labels, width: Width, node: number,
		 room: number): string {
	if (!scene.tree.change)
		return names.fit(node, room);
	const { sign, ratio } = changeOf(scene.tree, node);

	return sign === 0 ? names.fit(node, room) :
	       cutMiddle(`${formatChange(ratio)} ${shown(nodeName(scene.profile,
			scene.tree, node))}`, room, width);
}

interface Pen {
	surface: Surface;
	scene: FlameScene;
	names: Labels;
	width: Width;
}

function drawBox({ surface, scene, names, width: textWidth }: Pen, box: number,
		 row: number): void {
	const { context, palette, scale } = surface, { layout } = scene;
	const x = Math.round(layout.x[box]! * scale);
	const end = Math.round((layout.x[box]! + layout.width[box]!) * scale);
	const y = Math.round((yOf(scene, row) - scene.scrollTop) * scale);
	const height = Math.round((ROW - 1) * scale);
	const gap = end - x > 3 * scale ? Math.max(1, Math.round(0.7 * scale)) : 0;
	const width = Math.max(1, end - x - gap), node = layout.node[box]!;

	if (layout.isRest[box]) {
		drawRest(surface, scene, box, x, y, width, height);
		return;
	}
	const isDim = scene.isSearching && !layout.hit[box];
	/* callers of the zoomed frame are a way back, not a part */
	const isAbove = scene.tree.depth[node]! <
			scene.tree.depth[scene.zoomed]!;

	context.globalAlpha = isDim ? 0.3 : isAbove ? 0.55 : 1;
	context.fillStyle = colourOf(scene, palette, node);
	context.fillRect(x, y, width, height);
	context.globalAlpha = 1;
	if (scene.tree.waiting[node]! > 0 && !scene.tree.change)
		drawWaiting(surface, scene, node, x, y, width, height);
	if (scene.isSearching && layout.hit[box]) {
		context.fillStyle = palette.css.hit;
		context.fillRect(x, y, width, Math.round(3 * scale));
	}
	if (width < 24 * scale)
		return;
	context.fillStyle = isDim ? palette.css.dim : palette.css.text;
	context.fillText(labelOf(scene, names, textWidth, node,
				 width - 7 * scale),
			 x + 4 * scale, y + height - 5 * scale);
}

/* The keyboard's frame, and the one under the pointer. */
function drawFrames(surface: Surface, scene: FlameScene): void {
	const { context, palette, scale } = surface, { layout, tree } = scene;
	const frame = (box: number, colour: string, thick: number) => {
		const isRest = layout.isRest[box] ? 1 : 0;
		const row = tree.depth[layout.node[box]!]! + isRest;
		const x = layout.x[box]! * scale, half = thick / 2;

		context.strokeStyle = colour;
		context.lineWidth = thick;
		context.strokeRect(x + half, (yOf(scene, row) -
			scene.scrollTop) * scale + half, Math.max(thick,
			layout.width[box]! * scale - thick), ROW * scale -
			scale - thick);
	};

	if (scene.hovered >= 0 && scene.hovered < layout.n)
		frame(scene.hovered, palette.css.text, 1.5 * scale);
	if (scene.current < 0)
		return;
	const row = tree.depth[scene.current]!;

	for (let i = layout.start[row] ?? 0; i < (layout.start[row + 1] ?? 0);
	     i++)
		if (layout.node[i] === scene.current && !layout.isRest[i])
			frame(i, palette.css.accent, 2.5 * scale);
}

export function drawFlame(surface: Surface, scene: FlameScene, names: Labels,
			  width: Width): void {
	const { context, palette, scale } = surface, { layout } = scene;
	const pen = { surface, scene, names, width };

	context.fillStyle = palette.css.page;
	context.fillRect(0, 0, surface.width, surface.height);
	context.lineWidth = Math.max(1, Math.round(0.7 * scale));
	for (let row = 0; row < layout.rows; row++) {
		const y = (yOf(scene, row) - scene.scrollTop) * scale;

		if (y + ROW * scale < 0 || y > surface.height)
			continue;
		for (let i = layout.start[row]!; i < layout.start[row + 1]!; i++)
			drawBox(pen, i, row);
	}
	drawFrames(surface, scene);
}
