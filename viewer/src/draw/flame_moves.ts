/* SPDX-License-Identifier: MIT */
/* flame_moves.ts - from frame to frame by keys, clicks and other trees */
import { NONE } from "../profile";
import type { Tree } from "../tree";
import { boxOf, pathTo, type Layout } from "./flame_layout";

export const FLAME_KEYS = "Arrow keys: the frame beside, the caller, the " +
	"largest callee · Enter or click: zoom · Backspace: back · Escape: " +
	"all · s or double click: the function in the sandwich · " +
	"Home: the root";

/* The next frame of the same row that is shown, in direction @step. */
export function besideOf(tree: Tree, layout: Layout, node: number,
			 step: -1 | 1): number {
	const row = tree.depth[node]!, box = boxOf(layout, tree, node);

	for (let i = box + step; box >= 0 && i >= layout.start[row]! &&
	     i < layout.start[row + 1]!; i += step)
		if (!layout.isRest[i])
			return layout.node[i]!;
	return NONE;
}

/* Callers outside of the picture lead to the callee inside. */
export function largestChild(tree: Tree, layout: Layout, node: number): number {
	let largest = NONE;

	for (let c = tree.firstChild[node]!; c !== NONE;
	     c = tree.nextSibling[c]!)
		if ((largest === NONE || tree.total[c]! > tree.total[largest]!) &&
		    boxOf(layout, tree, c) >= 0)
			largest = c;
	return largest;
}

/*
 * What a click on @box zooms to: the frame; of small frames their caller, or
 * the widest of them where the caller has all of the width already.
 */
export function targetOf(tree: Tree, layout: Layout, box: number,
			 zoomed: number): number {
	const node = layout.node[box]!;
	let widest = NONE;

	if (!layout.isRest[box] || node !== zoomed)
		return node;
	for (let c = tree.firstChild[node]!; c !== NONE;
	     c = tree.nextSibling[c]!)
		if (boxOf(layout, tree, c) < 0 && (widest === NONE ||
		    tree.total[c]! > tree.total[widest]!))
			widest = c;
	return widest === NONE ? node : widest;
}

/* The frame of @to with the functions of @node's path in @from; NONE. */
export function samePath(from: Tree, to: Tree, node: number): number {
	let at = 0;

	for (const step of pathTo(from, node).slice(1)) {
		let c = to.firstChild[at]!;

		while (c !== NONE && (to.func[c] !== from.func[step] ||
				      to.thread[c] !== from.thread[step] ||
				      to.inlined[c] !== from.inlined[step]))
			c = to.nextSibling[c]!;
		if (c === NONE)
			return NONE;
		at = c;
	}
	return at;
}
