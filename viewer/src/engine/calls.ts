/* SPDX-License-Identifier: MIT */
/*
 * calls.ts - the chosen calls by function, their lengths, the slowest ones
 *
 * The numbers of 'seam calls --json'.  Counts, sums, minima and maxima are
 * exact; a quantile is the call of the nearest rank in a histogram with 16
 * buckets for each power of two (src/model/xray/account.h has the error).
 */
import { NONE } from "../profile";
import { callsByFunction, callWaits, hasWaits, outermostCalls }
	from "./call_index";
import type { Chosen } from "./chosen";
import { chosenCalls } from "./sums";

const STEPS = 16;	/* buckets of an octave */
const OCTAVES = 61;

/* The bucket of @ns, and the least length in a bucket. */
export function bucketOf(ns: number): number {
	const hi = Math.floor(ns / 2 ** 32);
	const top = hi ? 63 - Math.clz32(hi) :
		    31 - Math.clz32((ns >>> 0) | STEPS);
	const shift = top - 4;

	return shift * STEPS + Math.floor(ns / 2 ** shift);
}

export function leastOf(bucket: number): number {
	const octave = Math.floor(bucket / STEPS), step = bucket % STEPS;

	return octave === 0 ? step : (STEPS + step) * 2 ** (octave - 1);
}

/* Of calls of one function. */
export interface Lengths {
	count: number;
	sum: number;
	min: number;
	max: number;
	first: number;		/* buckets that have calls are first to last */
	last: number;
	buckets: Uint32Array;
}

function noLengths(): Lengths {
	return {
		count: 0, sum: 0, min: Infinity, max: 0,
		first: STEPS * OCTAVES, last: -1,
		buckets: new Uint32Array(STEPS * OCTAVES),
	};
}

function addLength(l: Lengths, ns: number): void {
	const bucket = bucketOf(ns);

	l.count++;
	l.sum += ns;
	l.min = Math.min(l.min, ns);
	l.max = Math.max(l.max, ns);
	l.first = Math.min(l.first, bucket);
	l.last = Math.max(l.last, bucket);
	l.buckets[bucket]!++;
}

function clear(l: Lengths): void {
	/* octaves are whole */
	if (l.last >= 0)
		l.buckets.fill(0, l.first & ~15, (l.last | 15) + 1);
	l.count = l.sum = l.max = 0;
	l.min = Infinity;
	l.first = STEPS * OCTAVES;
	l.last = -1;
}

/*
 * The rank of @fraction among @count, 1 to @count.  The product is inexact:
 * 0.07 * 100 is a little more than 7, but its rank is 7.
 */
function nearestRank(count: number, fraction: number): number {
	const product = fraction * count;
	let rank = Math.floor(Math.min(Math.max(product, 0), count));

	if (rank < product * (1 - 2 ** -50))
		rank++;
	return Math.min(Math.max(rank, 1), count);
}

export function quantile(l: Lengths, fraction: number): number {
	const rank = nearestRank(l.count, fraction);
	const clamp = (ns: number) => Math.min(Math.max(ns, l.min), l.max);
	let seen = 0;

	if (rank === 1)
		return l.min;
	if (rank === l.count)
		return l.max;
	if (l.count === 3)
		return clamp(l.sum - l.min - l.max);
	for (let i = l.first; i <= l.last; i++) {
		const octave = Math.floor(i / STEPS);

		seen += l.buckets[i]!;
		if (seen >= rank)
			return clamp(leastOf(i) +
				     (octave <= 1 ? 0 : 2 ** (octave - 2)));
	}
	return l.max;
}

/* -- rows --------------------------------------------------------------- */

export const FIGURES = [
	"count", "min", "p50", "p90", "p99", "p999", "max", "sum", "total",
	"self", "blocked", "preempted", "selfBlocked", "selfPreempted",
] as const;
export type Figure = typeof FIGURES[number];

export type CallRows = { n: number; func: Uint32Array } &
	Record<Figure, Float64Array>;

/* By call whether its function is of the layers, its stack of the module. */
function codeFilter(chosen: Chosen): ((call: number) => boolean) | null {
	const { functions, calls } = chosen.profile;
	const { layers, module } = chosen.selection;

	if (!layers && module === null)
		return null;
	const of = (call: number) =>
		functions.module[calls.func[call]!] === module;
	const has = new Uint8Array(module === null ? 0 : calls.n);

	for (let i = 0; i < has.length; i++)
		has[i] = of(i) || (calls.parent[i] !== NONE &&
				   has[calls.parent[i]!]) ? 1 : 0;
	return call => (!layers ||
			layers.includes(functions.layer[calls.func[call]!]!)) &&
		       (module === null || has[call] === 1);
}

const knownFlags = new WeakMap<Chosen, Uint8Array>();

/* By call: 1 where it is chosen and its code is. */
function wantedCalls(chosen: Chosen): Uint8Array {
	let has = knownFlags.get(chosen);

	if (!has) {
		const filter = codeFilter(chosen);

		has = chosenCalls(chosen);
		if (filter)
			has = has.map((flag, i) => flag && filter(i) ? 1 : 0);
		knownFlags.set(chosen, has);
	}
	return has;
}

/*
 * Histograms of all functions.  A function has buckets of an octave only where
 * a call of it is so long.
 */
interface Octaves {
	of: Uint32Array;	/* by function and octave: block; 0: none */
	blocks: Uint32Array;	/* of STEPS buckets */
	n: number;
}

function blockOf(octaves: Octaves, at: number): number {
	if (octaves.of[at] === 0) {
		if ((octaves.n + 1) * STEPS > octaves.blocks.length) {
			const more = new Uint32Array(2 *
				octaves.blocks.length);

			more.set(octaves.blocks);
			octaves.blocks = more;
		}
		octaves.of[at] = octaves.n++;
	}
	return octaves.of[at]!;
}

type Figures = Record<Figure, Float64Array>;

/* By function everything but the quantiles. */
function addUp(chosen: Chosen, octaves: Octaves): Figures {
	const { profile } = chosen, { calls, functions } = profile;
	const has = wantedCalls(chosen), outer = outermostCalls(profile);
	const waits = hasWaits(profile) ? callWaits(profile) : null;
	const f = {} as Figures;

	for (const figure of FIGURES)
		f[figure] = new Float64Array(functions.n);
	f.min.fill(Infinity);
	for (let i = 0; i < calls.n; i++) {
		const func = calls.func[i]!, ns = calls.duration[i]!;

		if (!has[i] || func === NONE)
			continue;
		const bucket = bucketOf(ns);

		/* before blocks, which it may replace */
		const block = blockOf(octaves, func * OCTAVES +
				      (bucket >>> 4));

		octaves.blocks[block * STEPS + (bucket & 15)]!++;
		f.count[func]!++;
		f.sum[func]! += ns;
		f.self[func]! += calls.self[i]!;
		if (ns < f.min[func]!)
			f.min[func] = ns;
		if (ns > f.max[func]!)
			f.max[func] = ns;
		if (outer[i])
			f.total[func]! += ns;
		if (!waits)
			continue;
		if (outer[i]) {
			f.blocked[func]! += waits.blocked[i]!;
			f.preempted[func]! += waits.preempted[i]!;
		}
		f.selfBlocked[func]! += waits.selfBlocked[i]!;
		f.selfPreempted[func]! += waits.selfPreempted[i]!;
	}
	return f;
}

/* The lengths of @func's calls, in @into. */
function lengthsIn(octaves: Octaves, f: Figures, func: number,
		   into: Lengths): void {
	clear(into);
	into.count = f.count[func]!;
	into.sum = f.sum[func]!;
	into.min = f.min[func]!;
	into.max = f.max[func]!;
	into.first = bucketOf(into.min);
	into.last = bucketOf(into.max);
	for (let o = into.first >>> 4; o <= into.last >>> 4; o++) {
		const block = octaves.of[func * OCTAVES + o]!;

		if (block)
			into.buckets.set(octaves.blocks.subarray(block * STEPS,
				(block + 1) * STEPS), o * STEPS);
	}
}

const QUANTILES = { p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999 };

const knownRows = new WeakMap<Chosen, CallRows>();

export function callRows(chosen: Chosen): CallRows {
	const { functions } = chosen.profile, known = knownRows.get(chosen);

	if (known)
		return known;
	const octaves = { of: new Uint32Array(functions.n * OCTAVES), n: 1,
			  blocks: new Uint32Array(64 * STEPS) };
	const f = addUp(chosen, octaves), lengths = noLengths();
	const func = Uint32Array.from(f.count.keys()).filter(i => f.count[i]);

	for (const i of func) {
		lengthsIn(octaves, f, i, lengths);
		for (const [name, fraction] of Object.entries(QUANTILES))
			f[name as keyof typeof QUANTILES][i] =
				quantile(lengths, fraction);
	}
	const made = { n: func.length, func } as CallRows;

	for (const figure of FIGURES)
		made[figure] = Float64Array.from(func, i => f[figure][i]!);
	knownRows.set(chosen, made);
	return made;
}

/* -- one function ------------------------------------------------------- */

/* The chosen calls of @func, in the order of the table. */
export function callsOf(chosen: Chosen, func: number): Uint32Array {
	const index = callsByFunction(chosen.profile);
	const has = wantedCalls(chosen);

	return index.rows.subarray(index.start[func], index.start[func + 1])
		.filter(i => has[i]);
}

export function lengthsOf(chosen: Chosen, func: number): Lengths {
	const lengths = noLengths();

	for (const i of callsOf(chosen, func))
		addLength(lengths, chosen.profile.calls.duration[i]!);
	return lengths;
}

/* The @n slowest of them, the longest first. */
export function slowest(chosen: Chosen, func: number, n: number): number[] {
	const { duration, thread, begin } = chosen.profile.calls;
	const calls = callsOf(chosen, func);
	const order = (a: number, b: number) => duration[b]! - duration[a]! ||
		thread[a]! - thread[b]! || begin[a]! - begin[b]!;
	let kept: number[] = [], least = -1;

	for (const i of calls) {
		if (duration[i]! < least)
			continue;
		kept.push(i);
		if (kept.length === 4 * n) {
			kept = kept.sort(order).slice(0, n);
			least = duration[kept[n - 1]!]!;
		}
	}
	return kept.sort(order).slice(0, n);
}
