/* SPDX-License-Identifier: MIT */
/*
 * synthetic.ts - a large profile that looks like a server's, for benches, tests
 * and pictures
 *
 * Requests on worker threads: calls of the exact layer, samples inside them
 * with frames of all layers, waits for locks, disks and CPUs, marks.  The same
 * arguments give the same profile.
 */
import { MARKED, NONE, type Profile, type Timed } from "../profile";

export interface Sizes {
	samples: number;	/* some 1 in 20 are waits */
	calls: number;
	threads: number;
	cpus: number;
	durationNs: number;
	stacks: number;		/* distinct ones, at most */
	marks: number;
	seed: number;
}

export const LARGE: Sizes = {
	samples: 1_000_000, calls: 1_000_000, threads: 24, cpus: 8,
	durationNs: 60e9, stacks: 60_000, marks: 4000, seed: 1,
};

export const SMALL: Sizes = {
	samples: 20_000, calls: 12_000, threads: 8, cpus: 4, durationNs: 2e9,
	stacks: 3000, marks: 60, seed: 7,
};

export type Random = () => number;

/* xorshift32: numbers of [0, 1). */
export function randomOf(seed: number): Random {
	let x = seed * 0x9e3779b1 | 1;

	return () => {
		x ^= x << 13;
		x ^= x >>> 17;
		x ^= x << 5;
		return (x >>> 0) / 4294967296;
	};
}

/* -- functions and stacks ----------------------------------------------- */

const WORDS = ["parse", "read", "write", "hash", "insert", "find", "encode",
	"decode", "copy", "lock", "send", "render", "sort", "merge", "compile"];
const THINGS = ["header", "row", "order", "index", "buffer", "string", "page",
	"node", "token", "block", "session", "price", "report", "queue"];

function nameOf(layer: number, i: number): string {
	const word = WORDS[i % WORDS.length]!;
	const thing = THINGS[(i / WORDS.length | 0) % THINGS.length]!;

	return layer === 0 ? `__x64_sys_${word}_${thing}` :
	       layer === 2 ? `TRACE_${i} ${word}.lua:${i % 90}` :
	       layer === 3 ? `${word}_${thing}@orders.lua:${i % 400}` :
	       i % 7 === 0 ? `shop::${thing}_store<std::__cxx11::basic_string` +
			`<char>, ${thing}_key, ${i}>::${word}(shop::${thing}` +
			` const&, unsigned long)` : `${word}_${thing}_${i}`;
}

const LAYER_SIZES = [140, 420, 60, 160];	/* functions of each layer */

function functionsOf() {
	const name: string[] = [], layer: number[] = [];

	LAYER_SIZES.forEach((n, l) => {
		for (let i = 0; i < n; i++) {
			name.push(nameOf(l, i));
			layer.push(l);
		}
	});
	return { n: name.length, name, layer: Uint8Array.from(layer),
		 module: Uint32Array.from(layer, l => l + 1) };
}

const FIRST = [0, 140, 560, 620];		/* function of each layer */

function funcOf(layer: number, random: Random): number {
	/* few functions are hot */
	return FIRST[layer]! + Math.floor(LAYER_SIZES[layer]! *
		random() ** 2.5);
}

/* Stacks grow from the ones before: a tree with some 30 levels. */
function stacksOf(n: number, functions: Profile["functions"], random: Random) {
	const parent = new Uint32Array(n), frame = new Uint32Array(n);
	const depth = new Uint16Array(n);
	const layerOf = (stack: number) => stack ?
		functions.layer[frame[stack]! >> 1]! : 1;

	parent[0] = frame[0] = NONE;
	for (let i = 1; i < n; i++) {
		let up = i < 8 ? 0 : random() < 0.75 ? i - 1 :
			 Math.floor(random() * i);

		while (depth[up]! > 34 || (up && layerOf(up) === 0 &&
					   random() < 0.7))
			up = parent[up]!;
		const x = random(), from = layerOf(up);
		const layer = from === 0 ? 0 : from === 1 ? x < 0.12 ? 0 :
			x < 0.24 ? 3 : 1 : from === 3 ? x < 0.2 ? 1 : x < 0.4 ?
			2 : 3 : x < 0.4 ? 1 : 2;

		parent[i] = up;
		depth[i] = depth[up]! + 1;
		frame[i] = funcOf(layer, random) * 2 +
			   (layer === 1 && random() < 0.2 ? 1 : 0);
	}
	return { n, parent, frame };
}

/* -- samples ------------------------------------------------------------ */

const REASONS = ["", "futex", "read from a file", "page fault", "epoll",
		 "write to a socket"];

/* Running and waiting take turns; samples are a period apart while it runs. */
interface SampleRows {
	n: number;
	max: number;
	time: Float64Array;
	thread: Uint32Array;
	weight: Float64Array;
	event: Uint8Array;
	reason: Uint32Array;
	waker: Uint32Array;
	stack: Uint32Array;
	cpu: Uint16Array;
}

function putSample(rows: SampleRows, row: Partial<Record<keyof SampleRows,
		   number>>): void {
	const i = rows.n++;

	rows.time[i] = row.time!;
	rows.thread[i] = row.thread!;
	rows.weight[i] = row.weight!;
	rows.event[i] = row.event ?? 0;
	rows.reason[i] = row.reason ?? 0;
	rows.waker[i] = row.waker ?? 0;
	rows.stack[i] = row.stack!;
	rows.cpu[i] = row.cpu!;
}

const WAIT_EACH = 19;		/* samples between waits, on average */

function samplesOfThread(rows: SampleRows, sizes: Sizes, thread: number,
			 random: Random): void {
	const { durationNs, stacks, threads, cpus } = sizes;
	const n = rows.max - rows.n;
	/* the first threads are busier */
	const busy = 0.9 / (1 + thread / 4);
	const period = Math.round(durationNs * busy / n * 1.05);
	const mean = durationNs * (1 - busy) / n * WAIT_EACH;
	let at = random() * mean, base = 0;

	while (rows.n < rows.max && at < durationNs) {
		const run = 1 + Math.floor(2 * WAIT_EACH * random());
		const cpu = Math.floor(random() * cpus);

		base = Math.floor(random() ** 1.5 * stacks);
		for (let k = 0; k < run && rows.n < rows.max &&
		     at < durationNs; k++, at += period)
			putSample(rows, { time: Math.floor(at), thread, cpu,
				weight: period, stack: Math.min(stacks - 1,
				base + Math.floor(30 * random() ** 4)) });
		const preempted = random() < 0.3;
		const ns = Math.floor(mean * 3 * random() ** 2) + 2000;

		if (rows.n >= rows.max || at + ns >= durationNs)
			break;
		putSample(rows, { time: Math.floor(at), thread, cpu, weight: ns,
			event: preempted ? 2 : 1, stack: base,
			reason: preempted ? 0 : 1 + Math.floor(random() * 5),
			waker: preempted ? 0 : 6 + Math.floor(random() *
							      threads) });
		at += ns;
	}
}

function samplesOf(sizes: Sizes, random: Random): Profile["samples"] {
	const { samples: max, threads } = sizes;
	const rows: SampleRows = {
		n: 0, max: 0, time: new Float64Array(max),
		thread: new Uint32Array(max), weight: new Float64Array(max),
		event: new Uint8Array(max), reason: new Uint32Array(max),
		waker: new Uint32Array(max), stack: new Uint32Array(max),
		cpu: new Uint16Array(max),
	};
	let share = 0;
	const shares = Array.from({ length: threads }, (_, t) =>
		share += 1 / (1 + t / 4));

	for (let t = 0; t < threads; t++) {
		rows.max = Math.round(max * shares[t]! / share);
		samplesOfThread(rows, sizes, t, random);
	}
	const n = rows.n, order = Uint32Array.from({ length: n }, (_, i) => i)
		.sort((a, b) => rows.time[a]! - rows.time[b]!);
	const sorted = <T extends Float64Array | Uint32Array | Uint16Array |
			Uint8Array>(column: T): T => {
		const out = column.slice(0, n) as T;

		order.forEach((from, to) => { out[to] = column[from]!; });
		return out;
	};

	return {
		n, time: sorted(rows.time), thread: sorted(rows.thread),
		weight: sorted(rows.weight), event: sorted(rows.event),
		reason: sorted(rows.reason), waker: sorted(rows.waker),
		stack: sorted(rows.stack), cpu: sorted(rows.cpu),
		count: new Float64Array(n).fill(1),
		placed: new Uint8Array(n).fill(1),
	};
}

/* -- calls -------------------------------------------------------------- */

interface CallRows {
	n: number;
	max: number;
	begin: Float64Array;
	duration: Float64Array;
	self: Float64Array;
	thread: Uint32Array;
	func: Uint32Array;
	depth: Uint16Array;
	parent: Uint32Array;
}

/* A call in [begin, end) and calls inside it; returns the end. */
function putCall(rows: CallRows, thread: number, parent: number, depth: number,
		 begin: number, end: number, random: Random): void {
	if (rows.n === rows.max)
		return;
	const i = rows.n++, length = end - begin;
	let at = begin + length * 0.05 * random(), inside = 0;

	rows.begin[i] = begin;
	rows.duration[i] = length;
	rows.thread[i] = thread;
	rows.depth[i] = depth;
	rows.parent[i] = parent;
	rows.func[i] = FIRST[1]! + Math.min(depth, 9) * 12 +
		       Math.floor(random() * 12);
	while (depth < 9 && length > 4000 && rows.n < rows.max) {
		const inner = length * (0.05 + 0.5 * random());

		if (at + inner >= end || inner < 400)
			break;
		putCall(rows, thread, i, depth + 1, at, at + inner, random);
		inside += inner;
		at += inner + length * 0.1 * random();
	}
	rows.self[i] = length - inside;
}

/*
 * Requests one after the other on each thread until its share of calls is full;
 * then they are stretched over the time.
 */
function callsOf(sizes: Sizes, random: Random): Profile["calls"] {
	const n = sizes.calls, { threads, durationNs } = sizes;
	const rows: CallRows = {
		n: 0, max: 0, begin: new Float64Array(n),
		duration: new Float64Array(n), self: new Float64Array(n),
		thread: new Uint32Array(n), func: new Uint32Array(n),
		depth: new Uint16Array(n), parent: new Uint32Array(n),
	};

	for (let t = 0; t < threads; t++) {
		const first = rows.n;
		let at = 0;

		rows.max = Math.round(n * (t + 1) / threads);
		while (rows.n < rows.max) {
			const ns = 200_000 * (0.2 + random() +
				(random() < 0.01 ? 8 : 0));

			putCall(rows, t, NONE, 0, at, at + ns, random);
			at += ns * (1 + 0.3 * random());
		}
		stretch(rows, first, durationNs / Math.max(at, 1));
	}
	const { max: _max, ...columns } = rows;

	return { ...columns, text: new Uint32Array(n) };
}

function stretch(rows: CallRows, first: number, factor: number): void {
	for (let i = first; i < rows.n; i++) {
		const end = Math.floor((rows.begin[i]! + rows.duration[i]!) *
				       factor);

		rows.begin[i] = Math.floor(rows.begin[i]! * factor);
		rows.duration[i] = end - rows.begin[i]!;
		rows.self[i] = Math.floor(rows.self[i]! * factor);
	}
}

/* -- the profile -------------------------------------------------------- */

function marksOf(sizes: Sizes, random: Random): Profile["marks"] {
	const n = sizes.marks, kinds = [0, 1, 2, 3, 3, 3, 0];
	const time = Float64Array.from({ length: n }, () => Math.floor(
		random() * sizes.durationNs)).sort();
	const kind = Uint8Array.from({ length: n }, () =>
		kinds[Math.floor(random() * kinds.length)]!);

	if (n)
		kind[n >> 1] = 4;
	return {
		n, time, kind,
		duration: Float64Array.from(kind, k => k === 0 ?
			random() * 2e6 : 0),
		thread: Uint32Array.from(kind, k => k === 3 ? NONE :
			Math.floor(random() * sizes.threads)),
		name: Uint32Array.from(kind, k => 6 + sizes.threads + k),
		text: new Uint32Array(n),
	};
}

const MARK_NAMES = ["order", "payment", "mail"];

/* Half as many intervals as marks, which overlap in any way. */
function intervalsOf(sizes: Sizes, random: Random, firstName: number): Timed {
	const n = sizes.marks >> 1, numbers = () => new Float64Array(n);
	const rows: Timed = {
		n, begin: numbers(), duration: numbers(),
		thread: Uint32Array.from({ length: n }, (_, i) =>
			Math.floor(i * sizes.threads / n)),
		func: Uint32Array.from({ length: n }, (_, i) =>
			firstName + i % MARK_NAMES.length),
		text: new Uint32Array(n),
	};

	for (let i = 0; i < n; i++)
		rows.begin[i] = Math.floor(random() * sizes.durationNs);
	for (let t = 0, i = 0; t < sizes.threads; t++) {
		const first = i;

		while (i < n && rows.thread[i] === t)
			i++;
		rows.begin.subarray(first, i).sort();
	}
	for (let i = 0; i < n; i++)
		rows.duration[i] = Math.floor(2e6 * random() ** 3);
	return rows;
}

/* The names of marked intervals are functions too; see decode.ts. */
function withMarked(f: Profile["functions"]): Profile["functions"] {
	const n = f.n + MARK_NAMES.length;
	const layer = new Uint8Array(n).fill(MARKED);
	const module = new Uint32Array(n);

	layer.set(f.layer);
	module.set(f.module);
	return { n, name: [...f.name, ...MARK_NAMES], module, layer };
}

function threadName(i: number): string {
	return i === 0 ? "main" : i % 5 === 4 ? "log-writer" : "worker";
}

function threadsOf(sizes: Sizes): Profile["threads"] {
	return Array.from({ length: sizes.threads }, (_, i) => ({
		process: i % 6 === 5 ? 1 : 0, tid: 4100 + i,
		name: threadName(i), start: -1, end: Infinity, running: NaN,
		blocked: NaN, preempted: NaN, unknown: NaN,
	}));
}

const modulesOf = (): Profile["modules"] => {
	const path = ["", "[kernel.kallsyms]", "/usr/sbin/shopd", "[jit]",
		      "orders.lua"];

	return { n: path.length, path, buildId: path.map(() => "") };
};

const eventOf = (name: string, kind: "sample" | "wait" | "call",
		 preempted = false) => ({ name, unit: "ns" as const, kind,
					  preempted, lost: 0 });

export function synthetic(sizes: Sizes): Profile {
	const random = randomOf(sizes.seed), functions = functionsOf();
	const nFrames = 2 * functions.n;

	return {
		meta: {
			version: 1, title: "shopd --listen 8080", utcNs: "",
			file: "shop.seam", startNs: "0", notes: [], losses: [],
			durationNs: sizes.durationNs, openAtNs: -1, openForNs: 0,
			coarse: { samples: 0, calls: 0, shortestCallNs: 0 },
			clockSkewNs: -1, hostName: "shop-1", cpus: sizes.cpus,
		},
		words: [...REASONS, ...Array.from({ length: sizes.threads },
			(_, i) => `${threadName(i)} ${4100 + i}`),
			"request.slow", "order", "ring full", "compiled",
			"--trigger serve>10ms"],
		files: [],
		processes: [{ pid: 4100, name: "shopd", start: -1,
			      end: Infinity },
			    { pid: 4099, name: "logger", start: -1,
			      end: Infinity }],
		threads: threadsOf(sizes),
		events: [eventOf("cpu-clock", "sample"),
			 eventOf("off-cpu", "wait"),
			 eventOf("preempted", "wait", true),
			 eventOf("xray", "call")],
		modules: modulesOf(), functions: withMarked(functions),
		frames: {
			n: nFrames, file: new Uint32Array(nFrames).fill(NONE),
			func: Uint32Array.from({ length: nFrames }, (_, i) =>
				i >> 1),
			line: new Uint32Array(nFrames),
			addr: new Float64Array(nFrames),
			inlined: Uint8Array.from({ length: nFrames }, (_, i) =>
				i & 1),
		},
		stacks: stacksOf(sizes.stacks, functions, random),
		samples: samplesOf(sizes, random),
		calls: callsOf(sizes, random),
		marks: marksOf(sizes, random),
		intervals: intervalsOf(sizes, random, functions.n), code: [],
	};
}
