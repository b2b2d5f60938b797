/* SPDX-License-Identifier: MIT */
/*
 * sums.ts - the chosen samples and calls added up by path: the Tree
 *
 * As src/model/profile/tally.c and tree.c.  Of a row of samples, count is the
 * number of samples, or of calls; weight is their time or their events.
 */
import { NONE } from "../profile";
import type { Tree } from "../tree";
import { byKey } from "./arrays";
import { callPaths } from "./call_index";
import type { Chosen } from "./chosen";
import { outermost, type Paths } from "./paths";

export interface CountedTree extends Tree {
	selfCount: Float64Array;
	totalCount: Float64Array;
	path: Uint32Array;	/* of the paths; 0: the root, or a thread */
}

/* Sums by path, of those that have any. */
export interface PathSums {
	weight: Float64Array;
	count: Float64Array;
	waiting: Float64Array;
	has: Uint8Array;	/* the path, or one below it, has samples */
	touched: number[];	/* paths with has, in no order */
}

export function pathSums(n: number): PathSums {
	return {
		weight: new Float64Array(n), count: new Float64Array(n),
		waiting: new Float64Array(n), has: new Uint8Array(n),
		touched: [],
	};
}

function add(sums: PathSums, paths: Paths, path: number, weight: number,
	     count: number, waiting: number): void {
	sums.weight[path]! += weight;
	sums.count[path]! += count;
	sums.waiting[path]! += waiting;
	for (let at = path; at !== NONE && !sums.has[at];
	     at = paths.parent[at]!) {
		sums.has[at] = 1;
		sums.touched.push(at);
	}
}

function addSamples(sums: PathSums, chosen: Chosen, rows: Uint32Array): void {
	const { profile, paths } = chosen;
	const { stack, weight, count, event } = profile.samples;
	const waits = profile.events.map(e => e.kind === "wait");

	for (const i of rows)
		add(sums, paths, paths.of[stack[i]!]!, weight[i]!, count[i]!,
		    waits[event[i]!] ? weight[i]! : 0);
}

/* The rows of the calls' event, where the chosen events have it. */
function wantsCalls(chosen: Chosen): boolean {
	return chosen.fromCalls && chosen.profile.events.some((e, i) =>
		e.kind === "call" && chosen.events[i]);
}

/*
 * By call: 1 where it counts.  Inside the calls of a condition every call that
 * begins in them counts whole; else calls that begin in the range.
 */
export function chosenCalls(chosen: Chosen): Uint8Array {
	const { calls } = chosen.profile, { selection, inside } = chosen;
	const threads = selection.threads && new Set(selection.threads);
	const has = new Uint8Array(calls.n);
	let at = 0;

	for (let i = 0; i < calls.n; i++) {
		const thread = calls.thread[i]!, begin = calls.begin[i]!;

		if (threads && !threads.has(thread))
			continue;
		if (!inside) {
			has[i] = begin >= selection.from &&
				 begin < selection.to ? 1 : 0;
			continue;
		}
		at = Math.max(at, inside.start[thread]!);
		while (at < inside.start[thread + 1]! &&
		       inside.end[at]! <= begin)
			at++;
		has[i] = at < inside.start[thread + 1]! &&
			 inside.begin[at]! <= begin &&
			 begin + calls.duration[i]! <= inside.end[at]! ? 1 : 0;
	}
	return has;
}

/* By call, ns: of its self time what lies in the range. */
function clippedSelf(chosen: Chosen): Float64Array {
	const { calls } = chosen.profile, { from, to } = chosen.selection;
	const self = new Float64Array(calls.n);

	for (let i = 0; i < calls.n; i++) {
		const begin = calls.begin[i]!, end = begin + calls.duration[i]!;
		const ns = Math.max(0, Math.min(end, to) -
				       Math.max(begin, from));

		self[i]! += ns;
		if (calls.parent[i] !== NONE)
			self[calls.parent[i]!]! -= ns;
	}
	return self;
}

interface ChosenCalls {
	rows: Uint32Array;
	path: Uint32Array;
	self: Float64Array;
	count: Uint8Array;
}

/* The calls that add to sums by path; null: the chosen events have none. */
function callAmounts(chosen: Chosen): ChosenCalls | null {
	const { profile, paths, selection, inside } = chosen;

	if (!wantsCalls(chosen))
		return null;
	const { calls } = profile, path = callPaths(profile, paths);
	const threads = selection.threads && new Set(selection.threads);
	const count = chosenCalls(chosen);
	const self = inside ? calls.self : clippedSelf(chosen);
	const rows = new Uint32Array(calls.n);
	let n = 0;

	for (let i = 0; i < calls.n; i++) {
		if ((threads && !threads.has(calls.thread[i]!)) ||
		    (paths.leavesOut && path[i] === 0) ||
		    (inside ? !count[i] : !count[i] && self[i] === 0))
			continue;
		rows[n++] = i;
	}
	return { rows: rows.subarray(0, n), path, self, count };
}

function addCalls(sums: PathSums, paths: Paths, calls: ChosenCalls,
		  rows: Uint32Array): void {
	for (const i of rows)
		add(sums, paths, calls.path[i]!, calls.self[i]!,
		    calls.count[i]!, 0);
}

/* The sums of all that is chosen. */
export function sumAll(chosen: Chosen): PathSums {
	const sums = pathSums(chosen.paths.n);

	const calls = callAmounts(chosen);

	addSamples(sums, chosen, chosen.samples);
	if (calls)
		addCalls(sums, chosen.paths, calls, calls.rows);
	return sums;
}

/* -- trees -------------------------------------------------------------- */

interface Building {
	paths: Paths;
	path: number[];
	thread: number[];
	parent: number[];
	sums: { weight: number[]; count: number[]; waiting: number[] };
	nodeOf: Uint32Array;	/* by path, of the group that is added */
}

function addNode(b: Building, parent: number, path: number, thread: number,
		 sums: PathSums): number {
	b.path.push(path);
	b.thread.push(thread);
	b.parent.push(parent);
	b.sums.weight.push(sums.weight[path]!);
	b.sums.count.push(sums.count[path]!);
	b.sums.waiting.push(sums.waiting[path]!);
	return b.path.length - 1;
}

/* The paths with sums, in the order of their numbers. */
function inOrder(sums: PathSums, n: number): Uint32Array {
	if (sums.touched.length < n / 16)
		return Uint32Array.from(sums.touched).sort();
	const rows = new Uint32Array(sums.touched.length);
	let kept = 0;

	for (let i = 0; i < n; i++)
		if (sums.has[i])
			rows[kept++] = i;
	return rows;
}

/* Path 0 of @sums is node @top. */
function addPaths(b: Building, sums: PathSums, top: number): void {
	b.nodeOf[0] = top;
	for (const path of inOrder(sums, b.paths.n))
		if (path !== 0)
			b.nodeOf[path] = addNode(b,
				b.nodeOf[b.paths.parent[path]!]!, path, NONE,
				sums);
}

function finish(b: Building, unit: "ns" | "count"): CountedTree {
	const n = b.path.length, { paths } = b;
	const tree: CountedTree = {
		n, unit, change: null,
		path: Uint32Array.from(b.path),
		thread: Uint32Array.from(b.thread),
		parent: Uint32Array.from(b.parent),
		func: Uint32Array.from(b.path, path => paths.func[path]!),
		inlined: Uint8Array.from(b.path, path => paths.inlined[path]!),
		firstChild: new Uint32Array(n).fill(NONE),
		nextSibling: new Uint32Array(n).fill(NONE),
		depth: new Uint16Array(n),
		self: Float64Array.from(b.sums.weight),
		total: Float64Array.from(b.sums.weight),
		selfCount: Float64Array.from(b.sums.count),
		totalCount: Float64Array.from(b.sums.count),
		waiting: Float64Array.from(b.sums.waiting),
	};

	linkTree(tree);
	return tree;
}

/* Depths, links and totals of nodes whose parents precede them. */
export function linkTree(tree: CountedTree): void {
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

function building(paths: Paths): Building {
	return {
		paths, path: [], thread: [], parent: [],
		sums: { weight: [], count: [], waiting: [] },
		nodeOf: new Uint32Array(paths.n),
	};
}

const knownTrees = new WeakMap<Chosen, CountedTree>();

/* The call tree of all that is chosen. */
export function treeOf(chosen: Chosen): CountedTree {
	let tree = knownTrees.get(chosen);

	if (tree)
		return tree;
	const b = building(chosen.paths), sums = sumAll(chosen);

	addNode(b, NONE, 0, NONE, sums);
	addPaths(b, sums, 0);
	tree = finish(b, chosen.unit);
	knownTrees.set(chosen, tree);
	return tree;
}

function clear(sums: PathSums): void {
	for (const path of sums.touched)
		sums.weight[path] = sums.count[path] = sums.waiting[path] =
			sums.has[path] = 0;
	sums.touched = [];
}

/* The @rows of each thread. */
function split(rows: Uint32Array, thread: Uint32Array, n: number):
		(of: number) => Uint32Array {
	const keys = Uint32Array.from(rows, i => thread[i]!);
	const { start, rows: places } = byKey(keys, rows.length, n);
	const sorted = places.map(i => rows[i]!);

	return of => sorted.subarray(start[of], start[of + 1]);
}

/* The same with a node for each thread below the root. */
export function treeByThread(chosen: Chosen): CountedTree {
	const { profile, paths } = chosen;
	const b = building(paths), sums = pathSums(paths.n);
	const n = profile.threads.length, calls = callAmounts(chosen);
	const samples = split(chosen.samples, profile.samples.thread, n);
	const callRows = calls && split(calls.rows, profile.calls.thread, n);

	addNode(b, NONE, 0, NONE, sums);
	for (let t = 0; t < n; t++) {
		addSamples(sums, chosen, samples(t));
		if (calls && callRows)
			addCalls(sums, paths, calls, callRows(t));
		if (sums.touched.length)
			addPaths(b, sums, addNode(b, 0, 0, t, sums));
		clear(sums);
	}
	return finish(b, chosen.unit);
}

/* By node whether it is the outermost of its key; see paths.ts. */
export function outermostNodes(tree: CountedTree, paths: Paths,
			       keys: Uint32Array, nKeys: number): Uint8Array {
	const flags = outermost(paths, keys, nKeys);

	return Uint8Array.from(tree.path, path => flags[path]!);
}
