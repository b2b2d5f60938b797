/* SPDX-License-Identifier: MIT */
/*
 * flame_layout.ts - which frames of a tree a picture shows, and where
 *
 * Frames below one pixel are not laid out; those of one caller are one box
 * beside its other callees, so boxes are bounded by pixels times depth.  Only
 * callees of frames that are shown are visited.
 */
import { NONE } from "../profile";
import type { Tree } from "../tree";

/*
 * Boxes by row, from the left: those of row r are start[r] to start[r + 1] - 1.
 * The row of a frame is its depth in the tree.
 */
export interface Layout {
	rows: number;
	start: Uint32Array;
	n: number;
	/* the frame; of a box of small frames their caller */
	node: Uint32Array;
	isRest: Uint8Array;
	x: Float64Array;	/* pixels */
	width: Float64Array;
	hit: Uint8Array;	/* the frame, or one in the rest, is found */
}

export interface LayoutInput {
	tree: Tree;
	zoomed: number;		/* the frame that is as wide as the picture */
	width: number;		/* pixels */
	least: number;		/* pixels: narrower frames are in the rest */
	found: Found | null;
}

/* What a search found, by frame. */
export interface Found {
	is: Uint8Array;		/* the frame */
	within: Uint8Array;	/* the frame or one that it leads to */
	matched: Float64Array;	/* total of outermost found frames within */
}

interface Boxes {
	node: number[];
	isRest: number[];
	x: number[];
	width: number[];
	hit: number[];
}

function put(b: Boxes, node: number, isRest: number, x: number, width: number,
	     hit: number): void {
	b.node.push(node);
	b.isRest.push(isRest);
	b.x.push(x);
	b.width.push(width);
	b.hit.push(hit);
}

/* The frames from the root to @node. */
export function pathTo(tree: Tree, node: number): number[] {
	const path: number[] = [];

	for (let at = node; at !== NONE; at = tree.parent[at]!)
		path.push(at);
	return path.reverse();
}

/* Callees of the box @i: wide ones next to each other, then the rest. */
function putCallees(b: Boxes, input: LayoutInput, i: number): void {
	const { tree, least, found } = input, node = b.node[i]!;
	const perWeight = b.width[i]! / tree.total[node]!;
	let x = b.x[i]!, rest = 0, restHit = 0;

	for (let c = tree.firstChild[node]!; c !== NONE;
	     c = tree.nextSibling[c]!) {
		const width = tree.total[c]! * perWeight;

		if (width >= least) {
			put(b, c, 0, x, width, found ? found.is[c]! : 0);
			x += width;
		} else {
			rest += width;
			restHit |= found ? found.within[c]! : 0;
		}
	}
	if (rest >= least)
		put(b, node, 1, x, rest, restHit);
}

export function layOut(input: LayoutInput): Layout {
	const { tree, zoomed, width, found } = input;
	const b: Boxes = { node: [], isRest: [], x: [], width: [], hit: [] };
	const path = pathTo(tree, zoomed), start: number[] = [];

	for (const node of path) {
		start.push(b.node.length);
		put(b, node, 0, 0, width, found ? found.is[node]! : 0);
	}
	/* a row after the other, until one is empty */
	for (let from = b.node.length - 1; from < b.node.length;) {
		const to = b.node.length;

		start.push(to);
		for (let i = from; i < to; i++)
			if (!b.isRest[i] && tree.total[b.node[i]!]! > 0)
				putCallees(b, input, i);
		from = to;
	}
	return {
		rows: start.length - 1, n: b.node.length,
		start: Uint32Array.from(start),
		node: Uint32Array.from(b.node),
		isRest: Uint8Array.from(b.isRest),
		x: Float64Array.from(b.x), width: Float64Array.from(b.width),
		hit: Uint8Array.from(b.hit),
	};
}

/* The box of row @row at @x, or the one less than @slack away; -1: none. */
export function boxAt(layout: Layout, row: number, x: number,
		      slack = 0): number {
	let lo = layout.start[row] ?? 0, hi = layout.start[row + 1] ?? lo;
	const end = hi;

	while (lo < hi) {
		const middle = (lo + hi) >>> 1;

		if (layout.x[middle]! + layout.width[middle]! <= x)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < end && layout.x[lo]! - slack <= x ? lo : -1;
}

/* The box of the frame @node; -1: it is not shown. */
export function boxOf(layout: Layout, tree: Tree, node: number): number {
	const row = tree.depth[node]!;

	for (let i = layout.start[row] ?? 0; i < (layout.start[row + 1] ?? 0);
	     i++)
		if (layout.node[i] === node && !layout.isRest[i])
			return i;
	return -1;
}

/*
 * What is found where @hits has the functions: a time counts once for a stack,
 * however many of its frames are found.
 */
export function find(tree: Tree, hits: Uint8Array): Found {
	const is = new Uint8Array(tree.n), within = new Uint8Array(tree.n);
	const matched = new Float64Array(tree.n);

	for (let i = 0; i < tree.n; i++)
		is[i] = tree.func[i] === NONE ? 0 : hits[tree.func[i]!]!;
	for (let i = tree.n; i-- > 0;) {
		const parent = tree.parent[i]!;

		if (is[i]) {
			within[i] = 1;
			matched[i] = tree.total[i]!;
		}
		if (parent !== NONE && within[i]) {
			within[parent] = 1;
			matched[parent]! += matched[i]!;
		}
	}
	return { is, within, matched };
}
