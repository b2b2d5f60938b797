/* SPDX-License-Identifier: MIT */
/*
 * rows.ts - the chosen samples by function, module, thread, reason of a wait
 *
 * The numbers of 'seam report --json': self is what ended in the row, total
 * what passed through it, a recursive function once a stack; rows of threads,
 * CPUs and waits have one number.  Counts are samples, or calls.
 */
import { LAYERS, NONE, type Profile } from "../profile";
import type { Chosen } from "./chosen";
import type { Paths } from "./paths";
import { outermostNodes, treeOf } from "./sums";
import type { CountedTree } from "./tree_nodes";

export const KEYS = [
	"function", "module", "layer", "thread", "process", "cpu", "wait",
	"waker", "event",
] as const;
export type Key = typeof KEYS[number];

export interface Rows {
	key: Key;
	n: number;
	/* A function, module, layer, thread ...; NONE: no stack, not known. */
	id: Uint32Array;
	self: Float64Array;
	total: Float64Array;
	selfCount: Float64Array;
	totalCount: Float64Array;
	waiting: Float64Array;	/* of total */
	sum: number;		/* of all weights */
	sumCount: number;
}

export const RAN = NONE - 1;	/* as id of a wait or waker: it is none */

/* By function the key of its row. */
function codeKeys(profile: Profile, key: Key): [Uint32Array, number] {
	const { functions, modules } = profile;

	if (key === "module")
		return [functions.module, modules.n];
	if (key === "layer")
		return [Uint32Array.from(functions.layer), LAYERS.length];
	return [Uint32Array.from({ length: functions.n }, (_, i) => i),
		functions.n];
}

interface Sums {
	id: number[];
	columns: number[][];
	row: Map<number, number>;
}

const noSums = (): Sums => ({
	id: [], columns: [[], [], [], [], []], row: new Map(),
});

function add(sums: Sums, id: number, values: readonly number[]): void {
	let row = sums.row.get(id);

	if (row === undefined) {
		row = sums.id.push(id) - 1;
		sums.row.set(id, row);
		for (const column of sums.columns)
			column.push(0);
	}
	for (let i = 0; i < values.length; i++)
		sums.columns[i]![row]! += values[i]!;
}

function finish(key: Key, sums: Sums, sum: number, sumCount: number): Rows {
	const [self, total, selfCount, totalCount, waiting] =
		sums.columns.map(column => Float64Array.from(column)) as
		[Float64Array, Float64Array, Float64Array, Float64Array,
		 Float64Array];

	return {
		key, n: sums.id.length, id: Uint32Array.from(sums.id),
		self, total, selfCount, totalCount, waiting, sum, sumCount,
	};
}

/* Rows of code from a tree. */
export function rowsOfTree(profile: Profile, paths: Paths, tree: CountedTree,
			   key: Key): Rows {
	const [keys, nKeys] = codeKeys(profile, key);
	const outer = outermostNodes(tree, paths, keys, nKeys);
	const sums = noSums();

	for (let i = 0; i < tree.n; i++) {
		const self = tree.self[i]!, count = tree.selfCount[i]!;

		if (tree.func[i] === NONE) {
			/* those without a stack */
			if (self || count)
				add(sums, NONE, [self, self, count, count]);
			continue;
		}
		add(sums, keys[tree.func[i]!]!, outer[i] ?
			[self, tree.total[i]!, count, tree.totalCount[i]!,
			 tree.waiting[i]!] : [self, 0, count]);
	}
	return finish(key, sums, tree.total[0] ?? 0, tree.totalCount[0] ?? 0);
}

/* By row of samples the id of its row. */
function sampleKey(profile: Profile, key: Key): (i: number) => number {
	const { samples, threads, events } = profile;
	const isWait = events.map(e => e.kind === "wait");
	const ofWait = (ids: Uint32Array) => (i: number) =>
		isWait[samples.event[i]!] ? ids[i]! : RAN;

	switch (key) {
	case "process":
		return i => threads[samples.thread[i]!]!.process;
	case "cpu":
		return i => samples.cpu[i] === 0xffff ? NONE : samples.cpu[i]!;
	case "wait":
		return ofWait(samples.reason);
	case "waker":
		return ofWait(samples.waker);
	case "event":
		return i => samples.event[i]!;
	default:
		return i => samples.thread[i]!;
	}
}

/* How many ids rows of @key can have, besides RAN and NONE. */
function nIds(profile: Profile, key: Key): number {
	return key === "process" ? profile.processes.length :
	       key === "cpu" ? 0xffff :
	       key === "wait" || key === "waker" ? profile.words.length :
	       key === "event" ? profile.events.length :
	       profile.threads.length;
}

function rowsOfSamples(chosen: Chosen, key: Key): Rows {
	const { profile, samples: rows } = chosen;
	const { weight, count, event } = profile.samples;
	const idOf = sampleKey(profile, key), n = nIds(profile, key);
	const isWait = profile.events.map(e => e.kind === "wait");
	const self = new Float64Array(n + 2), selfCount = new Float64Array(n + 2);
	const waiting = new Float64Array(n + 2), sums = noSums();

	for (let k = 0; k < rows.length; k++) {
		const i = rows[k]!, id = idOf(i);
		const at = id === RAN ? n : id === NONE ? n + 1 : id;

		self[at]! += weight[i]!;
		selfCount[at]! += count[i]!;
		if (isWait[event[i]!])
			waiting[at]! += weight[i]!;
	}
	for (let at = 0; at < n + 2; at++)
		if (selfCount[at] || self[at])
			add(sums, at === n ? RAN : at === n + 1 ? NONE : at,
			    [self[at]!, self[at]!, selfCount[at]!,
			     selfCount[at]!, waiting[at]!]);
	return finish(key, sums, self.reduce((a, b) => a + b),
		      selfCount.reduce((a, b) => a + b));
}

export function rowsOf(chosen: Chosen, key: Key): Rows {
	return key === "function" || key === "module" || key === "layer" ?
	       rowsOfTree(chosen.profile, chosen.paths, treeOf(chosen), key) :
	       rowsOfSamples(chosen, key);
}

/* The name of row @id of @key; names of the program, to be escaped. */
export function rowName(profile: Profile, key: Key, id: number): string {
	switch (key) {
	case "function":
		return id === NONE ? "[no stack]" : profile.functions.name[id]!;
	case "module":
		return id === NONE ? "[no stack]" :
		       profile.modules.path[id] || "[unknown]";
	case "layer":
		return id === NONE ? "[no stack]" : LAYERS[id]!;
	case "thread":
		return threadName(profile, id);
	case "process": {
		const p = profile.processes[id]!;

		return `${p.name || "process"} ${p.pid}`;
	}
	case "cpu":
		return id === NONE ? "CPU unknown" : `CPU ${id}`;
	case "event":
		return profile.events[id]!.name;
	default:
		return id === RAN ? "running" :
		       profile.words[id] || "not known";
	}
}

/* "name TID"; the number once where the name ends with it. */
export function threadName(profile: Profile, thread: number): string {
	const t = profile.threads[thread];

	if (!t)
		return "no thread";
	return t.name.endsWith(` ${t.tid}`) ? t.name :
	       `${t.name || "thread"} ${t.tid}`;
}
