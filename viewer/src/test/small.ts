/* SPDX-License-Identifier: MIT */
/* small.ts - profiles written down by hand, for tests */
import { LAYERS, MARKED, NONE, type Profile, type Timed } from "../profile";

/* "main;work;k:futex_wait": a letter is the layer, native without one. */
const LETTERS: Record<string, number> = { k: 0, n: 1, j: 2, g: 3 };

export interface SmallSample {
	time: number;
	stack: string;
	thread?: number;
	event?: number;
	cpu?: number;
	weight?: number;
	count?: number;
	placed?: number;
	reason?: string;
	waker?: string;
}

export interface SmallCall {
	name: string;
	begin: number;
	end: number;
	thread?: number;
	calls?: SmallCall[];
}

export interface SmallMark {
	name: string;
	begin: number;
	end: number;
	thread?: number;
}

export interface Small {
	threads?: string[];
	samples?: SmallSample[];
	calls?: SmallCall[];
	marks?: SmallMark[];		/* intervals that the program marked */
	modules?: Record<string, string>;	/* by function; "app" */
	buildId?: string;
	durationNs?: number;
}

/* A growing table whose rows are found by a text. */
function interned<T>(rows: T[], known: Map<string, number>, key: string,
		     row: () => T): number {
	let id = known.get(key);

	if (id === undefined) {
		id = rows.push(row()) - 1;
		known.set(key, id);
	}
	return id;
}

function tables(small: Small) {
	const functions: { name: string; module: number; layer: number }[] = [];
	const modules = [""], stacks = [{ parent: NONE, frame: NONE }];
	const words = [""];
	const known = [0, 1, 2, 3].map(() => new Map<string, number>()) as
		[Map<string, number>, Map<string, number>,
		 Map<string, number>, Map<string, number>];

	known[1].set("", 0);
	known[3].set("", 0);
	const func = (text: string) => interned(functions, known[0], text,
		() => {
			const layer = LETTERS[text.match(/^(\w):/)?.[1] ?? "n"]!;
			const name = text.replace(/^\w:/, "");
			const path = small.modules?.[name] ?? LAYERS[layer]!;

			return { name, layer, module: interned(modules,
				known[1], path, () => path) };
		});
	const stack = (text: string) => text.split(";").filter(Boolean)
		.reduce((parent, word) => interned(stacks, known[2],
			`${parent} ${word}`,
			() => ({ parent, frame: func(word) })), 0);
	const word = (text: string) => interned(words, known[3], text,
						() => text);

	return { functions, modules, stacks, words, func, stack, word };
}

function callTables(small: Small, t: ReturnType<typeof tables>) {
	const rows: { call: SmallCall; parent: number; depth: number;
		      thread: number }[] = [];
	const put = (call: SmallCall, parent: number, depth: number,
		     thread: number): void => {
		const at = rows.push({ call, parent, depth, thread }) - 1;

		for (const inner of call.calls ?? [])
			put(inner, at, depth + 1, thread);
	};
	const roots = [...small.calls ?? []].sort((a, b) =>
		(a.thread ?? 0) - (b.thread ?? 0) || a.begin - b.begin);

	for (const root of roots)
		put(root, NONE, 0, root.thread ?? 0);
	const self = rows.map(r => r.call.end - r.call.begin - (r.call.calls ??
		[]).reduce((sum, c) => sum + c.end - c.begin, 0));
	const path = rows.map(() => "");

	rows.forEach((r, i) => {
		path[i] = (r.parent === NONE ? "" : path[r.parent] + ";") +
			  r.call.name;
		t.stack(path[i]!);
	});
	return {
		path, rows, table: {
			n: rows.length,
			begin: Float64Array.from(rows, r => r.call.begin),
			duration: Float64Array.from(rows, r =>
				r.call.end - r.call.begin),
			self: Float64Array.from(self),
			thread: Uint32Array.from(rows, r => r.thread),
			func: Uint32Array.from(rows, r => t.func(r.call.name)),
			depth: Uint16Array.from(rows, r => r.depth),
			parent: Uint32Array.from(rows, r => r.parent),
			text: new Uint32Array(rows.length),
		},
	};
}

/* Adds the names to @functions, as decode.ts does. */
function markTable(small: Small, functions: ReturnType<typeof tables>[
		"functions"]): Timed {
	const rows = [...small.marks ?? []].sort((a, b) => (a.thread ?? 0) -
		(b.thread ?? 0) || a.begin - b.begin || b.end - a.end);
	const known = new Map<string, number>();
	const func = rows.map(({ name }) => interned(functions, known, name,
		() => ({ name, module: 0, layer: MARKED })));

	return {
		n: rows.length, func: Uint32Array.from(func),
		begin: Float64Array.from(rows, r => r.begin),
		duration: Float64Array.from(rows, r => r.end - r.begin),
		thread: Uint32Array.from(rows, r => r.thread ?? 0),
		text: new Uint32Array(rows.length),
	};
}

/* Events: 0 "cpu-clock", 1 "off-cpu", 2 "preempted", 3 "xray". */
export function smallProfile(small: Small): Profile {
	const t = tables(small), calls = callTables(small, t);
	/* sums of calls, as the reader makes them: a sample a call here */
	const sums = calls.rows.map((r, i): SmallSample => ({
		time: r.call.begin, thread: r.thread, event: 3, placed: 0,
		stack: calls.path[i]!, weight: calls.table.self[i]!,
	}));
	const s = [...small.samples ?? [], ...sums]
		.sort((a, b) => a.time - b.time);
	const stackOf = s.map(x => t.stack(x.stack));
	const n = s.length, f = t.functions, intervals = markTable(small, f);
	const ids = (of: (x: SmallSample) => number) => Uint32Array.from(s, of);

	return {
		meta: {
			version: 1, title: "small", file: "small.seam",
			startNs: "0", durationNs: small.durationNs ?? 1000,
			utcNs: "", openAtNs: -1, openForNs: 0, notes: [], losses: [],
			coarse: { samples: 0, calls: 0, shortestCallNs: 0 },
			clockSkewNs: -1, hostName: "", cpus: 2,
		},
		words: t.words, files: [],
		processes: [{ pid: 1, name: "app", start: -1, end: Infinity }],
		threads: (small.threads ?? ["app"]).map((name, i) => ({
			process: 0, tid: i + 1, name, start: -1, end: Infinity,
			running: NaN, blocked: NaN, preempted: NaN,
			unknown: NaN,
		})),
		events: [
			{ name: "cpu-clock", unit: "ns", kind: "sample",
			  preempted: false, lost: 0 },
			{ name: "off-cpu", unit: "ns", kind: "wait",
			  preempted: false, lost: 0 },
			{ name: "preempted", unit: "ns", kind: "wait",
			  preempted: true, lost: 0 },
			{ name: "xray", unit: "ns", kind: "call",
			  preempted: false, lost: 0 },
		],
		modules: {
			n: t.modules.length, path: t.modules,
			buildId: t.modules.map(m => m && small.buildId || ""),
		},
		functions: {
			n: f.length, name: f.map(x => x.name),
			module: Uint32Array.from(f, x => x.module),
			layer: Uint8Array.from(f, x => x.layer),
		},
		frames: {
			n: f.length, func: Uint32Array.from(f, (_, i) => i),
			file: new Uint32Array(f.length).fill(NONE),
			line: new Uint32Array(f.length),
			addr: new Float64Array(f.length),
			inlined: new Uint8Array(f.length),
		},
		stacks: {
			n: t.stacks.length,
			parent: Uint32Array.from(t.stacks, x => x.parent),
			frame: Uint32Array.from(t.stacks, x => x.frame),
		},
		samples: {
			n, time: Float64Array.from(s, x => x.time),
			thread: ids(x => x.thread ?? 0),
			stack: Uint32Array.from(stackOf),
			event: Uint8Array.from(s, x => x.event ?? 0),
			cpu: Uint16Array.from(s, x => x.cpu ?? 0xffff),
			weight: Float64Array.from(s, x => x.weight ?? 10),
			count: Float64Array.from(s, x => x.count ?? 1),
			placed: Uint8Array.from(s, x => x.placed ?? 1),
			reason: ids(x => t.word(x.reason ?? "")),
			waker: ids(x => t.word(x.waker ?? "")),
		},
		calls: calls.table, intervals,
		marks: {
			n: 0, time: new Float64Array(0),
			duration: new Float64Array(0),
			thread: new Uint32Array(0), kind: new Uint8Array(0),
			name: new Uint32Array(0), text: new Uint32Array(0),
		},
		code: [],
	};
}
