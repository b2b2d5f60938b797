/* SPDX-License-Identifier: MIT */
/*
 * flame_layout.ts - the frames of a flame graph that can be seen, as boxes
 *
 * A row is a depth of the tree; the boxes of a row are from left to right.  The
 * frames from the root to the one that is shown have all of the width.  Frames
 * narrower than a pixel are not visited further: neighbours of one caller are
 * one box, so a layout costs its pixels and depth, not the tree's nodes.
 */
import { NONE } from "../profile";
import type { Tree } from "../tree";

export interface Layout {
	tree: Tree;
	top: number;		/* the node that has all of the width */
	width: number;		/* pixels, the unit of left and right */
	/* by box */
	node: number[];		/* a frame; of smaller frames their first one */
	left: number[];
	right: number[];
	rest: number[];		/* how many smaller frames; 0: it is a frame */
	/* by row its first box; one more at the end */
	start: number[];
}

export const rowsIn = (l: Layout): number => l.start.length - 1;

function pathTo(tree: Tree, node: number): number[] {
	const path: number[] = [];

	for (let at = node; at !== NONE; at = tree.parent[at]!)
		path.push(at);
	return path.reverse();
}

function put(l: Layout, node: number, left: number, right: number,
	     rest: number): void {
	l.node.push(node);
	l.left.push(left);
	l.right.push(right);
	l.rest.push(rest);
}

/*
 * The callees of the frame in @box, from its left edge on; in the order of time
 * each where it begins.
 */
function putCallees(l: Layout, box: number, scale: number): void {
	const { tree } = l, { begin } = tree, end = l.right[box]!;
	let at = l.left[box]!, from = at, first = NONE, n = 0;
	const putSmaller = () => {
		if (n)
			put(l, first, from, at, n);
		n = 0;
	};

	for (let c = tree.firstChild[l.node[box]!]!; c !== NONE;
	     c = tree.nextSibling[c]!) {
		const size = tree.total[c]! * scale;
		const left = begin ? (begin[c]! - begin[l.top]!) * scale : at;

		if (!(size > 0))
			continue;
		if (left - at >= 1) {
			putSmaller();
			at = left;
		}
		const right = Math.min(end, at + size);

		if (size >= 1) {
			putSmaller();
			put(l, c, at, right, 0);
		} else if (n++ === 0) {
			first = c;
			from = at;
		}
		at = right;
	}
	putSmaller();
}

/* Lay out what is below @top, and its callers, in @width pixels. */
export function layOut(tree: Tree, top: number, width: number): Layout {
	const l: Layout = { tree, top, width, node: [], left: [], right: [],
			    rest: [], start: [] };
	const scale = width / (tree.total[top] || 1);
	let row: number;

	for (const node of pathTo(tree, top)) {
		l.start.push(l.node.length);
		put(l, node, 0, width, 0);
	}
	for (row = l.start.length - 1; l.start[row]! < l.node.length; row++) {
		const end = l.node.length;

		l.start.push(end);
		for (let box = l.start[row]!; box < end; box++)
			if (!l.rest[box])
				putCallees(l, box, scale);
	}
	l.start.pop();
	l.start.push(l.node.length);
	return l;
}

/* The box of @row at @x pixels; -1: none. */
export function boxAt(l: Layout, row: number, x: number): number {
	let lo = l.start[row] ?? 0, hi = l.start[row + 1] ?? lo;

	while (lo < hi) {
		const middle = (lo + hi) >>> 1;

		if (l.right[middle]! <= x)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < (l.start[row + 1] ?? 0) && l.left[lo]! <= x ? lo : -1;
}

/* The box that is the frame @node; -1: it is not seen. */
export function boxOf(l: Layout, node: number): number {
	const row = l.tree.depth[node]!, end = l.start[row + 1] ?? 0;

	for (let box = l.start[row] ?? 0; box < end; box++)
		if (l.node[box] === node && !l.rest[box])
			return box;
	return -1;
}

/* The next frame of the row to the right (@step 1) or left (-1); NONE. */
export function beside(l: Layout, node: number, step: 1 | -1): number {
	const row = l.tree.depth[node]!, box = boxOf(l, node);

	if (box < 0)
		return NONE;
	for (let b = box + step; b >= l.start[row]! && b < l.start[row + 1]!;
	     b += step)
		if (!l.rest[b])
			return l.node[b]!;
	return NONE;
}

/* The callee of @node with the most; NONE: none is seen. */
export function widestCallee(l: Layout, node: number): number {
	const row = l.tree.depth[node]! + 1, end = l.start[row + 1] ?? 0;
	let found = NONE, most = 0;

	for (let box = l.start[row] ?? 0; box < end; box++) {
		const callee = l.node[box]!, size = l.tree.total[callee]!;

		if (!l.rest[box] && l.tree.parent[callee] === node &&
		    size > most) {
			found = callee;
			most = size;
		}
	}
	return found;
}

/* The frames of @node's row with the same caller that are seen, @node too. */
export function siblings(l: Layout, node: number): number[] {
	const row = l.tree.depth[node]!, found: number[] = [];

	for (let box = l.start[row] ?? 0; box < (l.start[row + 1] ?? 0); box++)
		if (!l.rest[box] &&
		    l.tree.parent[l.node[box]!] === l.tree.parent[node])
			found.push(l.node[box]!);
	return found;
}

/* -- from tree to tree -------------------------------------------------- */

/* The node of @to with the path of functions of @node in @from; else 0. */
export function sameNode(from: Tree, node: number, to: Tree): number {
	let at = 0;

	for (const n of pathTo(from, node).slice(1)) {
		let c = to.firstChild[at]!;

		while (c !== NONE && (to.func[c] !== from.func[n] ||
				      to.thread[c] !== from.thread[n]))
			c = to.nextSibling[c]!;
		if (c === NONE || !(to.total[c]! > 0))
			return 0;
		at = c;
	}
	return at;
}

/* What of @tree is in stacks with a function of @found; a stack counts once. */
export function foundIn(tree: Tree, found: Uint8Array):
		{ total: number; frames: number } {
	const covered = new Uint8Array(tree.n);
	let total = 0, frames = 0;

	for (let i = 1; i < tree.n; i++) {
		const func = tree.func[i]!, above = covered[tree.parent[i]!]!;
		const is = func !== NONE && found[func] === 1;

		covered[i] = above | (is ? 1 : 0);
		if (is) {
			frames++;
			total += above ? 0 : tree.total[i]!;
		}
	}
	return { total, frames };
}
