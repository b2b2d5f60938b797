/* SPDX-License-Identifier: MIT */
/*
 * sums.ts - the chosen samples and calls added up by path: the Tree
 *
 * As src/model/profile/tally.c and tree.c.  Of a row of samples, count is the
 * number of samples, or of calls; weight is their time or their events.
 */
import { NONE, type Timed } from "../profile";
import { byKey, memo } from "./arrays";
import { callPaths } from "./call_index";
import { flags, type Chosen, type Intervals } from "./chosen";
import { outermost, type Paths } from "./paths";
import { emptyTree, linkTree, type CountedTree } from "./tree_nodes";

/* Sums by path. */
interface PathSums {
	weight: Float64Array;
	count: Float64Array;
	waiting: Float64Array;
	has: Uint8Array;	/* the path has samples itself */
}

function pathSums(n: number): PathSums {
	return {
		weight: new Float64Array(n), count: new Float64Array(n),
		waiting: new Float64Array(n), has: new Uint8Array(n),
	};
}

function addSamples(sums: PathSums, chosen: Chosen, rows: Uint32Array): void {
	const { profile, paths: { of } } = chosen;
	const { stack, weight, count, event } = profile.samples;
	const waits = Uint8Array.from(profile.events, e =>
		e.kind === "wait" ? 1 : 0);

	for (let k = 0; k < rows.length; k++) {
		const i = rows[k]!, path = of[stack[i]!]!;

		sums.weight[path]! += weight[i]!;
		sums.count[path]! += count[i]!;
		sums.has[path] = 1;
		if (waits[event[i]!])
			sums.waiting[path]! += weight[i]!;
	}
}

/* The rows of the calls' event, where the chosen events have it. */
function wantsCalls(chosen: Chosen): boolean {
	return chosen.fromCalls && chosen.profile.events.some((e, i) =>
		e.kind === "call" && chosen.events[i]);
}

function inRange(table: Timed, chosen: Chosen): Uint8Array {
	const { profile, selection: { from, to, threads } } = chosen;
	const { n, begin, thread } = table, has = new Uint8Array(n);
	const wanted = flags(threads, profile.threads.length);

	for (let i = 0; i < n; i++)
		if (begin[i]! >= from && begin[i]! < to)
			has[i] = wanted[thread[i]!]!;
	return has;
}

function insideOf(table: Timed, inside: Intervals): Uint8Array {
	const { n, begin, duration, thread } = table;
	const has = new Uint8Array(n);
	let at = 0, end = 0, last = NONE;

	for (let i = 0; i < n; i++) {
		const time = begin[i]!;

		if (thread[i] !== last) {
			last = thread[i]!;
			at = inside.start[last]!;
			end = inside.start[last + 1]!;
		}
		while (at < end && inside.end[at]! <= time)
			at++;
		if (at < end && inside.begin[at]! <= time &&
		    time + duration[i]! <= inside.end[at]!)
			has[i] = 1;
	}
	return has;
}

const chosenOf = (chosen: Chosen, table: Timed): Uint8Array =>
	chosen.inside ? insideOf(table, chosen.inside) : inRange(table, chosen);

/*
 * By call, or by marked interval: 1 where it counts.  Inside the calls of a
 * condition each counts whole that is in them; else those that begin in the
 * range.
 */
export const chosenCalls = memo((chosen: Chosen): Uint8Array =>
	chosenOf(chosen, chosen.profile.calls));
export const chosenIntervals = memo((chosen: Chosen): Uint8Array =>
	chosenOf(chosen, chosen.profile.intervals));

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

function addCalls(sums: PathSums, calls: ChosenCalls,
		  rows: Uint32Array): void {
	for (let k = 0; k < rows.length; k++) {
		const i = rows[k]!, path = calls.path[i]!;

		sums.weight[path]! += calls.self[i]!;
		sums.count[path]! += calls.count[i]!;
		sums.has[path] = 1;
	}
}

/* -- trees -------------------------------------------------------------- */

/* The paths of a group of samples and their sums, in the order of paths. */
interface Group {
	thread: number;		/* NONE: all threads */
	path: Uint32Array;
	weight: Float64Array;
	count: Float64Array;
	waiting: Float64Array;
}

/* The paths that have samples themselves or below, and path 0. */
function pathsInUse(sums: PathSums, paths: Paths): Uint32Array {
	const { has } = sums, { parent } = paths;
	let n = 0;

	has[0] = 1;
	for (let i = paths.n; i-- > 1;)
		if (has[i])
			has[parent[i]!] = 1;
	for (let i = 0; i < paths.n; i++)
		n += has[i]!;
	const rows = new Uint32Array(n);

	n = 0;
	for (let i = 0; i < paths.n; i++)
		if (has[i])
			rows[n++] = i;
	return rows;
}

/* The same for a group that has few of the paths. */
function fewPathsInUse(sums: PathSums, paths: Paths,
		       used: Uint32Array): Uint32Array {
	const rows = [0];

	sums.has[0] = 2;
	for (const path of used)
		for (let at = path; sums.has[at] !== 2; at = paths.parent[at]!) {
			sums.has[at] = 2;
			rows.push(at);
		}
	return Uint32Array.from(rows).sort();
}

function groupOf(sums: PathSums, path: Uint32Array, thread: number): Group {
	const pick = (of: Float64Array) => {
		const values = new Float64Array(path.length);

		for (let i = 0; i < path.length; i++)
			values[i] = of[path[i]!]!;
		return values;
	};

	return {
		thread, path, weight: pick(sums.weight),
		count: pick(sums.count), waiting: pick(sums.waiting),
	};
}

/* Put @group at node @at of @tree and behind; its path 0 is below @parent. */
function putGroup(tree: CountedTree, paths: Paths, group: Group, at: number,
		  parent: number, nodeOf: Uint32Array): void {
	const { path, thread } = group;

	tree.path.set(path, at);
	tree.self.set(group.weight, at);
	tree.selfCount.set(group.count, at);
	tree.waiting.set(group.waiting, at);
	tree.thread[at] = thread;
	tree.parent[at] = parent;
	nodeOf[0] = at;
	for (let i = 1; i < path.length; i++) {
		const p = path[i]!;

		nodeOf[p] = at + i;
		tree.parent[at + i] = nodeOf[paths.parent[p]!]!;
		tree.func[at + i] = paths.func[p]!;
		tree.inlined[at + i] = paths.inlined[p]!;
	}
}

const knownTrees = new WeakMap<Chosen, CountedTree>();

/* The call tree of all that is chosen. */
export function treeOf(chosen: Chosen): CountedTree {
	const { paths, unit } = chosen, known = knownTrees.get(chosen);

	if (known)
		return known;
	const sums = pathSums(paths.n), calls = callAmounts(chosen);

	addSamples(sums, chosen, chosen.samples);
	if (calls)
		addCalls(sums, calls, calls.rows);

	const group = groupOf(sums, pathsInUse(sums, paths), NONE);
	const tree = emptyTree(group.path.length, unit);

	putGroup(tree, paths, group, 0, NONE, new Uint32Array(paths.n));
	linkTree(tree);
	knownTrees.set(chosen, tree);
	return tree;
}

/* The @rows of each thread. */
function split(rows: Uint32Array, thread: Uint32Array, n: number):
		(of: number) => Uint32Array {
	const keys = Uint32Array.from(rows, i => thread[i]!);
	const { start, rows: places } = byKey(keys, rows.length, n);
	const sorted = places.map(i => rows[i]!);

	return of => sorted.subarray(start[of], start[of + 1]);
}

/* By thread its paths; those without any are left out. */
function groupsByThread(chosen: Chosen): Group[] {
	const { profile, paths } = chosen, n = profile.threads.length;
	const { samples } = profile, calls = callAmounts(chosen);
	const sampleRows = split(chosen.samples, samples.thread, n);
	const callRows = calls && split(calls.rows, profile.calls.thread, n);
	const sums = pathSums(paths.n), groups: Group[] = [];

	for (let t = 0; t < n; t++) {
		const rows = sampleRows(t), of = callRows?.(t);
		const used = [...rows.map(i => paths.of[samples.stack[i]!]!),
			      ...of?.map(i => calls!.path[i]!) ?? []];

		if (!used.length)
			continue;
		addSamples(sums, chosen, rows);
		if (calls && of)
			addCalls(sums, calls, of);
		const path = fewPathsInUse(sums, paths, Uint32Array.from(used));

		groups.push(groupOf(sums, path, t));
		for (const p of path)
			sums.weight[p] = sums.count[p] = sums.waiting[p] =
				sums.has[p] = 0;
	}
	return groups;
}

/* The same as treeOf() with a node for each thread below the root. */
export function treeByThread(chosen: Chosen): CountedTree {
	const groups = groupsByThread(chosen);
	const n = groups.reduce((sum, g) => sum + g.path.length, 1);
	const tree = emptyTree(n, chosen.unit);
	const nodeOf = new Uint32Array(chosen.paths.n);
	let at = 1;

	for (const group of groups) {
		putGroup(tree, chosen.paths, group, at, 0, nodeOf);
		at += group.path.length;
	}
	linkTree(tree);
	return tree;
}

/* By node whether it is the outermost of its key; see paths.ts. */
export function outermostNodes(tree: CountedTree, paths: Paths,
			       keys: Uint32Array, nKeys: number): Uint8Array {
	const flags = outermost(paths, keys, nKeys);
	const nodes = new Uint8Array(tree.n);

	for (let i = 0; i < tree.n; i++)
		nodes[i] = flags[tree.path[i]!]!;
	return nodes;
}
