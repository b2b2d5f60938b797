/* SPDX-License-Identifier: MIT */
/*
 * diff.ts - two recordings, or two selections of one, in one table and tree
 *
 * The matching and the words of 'seam diff' (src/report/diff/diff.h) for one
 * run of each side.  One run gives no estimate of noise, so there is no
 * verdict: "no noise estimate", or "few samples".
 */
import { LAYERS, NONE, type Profile } from "../profile";
import { pairPut, pairTable, type PairTable } from "./arrays";
import type { Chosen } from "./chosen";
import { buildName, isUnnamed, moduleName } from "./diff_names";
import { treeOf } from "./sums";
import { depthFirst, emptyTree, linkTree, type CountedTree }
	from "./tree_nodes";

export const LEAST_SAMPLES = 10;	/* a run, for a verdict */

export interface Side {
	chosen: Chosen;
	units: number;		/* of work: runs, seconds, calls */
}

export interface Change {
	a: number;		/* for a unit of work */
	b: number;
	samplesA: number;
	samplesB: number;
	change: number;		/* ratio less 1; -1: gone; Infinity: new */
	verdict: "few samples" | "no noise estimate";
}

export interface DiffFunction {
	layer: number;
	name: string;
	module: string;
	/* a function of A's and of B's profile, to go on from; NONE */
	funcs: [number, number];
}

export interface DiffRow {
	func: DiffFunction;
	self: Change;
	total: Change;
}

export interface Diff {
	unit: "ns" | "count";
	all: Change;
	rows: DiffRow[];	/* largest changes of self first */
	/* B's totals for a unit of work; func is of B, NONE where gone */
	tree: CountedTree;
	functions: DiffFunction[];	/* by the tree's path */
	warnings: string[];
}

/* Sums of one side, by node or by function. */
interface Amounts {
	weight: Float64Array;
	count: Float64Array;
}

interface Joining {
	functions: DiffFunction[];
	byKey: Map<string, number>;
	parent: number[];
	func: number[];		/* of functions; NONE of the root */
	known: PairTable;
	self: [number[], number[]];
	count: [number[], number[]];
}

function joining(): Joining {
	return {
		functions: [], byKey: new Map(), parent: [NONE], func: [NONE],
		known: pairTable(), self: [[], []], count: [[], []],
	};
}

/* -- functions ---------------------------------------------------------- */

/* Modules of both sides by the names that they have in every build. */
interface Modules {
	ids: Map<string, Set<string>>;	/* build ids of those with samples */
	/* A's program has another name than B's, but is the same module */
	renamed: [from: string, to: string] | null;
	programs: Set<string>;
}

const moduleOf = ({ functions, modules }: Profile, f: number) =>
	moduleName(modules.path[functions.module[f]!]!, functions.layer[f]!);

function buildIds(profiles: Profile[]): Map<string, Set<string>> {
	const ids = new Map<string, Set<string>>();

	for (const profile of profiles)
		for (let f = 0; f < profile.functions.n; f++) {
			const name = moduleOf(profile, f);
			const id = profile.modules.buildId[
				profile.functions.module[f]!];

			if (!ids.has(name))
				ids.set(name, new Set());
			if (id)
				ids.get(name)!.add(id);
		}
	return ids;
}

/* The executable of the process with the most rows of samples. */
function programOf({ profile, samples }: Chosen): string {
	const n = new Uint32Array(profile.processes.length);
	let most = 0;

	for (const i of samples)
		n[profile.threads[profile.samples.thread[i]!]!.process]!++;
	for (let i = 0; i < n.length; i++)
		most = n[i]! > n[most]! ? i : most;
	return moduleName(profile.processes[most]?.program ?? "", 1);
}

/* The names of modules that have samples. */
function modulesWithSelf({ profile }: Chosen, tree: CountedTree): Set<string> {
	const has = new Set<string>();

	for (let i = 1; i < tree.n; i++)
		if (tree.selfCount[i])
			has.add(moduleOf(profile, tree.func[i]!));
	return has;
}

function joinModules(sides: readonly Side[], trees: CountedTree[]): Modules {
	const [a, b] = sides.map(s => programOf(s.chosen)) as [string, string];
	const [x, y] = sides.map((s, i) => modulesWithSelf(s.chosen,
							   trees[i]!));
	const differ = a && b && a !== b && !y!.has(a) && !x!.has(b);

	return {
		ids: buildIds(sides.map(s => s.chosen.profile)),
		renamed: differ ? [a, b] : null,
		programs: new Set(differ ? [a, b] : []),
	};
}

/* Code without a name: its own where all runs have the same build. */
function unnamed(name: string, module: string, layer: number,
		 sameBuild: boolean): string {
	return LAYERS[layer] === "jit" ? "[jit]" : sameBuild ? name :
	       module ? `[${module}: without names]` : "[unknown]";
}

/* By function of @side's profile: the joined function << 1 | is a part. */
function joinFunctions(j: Joining, side: 0 | 1, profile: Profile,
		       { ids, renamed, programs }: Modules): Uint32Array {
	const { functions } = profile;
	const isNamed = (f: number) => functions.named ?
		functions.named[f] === 1 : !isUnnamed(functions.name[f]!);

	return Uint32Array.from({ length: functions.n }, (_, f) => {
		const layer = functions.layer[f]!, raw = functions.name[f]!;
		const own = moduleOf(profile, f);
		const module = own === renamed?.[0] ? renamed[1] : own;
		const { name, isPart } = isNamed(f) ? buildName(raw, layer) :
			{ isPart: false, name: unnamed(raw, module, layer,
				!programs.has(own) &&
				ids.get(own)!.size === 1) };

		return joinFunction(j, side, f, { layer, name, module,
			funcs: [NONE, NONE] }) * 2 + (isPart ? 1 : 0);
	});
}

function joinFunction(j: Joining, side: 0 | 1, f: number,
		      func: DiffFunction): number {
	const key = `${func.layer}\0${func.module}\0${func.name}`;
	let id = j.byKey.get(key);

	if (id === undefined) {
		id = j.functions.push(func) - 1;
		j.byKey.set(key, id);
	}
	if (f !== NONE && j.functions[id]!.funcs[side] === NONE)
		j.functions[id]!.funcs[side] = f;
	return id;
}

/* -- one tree ----------------------------------------------------------- */

function child(j: Joining, parent: number, key: number): number {
	const func = key >>> 1;

	if (key & 1 && parent && j.func[parent] === func)
		return parent;
	const node = pairPut(j.known, parent, func, j.parent.length);

	if (node === j.parent.length) {
		j.parent.push(parent);
		j.func.push(func);
	}
	return node;
}

function addSelf(j: Joining, side: 0 | 1, node: number, weight: number,
		 count: number): void {
	j.self[side][node] = (j.self[side][node] ?? 0) + weight;
	j.count[side][node] = (j.count[side][node] ?? 0) + count;
}

/* Without weights, samples are the weights. */
function join(j: Joining, side: 0 | 1, tree: CountedTree,
	      keys: Uint32Array): void {
	const hasWeights = tree.total[0]! !== 0;
	const map = new Uint32Array(tree.n);

	for (let i = 0; i < tree.n; i++) {
		const weight = hasWeights ? tree.self[i]! : tree.selfCount[i]!;

		if (i)
			map[i] = child(j, map[tree.parent[i]!]!,
				       keys[tree.func[i]!]!);
		if (!weight && !tree.selfCount[i])
			continue;
		addSelf(j, side, i ? map[i]! : child(j, 0,
			2 * joinFunction(j, side, NONE, { layer: 1,
				name: "[no stack]", module: "",
				funcs: [NONE, NONE] })), weight,
			tree.selfCount[i]!);
	}
}

/* -- changes ------------------------------------------------------------ */

/* What a side's value is divided by, and counts as where it is 0. */
interface Scale {
	units: number;
	sampleWeight: number;
}

function changeOf(w: [number, number], n: [number, number],
		  scales: [Scale, Scale], isMeasured: boolean): Change {
	const [a, b] = [0, 1].map(side => w[side]! / scales[side]!.units) as
		[number, number];
	const [x, y] = [0, 1].map(side => (w[side]! > 0 ? w[side]! :
		scales[side]!.sampleWeight > 0 ?
		scales[side]!.sampleWeight / 2 : 0.5) /
		scales[side]!.units) as [number, number];

	return {
		a, b, samplesA: n[0], samplesB: n[1],
		change: n[0] <= 0 ? Infinity : n[1] <= 0 ? -1 : y / x - 1,
		verdict: !isMeasured && Math.max(...n) < LEAST_SAMPLES ?
			 "few samples" : "no noise estimate",
	};
}

/* Sums of a side by function: self, and total of outermost nodes. */
function byFunction(j: Joining, order: CountedTree, node: Amounts,
		    total: Amounts): { self: Amounts; total: Amounts } {
	const n = j.functions.length, open = new Uint32Array(n);
	const make = (): Amounts => ({ weight: new Float64Array(n),
				       count: new Float64Array(n) });
	const sums = { self: make(), total: make() }, path: number[] = [];

	for (let i = 1; i < order.n; i++) {
		const func = order.path[i]!;

		while (path.length >= order.depth[i]!)
			open[path.pop()!]!--;
		path.push(func);
		sums.self.weight[func]! += node.weight[i]!;
		sums.self.count[func]! += node.count[i]!;
		if (open[func]!++ === 0) {
			sums.total.weight[func]! += total.weight[i]!;
			sums.total.count[func]! += total.count[i]!;
		}
	}
	return sums;
}

/*
 * The joined tree with the sums of @side.  A node's path is its joined
 * function; its func, B's, and NONE where B has none.
 */
function sideTree(j: Joining, side: 0 | 1, unit: "ns" | "count"):
		CountedTree {
	const n = j.parent.length, tree = emptyTree(n, unit);
	const names = j.functions.map(f => f.name);
	const { order, place } = depthFirst(j.parent, n, (a, b) => {
		const x = names[j.func[a]!]!, y = names[j.func[b]!]!;

		return x < y ? -1 : x > y ? 1 : j.func[a]! - j.func[b]!;
	});

	order.forEach((node, i) => {
		tree.self[i] = j.self[side][node] ?? 0;
		tree.selfCount[i] = j.count[side][node] ?? 0;
		tree.path[i] = j.func[node]!;
		if (i === 0)
			return;
		tree.parent[i] = place[j.parent[node]!]!;
		tree.func[i] = j.functions[j.func[node]!]!.funcs[1];
	});
	linkTree(tree);
	return tree;
}

/* @b's values for a unit of work, and what changed. */
function compared(a: CountedTree, b: CountedTree, scales: [Scale, Scale],
		  isMeasured: boolean): CountedTree {
	return {
		...b,
		few: Uint8Array.from(b.totalCount, (n, i) => !isMeasured &&
			Math.max(n, a.totalCount[i]!) < LEAST_SAMPLES ? 1 : 0),
		self: b.self.map(w => w / scales[1].units),
		total: b.total.map(w => w / scales[1].units),
		change: b.total.map((w, i) => w / scales[1].units -
					      a.total[i]! / scales[0].units),
	};
}

function scaleOf(side: Side, tree: CountedTree): Scale {
	const n = tree.totalCount[0] ?? 0;
	const weight = tree.total[0] || n;

	return { units: side.units || 1, sampleWeight: n ? weight / n : 0 };
}

/* What makes recordings differ, besides their programs. */
function warn(a: Chosen, b: Chosen, scales: [Scale, Scale]): string[] {
	const warnings: string[] = [];
	const rate = scales[1].sampleWeight / (scales[0].sampleWeight || 1);
	const [x, y] = [a.profile.meta, b.profile.meta];

	if (a.unit !== b.unit)
		warnings.push("the events count different units");
	if (a.unit === b.unit && (rate > 1.2 || rate < 1 / 1.2) &&
	    scales[0].sampleWeight && scales[1].sampleWeight &&
	    x !== y)
		warnings.push("the sampling rates differ");
	if (x.cpus && y.cpus && x.cpus !== y.cpus)
		warnings.push(`the machines differ: ${x.cpus} and ` +
			      `${y.cpus} CPUs`);
	return warnings;
}

export function diffOf(a: Side, b: Side): Diff {
	const j = joining(), sides = [a, b] as const;
	const trees = sides.map(s => treeOf(s.chosen));
	const modules = joinModules(sides, trees);
	const scales = sides.map((s, i) => scaleOf(s, trees[i]!)) as
		[Scale, Scale];

	sides.forEach((s, i) => join(j, i as 0 | 1, trees[i]!,
		joinFunctions(j, i as 0 | 1, s.chosen.profile, modules)));

	const unit = b.chosen.unit;
	const [x, y] = [sideTree(j, 0, unit), sideTree(j, 1, unit)];
	const isMeasured = [a, b].every(s => s.chosen.profile.events.every(
		(e, i) => !s.chosen.events[i] || e.kind === "call"));
	const [p, q] = [x, y].map(tree => byFunction(j, tree,
		{ weight: tree.self, count: tree.selfCount },
		{ weight: tree.total, count: tree.totalCount }));
	const change = (of: "self" | "total", f: number) => changeOf(
		[p![of].weight[f]!, q![of].weight[f]!],
		[p![of].count[f]!, q![of].count[f]!], scales, isMeasured);
	const rows = j.functions.map((func, f) => ({
		func, self: change("self", f), total: change("total", f),
	})).filter(row => row.total.samplesA + row.total.samplesB > 0);

	return {
		unit, functions: j.functions, rows: rows.sort(byChange),
		tree: compared(x, y, scales, isMeasured),
		all: changeOf([x.total[0]!, y.total[0]!],
			      [x.totalCount[0]!, y.totalCount[0]!], scales,
			      isMeasured),
		warnings: warn(a.chosen, b.chosen, scales),
	};
}

function byChange(x: DiffRow, y: DiffRow): number {
	const few = (row: DiffRow) => row.self.verdict === "few samples" ?
				      1 : 0;
	const size = (row: DiffRow) => Math.abs(row.self.b - row.self.a);

	return few(x) - few(y) || size(y) - size(x);
}
