/* SPDX-License-Identifier: MIT */
/*
 * synthetic.ts - a large profile that looks like a server's, for benches, tests
 * and pictures
 *
 * Requests on worker threads: calls of the exact layer, samples inside them
 * with frames of all layers, waits for locks, disks and CPUs, marks.  The same
 * arguments give the same profile.
 */
import { NONE, type Profile } from "../profile";

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

function samplesOf(sizes: Sizes, random: Random): Profile["samples"] {
	const { samples: n, threads, durationNs } = sizes;
	const rows = { time: new Float64Array(n), thread: new Uint32Array(n),
		       weight: new Float64Array(n), event: new Uint8Array(n),
		       reason: new Uint32Array(n), waker: new Uint32Array(n),
		       stack: new Uint32Array(n), cpu: new Uint16Array(n) };
	const period = durationNs * Math.min(threads, sizes.cpus) / n * 0.7;
	/* until then the thread waits */
	const free = new Float64Array(threads);

	for (let i = 0; i < n; i++) {
		const time = Math.floor(durationNs * (i + random()) / n);
		/* the first threads are busier */
		let thread = Math.floor(threads * random() ** 2);

		for (let k = 0; k < threads && free[thread]! > time; k++)
			thread = (thread + 1) % threads;
		rows.time[i] = time;
		rows.thread[i] = thread;
		rows.cpu[i] = Math.floor(random() * sizes.cpus);
		rows.weight[i] = Math.round(period);
		rows.stack[i] = Math.floor(random() ** 1.5 * sizes.stacks);
		if (random() >= 0.05 || free[thread]! > time)
			continue;
		const preempted = random() < 0.3;
		const ns = Math.floor(20 * period * random() ** 3) + 2000;

		rows.event[i] = preempted ? 2 : 1;
		rows.weight[i] = Math.min(ns, durationNs - time);
		free[thread] = time + ns;
		rows.reason[i] = preempted ? 0 :
				 1 + Math.floor(random() * 5);
		rows.waker[i] = preempted ? 0 :
				6 + Math.floor(random() * threads);
	}
	return { ...rows, n, count: new Float64Array(n).fill(1),
		 placed: new Uint8Array(n).fill(1) };
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
		const inner = Math.floor(length * (0.05 + 0.5 * random()));

		if (at + inner >= end || inner < 400)
			break;
		at = Math.floor(at);
		putCall(rows, thread, i, depth + 1, at, at + inner, random);
		inside += inner;
		at += inner + length * 0.1 * random();
	}
	rows.self[i] = length - inside;
}

/* Requests one after the other on each thread, until its share is full. */
function callsOf(sizes: Sizes, random: Random): Profile["calls"] {
	const n = sizes.calls, { threads, durationNs } = sizes;
	const rows: CallRows = {
		n: 0, max: n, begin: new Float64Array(n),
		duration: new Float64Array(n), self: new Float64Array(n),
		thread: new Uint32Array(n), func: new Uint32Array(n),
		depth: new Uint16Array(n), parent: new Uint32Array(n),
	};
	const length = durationNs * threads * 24 / n;

	for (let t = 0; t < threads; t++) {
		rows.max = Math.round(n * (t + 1) / threads);
		for (let at = 0; rows.n < rows.max;) {
			const ns = Math.floor(length * (0.2 + random() +
				(random() < 0.01 ? 8 : 0)));

			if (at + ns >= durationNs)
				break;
			putCall(rows, t, NONE, 0, at, at + ns, random);
			at = Math.floor(at + ns * (1 + 0.3 * random()));
		}
	}
	const { max: _max, ...columns } = rows;

	return { ...columns, text: new Uint32Array(n) };
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
	const calls = callsOf(sizes, random);

	calls.n = Math.min(calls.n, sizes.calls);
	return {
		meta: {
			version: 1, title: "shopd --listen 8080", utcNs: "",
			file: "shop.seam", startNs: "0", notes: [], losses: [],
			durationNs: sizes.durationNs, openAtNs: -1,
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
		modules: modulesOf(), functions,
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
		samples: samplesOf(sizes, random), calls,
		marks: marksOf(sizes, random), code: [],
	};
}
