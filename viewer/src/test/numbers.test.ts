/* SPDX-License-Identifier: MIT */
/*
 * numbers.test.ts - what the page shows against what the program prints
 *
 *	SEAM=PROGRAM SEAM_CORPUS=FOLDER [SEAM_SEED=N] [SEAM_SELECTIONS=N]
 *
 * Random selections of recordings of the corpus: the sums of the engine must
 * equal the JSON of the same selection, made by other code from the recording
 * itself.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync }
	from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { decode } from "../decode";
import { callRows } from "../engine/calls";
import { choose } from "../engine/chosen";
import { optionsOf } from "../engine/command";
import { diffOf } from "../engine/diff";
import { rowName, rowsOf, type Key } from "../engine/rows";
import { sandwichOf } from "../engine/sandwich";
import { causesOf } from "../engine/causes";
import { treeOf } from "../engine/sums";
import type { CountedTree } from "../engine/tree_nodes";
import { LAYERS, NONE, type Profile } from "../profile";
import { ALL, type Selection } from "../select";
import { isMarked } from "../text";
import { markLog, type MarkOf } from "./marked_log";

const seam = process.env.SEAM ?? "seam";
const corpus = process.env.SEAM_CORPUS ?? ".";
const nSelections = Number(process.env.SEAM_SELECTIONS ?? 200);
const seed = Number(process.env.SEAM_SEED ?? 1);
const folder = mkdtempSync(join(tmpdir(), "seam-numbers-"));
const recordings = ["view/requests.seam", "bundle/lua.seam",
		    "bundle/events.seam", "xray/rec/fdr-mt.xray"];

after(() => rmSync(folder, { recursive: true }));

/* -- chance --------------------------------------------------------------- */

let state = seed >>> 0;

/* Mulberry32: the same numbers on every machine. */
function random(): number {
	state = state + 0x6d2b79f5 | 0;
	let t = Math.imul(state ^ state >>> 15, 1 | state);

	t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
	return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
}

const below = (n: number) => Math.floor(random() * n);
const pick = <T>(of: readonly T[]): T => of[below(of.length)]!;

/* -- the program -------------------------------------------------------- */

type Json = any;	/* eslint-disable-line: of the program, checked by use */

/* Exit status 3 is that data was lost: the output is whole. */
function run(args: string[]): string {
	try {
		return execFileSync(seam, args, { encoding: "utf8",
			maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
	} catch (error) {
		const failed = error as { status: number; stdout: string };

		if (failed.status === 3)
			return failed.stdout;
		throw error;
	}
}

interface Opened {
	path: string;
	profile: Profile;
}

const symfs = join(corpus, "view/root");
const opened = new Map<string, Opened>();

async function open(name: string): Promise<Opened> {
	let known = opened.get(name);

	if (!known) {
		const path = resolve(corpus, name), out = join(folder, "page.html");

		run(["view", path, `--symfs=${symfs}`, "-o", out]);
		const text = /class="recording">([^<]*)</.exec(
			readFileSync(out, "utf8"))![1]!;
		const profile = await decode(text.trim());

		assert.ok(typeof profile !== "string", String(profile));
		opened.set(name, known = { path, profile });
	}
	return known;
}

function json(command: string, at: Opened, options: string[]): Json {
	return JSON.parse(run([command, "--json", `--symfs=${symfs}`,
			       ...options, at.path]));
}

/* -- selections --------------------------------------------------------- */

const hasRows = (p: Profile, event: number) =>
	p.samples.event.includes(event);

function anyTime(p: Profile): Partial<Selection> {
	const at = () => p.samples.n && random() < 0.5 ?
		p.samples.time[below(p.samples.n)]! :
		Math.floor(random() * p.meta.durationNs);
	const [from, to] = [at(), at()].sort((a, b) => a - b);

	return random() < 0.3 ? {} : random() < 0.2 ? { from: from! } :
	       { from: from!, to: to! };
}

/* Threads with a number of their own: --thread takes no other. */
function anyThread(p: Profile): Partial<Selection> {
	const tids = p.threads.map(t => t.tid);
	const own = p.threads.map((_, i) => i).filter(i =>
		tids.filter(tid => tid === tids[i]).length === 1 &&
		!p.threads.some(t => t.name === String(tids[i])));

	return random() < 0.5 || !own.length ? {} : { threads: [pick(own)] };
}

function anyLayers(): Partial<Selection> {
	const layers = LAYERS.map((_, i) => i).filter(() => random() < 0.6);

	return random() < 0.5 || !layers.length ||
	       layers.length === LAYERS.length ? {} : { layers };
}

/* One event, or several that count the same. */
function anyEvents(p: Profile): Partial<Selection> {
	const with_ = p.events.map((_, i) => i).filter(i => hasRows(p, i));
	const one = pick(with_);
	const more = with_.filter(i => i === one || (random() < 0.4 &&
		p.events[i]!.unit === p.events[one]!.unit));

	return { events: random() < 0.5 ? [one] : more };
}

const anySelection = (p: Profile): Selection => ({ ...ALL, ...anyTime(p),
	...anyThread(p), ...anyLayers(), ...anyEvents(p) });

const show = (at: Opened, options: string[]) =>
	`${at.path} ${options.join(" ")} (SEAM_SEED=${seed})`;

/* -- rows --------------------------------------------------------------- */

type Sums = Map<string, number[]>;

function add(sums: Sums, key: string, values: number[]): void {
	const known = sums.get(key) ?? values.map(() => 0);

	sums.set(key, known.map((v, i) => v + values[i]!));
}

const sorted = (sums: Sums) => [...sums].sort(([a], [b]) => a < b ? -1 : 1);

function functionKey(p: Profile, f: number): string {
	return f === NONE ? "unknown [no stack] " :
	       `${LAYERS[p.functions.layer[f]!]} ${p.functions.name[f]} ` +
	       p.modules.path[p.functions.module[f]!];
}

function printedKey(row: Json, by: string): string {
	return by === "symbol" ? `${row.layer} ${row.symbol} ${row.module}` :
	       by === "module" ? row.module || "" :
	       by === "thread" ? String(row.tid) :
	       by === "process" ? String(row.pid) : String(row[by]);
}

function shownKey(p: Profile, key: Key, id: number): string {
	return key === "function" ? functionKey(p, id) :
	       key === "module" ? id === NONE ? "[no stack]" :
	       p.modules.path[id] || "[unknown]" :
	       key === "thread" ? String(p.threads[id]!.tid) :
	       key === "process" ? String(p.processes[id]!.pid) :
	       key === "cpu" ? id === NONE ? "-1" : String(id) :
	       rowName(p, key, id);
}

/* The rows of all events of @report, with weights. */
function printedRows(report: Json, by: string): Sums {
	const sums: Sums = new Map();
	const lists = report.events.length === 1 || !report.events[0]?.rows ?
		[report.rows] : report.events.map((e: Json) => e.rows);

	for (const row of lists.flat())
		add(sums, printedKey(row, by), [row.self, row.total,
			row.self_weight, row.total_weight]);
	return sums;
}

function shownRows(p: Profile, selection: Selection, key: Key): Sums {
	const rows = rowsOf(choose(p, selection), key), sums: Sums = new Map();

	for (let i = 0; i < rows.n; i++)
		add(sums, shownKey(p, key, rows.id[i]!), [rows.selfCount[i]!,
			rows.totalCount[i]!, rows.self[i]!, rows.total[i]!]);
	return sums;
}

const BY: [Key, string][] = [
	["function", "symbol"], ["function", "symbol"], ["module", "module"],
	["thread", "thread"], ["process", "process"], ["cpu", "cpu"],
	["wait", "wait"], ["waker", "waker"],
];

/* Rows of calls have no threads and CPUs of their own in the page's rows. */
const isOfSamples = (p: Profile, s: Selection) => s.events!.every(i =>
	p.events[i]!.kind !== "call");

test("rows equal those of 'seam report'", async () => {
	for (let i = 0; i < nSelections / 2; i++) {
		const at = await open(pick(recordings)), p = at.profile;
		const selection = anySelection(p);
		const [key, by] = isOfSamples(p, selection) ? pick(BY) :
			BY[below(3)]!;
		const options = [...optionsOf(p, selection)!, `--by=${by}`];
		const report = json("report", at, options);

		assert.deepEqual(sorted(shownRows(p, selection, key)),
			sorted(printedRows(report, by)), show(at, options));
	}
});

/* -- trees -------------------------------------------------------------- */

/* Nodes by their path of functions; inlined ones are not told apart. */
function printedTree(report: Json): Sums {
	const sums: Sums = new Map();
	const walk = (nodes: Json[], path: string) => {
		for (const node of nodes) {
			const at = `${path}/${node.layer} ${node.symbol}`;

			add(sums, at, [node.self, node.total, node.self_weight,
				       node.total_weight]);
			walk(node.children ?? [], at);
		}
	};

	for (const event of report.events)
		walk(event.tree, "");
	return sums;
}

function shownTree(p: Profile, tree: CountedTree): Sums {
	const sums: Sums = new Map(), paths = [""];

	for (let i = 1; i < tree.n; i++) {
		const f = tree.func[i]!;

		paths[i] = `${paths[tree.parent[i]!]}/` +
			`${LAYERS[p.functions.layer[f]!]} ` +
			p.functions.name[f];
		add(sums, paths[i]!, [tree.selfCount[i]!, tree.totalCount[i]!,
				      tree.self[i]!, tree.total[i]!]);
	}
	return sums;
}

test("trees, callers and callees equal those of 'seam report --tree'",
     async () => {
	for (let i = 0; i < nSelections / 4; i++) {
		const at = await open(pick(recordings)), p = at.profile;
		const selection = { ...anySelection(p), ...anyEvents(p) };
		const chosen = choose(p, selection), tree = treeOf(chosen);
		const kind = pick(["--tree", "--callers", "--callees"]);
		const func = tree.n > 1 ? tree.func[1 + below(tree.n - 1)]! : 0;
		const options = [...optionsOf(p, selection)!, "--min-percent=0",
			kind === "--tree" ? kind :
			`${kind}=${p.functions.name[func]}`];
		const both = kind === "--tree" ? null :
			     sandwichOf(chosen, func);

		assert.deepEqual(sorted(shownTree(p, !both ? tree :
			kind === "--callers" ? both.callers : both.callees)),
			sorted(printedTree(json("report", at, options))),
			show(at, options));
	}
});

/* -- calls -------------------------------------------------------------- */

const FIGURES = { count: "count", min: "min_ns", p50: "p50_ns", p90: "p90_ns",
	p99: "p99_ns", max: "max_ns", sum: "sum_ns", total: "total_ns",
	self: "self_ns" } as const;
const WAITS = { blocked: "blocked_ns", preempted: "preempted_ns",
	selfBlocked: "self_blocked_ns", selfPreempted: "self_preempted_ns" } as
	const;

test("calls equal those of 'seam calls'", async () => {
	for (let i = 0; i < nSelections / 8; i++) {
		const at = await open(pick(["view/requests.seam",
					    "xray/rec/fdr-mt.xray"]));
		const p = at.profile, selection = { ...ALL, ...anyTime(p) };
		const options = optionsOf(p, selection)!;
		const printed: Sums = new Map(), shown: Sums = new Map();
		const rows = callRows(choose(p, selection));
		/* exact where the page has the waits of each call */
		const figures = p.calls.blocked?.length ?
			{ ...FIGURES, ...WAITS } : FIGURES;
		const out = json("calls", at, options);

		for (const f of out.functions)
			add(printed, f.name, Object.values(figures)
				.map(member => f[member]));
		for (let row = 0; row < rows.n; row++)
			add(shown, p.functions.name[rows.func[row]!]!,
			    Object.keys(figures).map(figure =>
				rows[figure as keyof typeof FIGURES][row]!));
		assert.deepEqual(sorted(shown), sorted(printed),
				 show(at, options));
	}
});

/* -- marked intervals --------------------------------------------------- */

const MARKS = ["request", "db", "render"];

/* A copy of a recording in which all calls of three functions are marked. */
async function openMarked(): Promise<Opened> {
	const copy = join(folder, "marked.seam"), names = new Map<number, string>();
	const mark: MarkOf = (func, isEntry) => {
		const name = names.get(func);

		return !name ? "" : isEntry ? `begin ${name} #${func}` :
		       `end ${name}`;
	};

	if (opened.has(copy))
		return open(copy);
	while (names.size < MARKS.length) {
		const id = 1 + below(8);

		if (!names.has(id))
			names.set(id, MARKS[names.size]!);
	}
	cpSync(join(corpus, "view/requests.seam"), copy, { recursive: true });
	for (const name of readdirSync(join(copy, "xray"))
		.filter(file => file.endsWith(".xray"))) {
		const log = join(copy, "xray", name);

		writeFileSync(log, markLog(readFileSync(log), mark));
	}
	return open(copy);
}

/* Pairs of a marked interval's name and the function that it is around. */
function pairsOf(p: Profile): [number, number][] {
	const pairs: [number, number][] = [];

	for (const mark of p.functions.name.keys()) {
		if (!isMarked(p, mark))
			continue;
		const first = p.intervals.func.indexOf(mark);
		const call = p.calls.begin.findIndex((begin, i) =>
			begin === p.intervals.begin[first] &&
			p.calls.thread[i] === p.intervals.thread[first] &&
			p.calls.duration[i] === p.intervals.duration[first]);

		assert.ok(call >= 0, p.functions.name[mark]);
		pairs.push([mark, p.calls.func[call]!]);
	}
	return pairs;
}

test("marked intervals equal those of 'seam calls'", async () => {
	const at = await openMarked(), p = at.profile;
	const figures = { count: "count", min: "min_ns", p50: "p50_ns",
		p90: "p90_ns", p99: "p99_ns", max: "max_ns", sum: "sum_ns",
		blocked: "blocked_ns", preempted: "preempted_ns" } as const;

	for (let i = 0; i < nSelections / 8; i++) {
		const selection = { ...ALL, ...anyTime(p) };
		const options = optionsOf(p, selection)!;
		const printed: Sums = new Map(), shown: Sums = new Map();
		const rows = callRows(choose(p, selection));

		for (const f of json("calls", at, options).intervals)
			add(printed, f.name, Object.values(figures)
				.map(member => f[member]));
		for (let row = 0; row < rows.n; row++)
			if (isMarked(p, rows.func[row]!))
				add(shown, p.functions.name[rows.func[row]!]!,
				    Object.keys(figures).map(figure => rows[
					figure as keyof typeof figures][row]!));
		assert.deepEqual(sorted(shown), sorted(printed),
				 show(at, options));
	}
});

test("marked intervals around calls are conditions as the calls are",
     async () => {
	const { profile: p } = await openMarked(), pairs = pairsOf(p);

	assert.equal(pairs.length, MARKS.length);
	for (let i = 0; i < nSelections / 4; i++) {
		const [mark, func] = pick(pairs), k = below(p.calls.n);
		const base = { ...ALL, ...anyTime(p), ...anyThread(p) };
		const [min, max] = [p.calls.duration[k]!, random() < 0.5 ?
			Infinity : p.calls.duration[below(p.calls.n)]!]
			.sort((a, b) => a - b) as [number, number];
		const chosen = [mark, func].map(of => choose(p, { ...base,
			calls: { func: of, min, max } }));
		const rows = chosen.map(c => callRows(c));
		const causes = [mark, func].map(of => causesOf(p, base, of, min,
							       max));
		const what = `${p.functions.name[mark]} ${min} to ${max} ` +
			`(SEAM_SEED=${seed})`;

		assert.deepEqual(chosen[0]!.samples, chosen[1]!.samples, what);
		assert.deepEqual(rows[0], rows[1], what);
		assert.deepEqual(causes[0]?.parts, causes[1]?.parts, what);
		assert.equal(causes[0]?.slow.n, causes[1]?.slow.n, what);
		for (const [a, b] of pairs) {
			const [x, y] = [a, b].map(of => rows[0]!.func
				.indexOf(of)) as [number, number];

			for (const figure of ["count", "min", "p50", "p99",
				"max", "sum", "blocked", "preempted"] as const)
				assert.equal(rows[0]![figure][x],
					     rows[0]![figure][y], what);
		}
	}
});

/* -- differences -------------------------------------------------------- */

/* A day of nanoseconds has 47 bits: products round in the last of 53. */
function close(shown: number | null, printed: number | null, what: string):
		void {
	if (shown === null || printed === null || !Number.isFinite(shown))
		assert.equal(Number.isFinite(shown) ? shown : null, printed,
			     what);
	else
		assert.ok(Math.abs(shown - printed) <=
			  1e-6 * Math.max(1, Math.abs(printed)),
			  `${what}: ${shown} and ${printed}`);
}

function sameDiff(p: [Opened, Opened], selection: Selection,
		  options: string[]): void {
	const sides = p.map(at => ({ chosen: choose(at.profile, { ...selection,
		events: [at.profile.events.findIndex(e => e.name ===
			 "cpu-clock")] }), units: 1 }));
	const shown = diffOf(sides[0]!, sides[1]!);
	const printed = JSON.parse(run(["diff", "--json", `--symfs=${symfs}`,
		...options, p[0].path, p[1].path]));
	const key = (layer: string, symbol: string, module: string) =>
		`${layer} ${symbol} ${module}`;
	const rows = new Map(shown.rows.map(row => [key(
		LAYERS[row.func.layer]!, row.func.name, row.func.module),
		row]));
	const what = `${show(p[0], options)} and ${p[1].path}`;

	assert.equal(rows.size, printed.rows.length, what);
	for (const row of printed.rows) {
		const name = key(row.layer, row.symbol, row.module);
		const mine = rows.get(name);

		assert.ok(mine, `${what}: ${name}`);
		for (const side of ["self", "total"] as const) {
			close(mine[side].a, row[side].a, name);
			close(mine[side].b, row[side].b, name);
			close(mine[side].change, row[side].change, name);
			assert.equal(mine[side].verdict, row[side].verdict);
		}
	}
}

test("differences equal those of 'seam diff'", async () => {
	const names = ["view/requests.seam", "bundle/lua.seam"];

	for (let i = 0; i < nSelections / 8; i++) {
		const a = await open(pick(names)), b = await open(pick(names));
		const selection = { ...ALL, ...anyLayers() };
		const layers = optionsOf(a.profile, selection)!;

		sameDiff([a, b], selection, [...layers, "--event=cpu-clock"]);
	}
});
