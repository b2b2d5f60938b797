/* SPDX-License-Identifier: MIT */
/*
 * in_time.ts - sampled stacks one after the other, thread by thread
 *
 * Samples that follow each other share the frames that their stacks have in
 * common; a function that returns and is called again is a node of its own.
 * Widths are what samples stand for, so the time between samples has none.
 */
import { NONE } from "../profile";
import { byKey } from "./arrays";
import type { Chosen } from "./chosen";
import { emptyTree, linkTree, type CountedTree } from "./tree_nodes";

export const MOST_NODES = 1e6;

export interface InTime {
	tree: CountedTree;
	/* of the weight: sums of waits or calls have no place in time */
	unplaced: number;
	/* of the weight: what is left out beyond MOST_NODES */
	beyond: number;
}

/* Nodes that grow in the order of time; @open has those of the last stack. */
interface Growing {
	parent: number[];
	path: number[];		/* of the chosen paths; 0: a thread, or the root */
	thread: number[];
	begin: number[];
	open: number[];		/* by depth: the root, the thread, frames */
	at: number;		/* the weight so far */
}

function put(g: Growing, path: number, thread: number): void {
	const parent = g.open.length ? g.open[g.open.length - 1]! : NONE;

	g.open.push(g.parent.length);
	g.parent.push(parent);
	g.path.push(path);
	g.thread.push(thread);
	g.begin.push(g.at);
}

/* The paths from the outermost frame to @path. */
function framesOf(parents: Uint32Array, path: number): number[] {
	const frames: number[] = [];

	for (let at = path; at > 0; at = parents[at]!)
		frames.push(at);
	return frames.reverse();
}

const ABOVE = 2;		/* nodes: the root and the thread */

/* Close what is open but not in @path, open the rest of @path. */
function change(g: Growing, parents: Uint32Array, path: number): void {
	if (g.path[g.open[g.open.length - 1]!] === path)
		return;
	const frames = framesOf(parents, path);
	let same = 0;

	while (same < frames.length &&
	       g.path[g.open[same + ABOVE]!] === frames[same])
		same++;
	g.open.length = same + ABOVE;
	for (const frame of frames.slice(same))
		put(g, frame, NONE);
}

function finish(chosen: Chosen, g: Growing): CountedTree {
	const n = g.parent.length, { paths } = chosen;
	const tree = emptyTree(n, chosen.unit);

	tree.parent.set(g.parent);
	tree.path.set(g.path);
	tree.thread.set(g.thread);
	for (let i = 1; i < n; i++) {
		tree.func[i] = paths.func[tree.path[i]!]!;
		tree.inlined[i] = paths.inlined[tree.path[i]!]!;
	}
	tree.begin = Float64Array.from(g.begin);
	return tree;
}

export function treeInTime(chosen: Chosen): InTime {
	const { profile, paths, samples: rows } = chosen;
	const { stack, thread, weight, count, event, placed } = profile.samples;
	const isWait = profile.events.map(e => e.kind === "wait");
	const g: Growing = { parent: [], path: [], thread: [], begin: [],
			     open: [], at: 0 };
	const node = new Uint32Array(rows.length).fill(NONE);
	const order = byKey(rows.map(i => thread[i]!), rows.length,
			    profile.threads.length).rows;
	let last = NONE, unplaced = 0, beyond = 0;

	put(g, 0, NONE);
	for (const k of order) {
		const i = rows[k]!;

		if (!placed[i]) {
			unplaced += weight[i]!;
			continue;
		}
		if (g.parent.length >= MOST_NODES) {
			beyond += weight[i]!;
			continue;
		}
		if (thread[i] !== last) {
			g.open.length = 1;
			put(g, 0, last = thread[i]!);
		}
		change(g, paths.parent, paths.of[stack[i]!]!);
		node[k] = g.open[g.open.length - 1]!;
		g.at += weight[i]!;
	}
	const tree = finish(chosen, g);

	rows.forEach((i, k) => {
		if (node[k] === NONE)
			return;
		tree.self[node[k]!]! += weight[i]!;
		tree.selfCount[node[k]!]! += count[i]!;
		if (isWait[event[i]!])
			tree.waiting[node[k]!]! += weight[i]!;
	});
	linkTree(tree);
	return { tree, unplaced, beyond };
}
