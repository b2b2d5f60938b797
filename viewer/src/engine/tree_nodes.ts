/* SPDX-License-Identifier: MIT */
/* tree_nodes.ts - the nodes of call trees: their order, links and totals */
import { NONE } from "../profile";
import type { Tree } from "../tree";
import { byKey } from "./arrays";

export interface CountedTree extends Tree {
	selfCount: Float64Array;
	totalCount: Float64Array;
	path: Uint32Array;	/* of the paths; 0: the root, or a thread */
}

export function emptyTree(n: number, unit: "ns" | "count"): CountedTree {
	return {
		n, unit, change: null, path: new Uint32Array(n),
		thread: new Uint32Array(n).fill(NONE),
		parent: new Uint32Array(n).fill(NONE),
		func: new Uint32Array(n).fill(NONE),
		inlined: new Uint8Array(n),
		firstChild: new Uint32Array(n).fill(NONE),
		nextSibling: new Uint32Array(n).fill(NONE),
		depth: new Uint16Array(n),
		self: new Float64Array(n), total: new Float64Array(n),
		selfCount: new Float64Array(n),
		totalCount: new Float64Array(n),
		waiting: new Float64Array(n),
	};
}

/* Depths, links and totals, of self, where parents precede their children. */
export function linkTree(tree: CountedTree): void {
	tree.total.set(tree.self);
	tree.totalCount.set(tree.selfCount);
	for (let i = 1; i < tree.n; i++)
		tree.depth[i] = tree.depth[tree.parent[i]!]! + 1;
	for (let i = tree.n; i-- > 1;) {
		const parent = tree.parent[i]!;

		tree.nextSibling[i] = tree.firstChild[parent]!;
		tree.firstChild[parent] = i;
		tree.total[parent]! += tree.total[i]!;
		tree.totalCount[parent]! += tree.totalCount[i]!;
		tree.waiting[parent]! += tree.waiting[i]!;
	}
}

/* Nodes in depth-first order, and by node its place in it. */
interface Order {
	order: Uint32Array;
	place: Uint32Array;
}

/*
 * The order of @n nodes, 0 being the root, whose parents are in @parent;
 * @compare orders the children of a node.
 */
export function depthFirst(parent: ArrayLike<number>, n: number,
			   compare: (a: number, b: number) => number): Order {
	const children = byKey(parent, n, n), open = [0];
	const order = new Uint32Array(n), place = new Uint32Array(n);
	let next = 0;

	while (open.length) {
		const node = open.pop()!;
		const at = children.rows.subarray(children.start[node],
						  children.start[node + 1]);

		place[node] = next;
		order[next++] = node;
		if (at.length > 1)
			at.sort(compare);
		/* the last one is taken first */
		for (let i = at.length; i-- > 0;)
			open.push(at[i]!);
	}
	return { order, place };
}
