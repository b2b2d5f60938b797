/* SPDX-License-Identifier: MIT */
/*
 * calls.ts - the chosen calls by function, their lengths, the slowest ones
 *
 * Marked intervals are beside the calls, by name.  The numbers are those of
 * 'seam calls --json'.  Counts, sums, minima and maxima are
 * exact; a quantile is the call of the nearest rank in a histogram with 16
 * buckets for each power of two (src/model/xray/account.h has the error).
 */
import { LAYERS, MARKED, NONE, type Profile, type Timed } from "../profile";
import { lowerBound, memo } from "./arrays";
import { callWaits, hasWaits, outermostCalls, rowsByFunction, tableOf,
	 timedWaits } from "./call_index";
import { flags, type Chosen } from "./chosen";
import { chosenCalls, chosenIntervals } from "./sums";

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

/* By call 1 where its stack has a frame of @module. */
function callsThrough(profile: Profile, module: number): Uint8Array {
	const { calls: { n, func, parent }, functions } = profile;
	const has = new Uint8Array(n);

	for (let i = 0; i < n; i++)
		has[i] = functions.module[func[i]!] === module ||
			 (parent[i] !== NONE && has[parent[i]!]) ? 1 : 0;
	return has;
}

/*
 * By call, or by interval: 1 where it is chosen, and is of the module.  Marked
 * intervals are of none.
 */
function findWanted(chosen: Chosen, table: Timed): Uint8Array {
	const { profile, selection: { module } } = chosen;
	const has = table === profile.calls ? chosenCalls(chosen) :
		    chosenIntervals(chosen);

	if (module === null)
		return has;
	if (table !== profile.calls)
		return new Uint8Array(table.n);
	const through = callsThrough(profile, module);

	return has.map((flag, i) => flag & through[i]!);
}

const wantedCalls = memo((chosen: Chosen) =>
	findWanted(chosen, chosen.profile.calls));
const wantedIntervals = memo((chosen: Chosen) =>
	findWanted(chosen, chosen.profile.intervals));

/*
 * A table in the order of its functions, with sums from its first row on: the
 * sum over neighbours is a difference.  Sums are exact up to 2^53 ns.
 */
interface Sorted {
	start: Uint32Array;	/* by function its first; one more */
	rows: Uint32Array;	/* of the table; of a function by thread, begin */
	begin: Float64Array;
	thread: Uint32Array;
	duration: Float64Array;
	bucket: Uint16Array;
	sums: Partial<Record<Figure, Float64Array>>;
}

/* Of calls, total and waits are of outermost ones, so that each ns is once. */
function sort(profile: Profile, table: Timed): Sorted {
	const { start, rows } = rowsByFunction(profile, table);
	const isCalls = table === profile.calls, n = rows.length;
	const outer = isCalls ? outermostCalls(profile) : null;
	const waits = hasWaits(profile) ? timedWaits(profile, table) : null;
	const own = waits && isCalls ? callWaits(profile) : null;
	const pick = <T extends Float64Array | Uint32Array>(of: T, to: T) => {
		for (let k = 0; k < n; k++)
			to[k] = of[rows[k]!]!;
		return to;
	};
	const sum = (of: Float64Array, only: Uint8Array | null = null) => {
		const sums = new Float64Array(n + 1);

		for (let k = 0; k < n; k++)
			sums[k + 1] = sums[k]! + (only && !only[rows[k]!] ? 0 :
						  of[rows[k]!]!);
		return sums;
	};
	const duration = pick(table.duration, new Float64Array(n));
	const bucket = new Uint16Array(n);

	for (let k = 0; k < n; k++)
		bucket[k] = bucketOf(duration[k]!);
	return {
		start, rows, duration, bucket,
		begin: pick(table.begin, new Float64Array(n)),
		thread: pick(table.thread, new Uint32Array(n)),
		sums: {
			sum: sum(table.duration),
			total: sum(table.duration, outer),
			...isCalls && { self: sum(profile.calls.self) },
			...waits && { blocked: sum(waits.blocked, outer),
				      preempted: sum(waits.preempted, outer) },
			...own && { selfBlocked: sum(own.selfBlocked),
				    selfPreempted: sum(own.selfPreempted) },
		},
	};
}

const sortedCalls = memo((profile: Profile) => sort(profile, profile.calls));
const sortedIntervals = memo((profile: Profile) =>
	sort(profile, profile.intervals));

/* Chosen rows of one function: those from at[2 * i] to at[2 * i + 1] - 1. */
interface Pieces {
	n: number;
	at: Uint32Array;
}

function addPiece(pieces: Pieces, from: number, to: number): void {
	if (from >= to)
		return;
	if (2 * pieces.n === pieces.at.length) {
		const more = new Uint32Array(2 * pieces.at.length);

		more.set(pieces.at);
		pieces.at = more;
	}
	pieces.at[2 * pieces.n] = from;
	pieces.at[2 * pieces.n++ + 1] = to;
}

/* Sets @pieces to the chosen rows of a function. */
type FindPieces = (func: number, pieces: Pieces) => void;

/* Where the time and the threads choose: begins of a thread ascend. */
function piecesInTime({ profile, selection }: Chosen, sorted: Sorted):
		FindPieces {
	const { start, thread, begin } = sorted, { from, to } = selection;
	const threads = flags(selection.threads, profile.threads.length);

	return (func, pieces) => {
		const end = start[func + 1]!;

		pieces.n = 0;
		for (let lo = start[func]!; lo < end;) {
			const of = thread[lo]!;
			const next = thread[end - 1] === of ? end :
				     lowerBound(thread, of + 1, lo, end);

			if (threads[of]) {
				const first = lowerBound(begin, from, lo, next);

				addPiece(pieces, first, lowerBound(begin, to,
					first, next));
			}
			lo = next;
		}
	};
}

/* Where more than that chooses. */
function piecesOf(has: Uint8Array, { start, rows }: Sorted): FindPieces {
	return (func, pieces) => {
		const end = start[func + 1]!;

		pieces.n = 0;
		for (let lo = start[func]!, hi = lo; lo < end; lo = ++hi) {
			while (hi < end && has[rows[hi]!])
				hi++;
			addPiece(pieces, lo, hi);
		}
	};
}

/* The lengths of the rows in @pieces, in @into. */
function addLengths(sorted: Sorted, pieces: Pieces, into: Lengths): void {
	const { duration, bucket } = sorted, { buckets } = into;
	let n = 0, min = Infinity, max = 0;

	clear(into);
	for (let i = 0; i < pieces.n; i++) {
		const end = pieces.at[2 * i + 1]!;

		n += end - pieces.at[2 * i]!;
		for (let k = pieces.at[2 * i]!; k < end; k++) {
			const ns = duration[k]!;

			if (ns < min)
				min = ns;
			if (ns > max)
				max = ns;
			buckets[bucket[k]!]!++;
		}
	}
	into.count = n;
	into.sum = sumOf(sorted.sums.sum, pieces);
	into.min = min;
	into.max = max;
	if (n) {
		into.first = bucketOf(min);
		into.last = bucketOf(max);
	}
}

function sumOf(sums: Float64Array | undefined, { n, at }: Pieces): number {
	let sum = 0;

	for (let i = 0; sums && i < n; i++)
		sum += sums[at[2 * i + 1]!]! - sums[at[2 * i]!]!;
	return sum;
}

interface Finder {
	sorted: Sorted;
	find: FindPieces;
}

/* Marked intervals are of native code. */
const NATIVE = LAYERS.indexOf("native");

const noPieces: FindPieces = (_func, pieces) => { pieces.n = 0; };

function finderOf(chosen: Chosen, isMarked: boolean): Finder {
	const { profile, inside, selection: { module, layers } } = chosen;
	const sorted = isMarked ? sortedIntervals(profile) :
		       sortedCalls(profile);
	const isOut = isMarked && layers && !layers.includes(NATIVE);

	return { sorted, find: isOut ? noPieces :
		 inside || module !== null ? piecesOf(isMarked ?
			wantedIntervals(chosen) : wantedCalls(chosen), sorted) :
		 piecesInTime(chosen, sorted) };
}

const callFinder = memo((chosen: Chosen) => finderOf(chosen, false));
const markFinder = memo((chosen: Chosen) => finderOf(chosen, true));

/* The chosen rows of @func, in @pieces; returns what they are rows of. */
function findPieces(chosen: Chosen, func: number, pieces: Pieces): Sorted {
	const layer = chosen.profile.functions.layer[func]!;
	const { layers } = chosen.selection, isMarked = layer === MARKED;
	const { sorted, find } = isMarked ? markFinder(chosen) :
				 callFinder(chosen);

	(isMarked || !layers || layers.includes(layer) ? find :
	 noPieces)(func, pieces);
	return sorted;
}

const emptyPieces = (): Pieces => ({ n: 0, at: new Uint32Array(16) });

const QUANTILES = { p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999 };

function makeRows(chosen: Chosen): CallRows {
	const { functions } = chosen.profile;
	const lengths = noLengths(), pieces = emptyPieces();
	const f = {} as Record<Figure, Float64Array>;

	for (const figure of FIGURES)
		f[figure] = new Float64Array(functions.n);
	for (let func = 0; func < functions.n; func++) {
		const sorted = findPieces(chosen, func, pieces);

		if (!pieces.n)
			continue;
		addLengths(sorted, pieces, lengths);
		for (const figure of FIGURES)
			f[figure][func] = sumOf(sorted.sums[figure], pieces);
		f.count[func] = lengths.count;
		f.min[func] = lengths.min;
		f.max[func] = lengths.max;
		for (const [name, fraction] of Object.entries(QUANTILES))
			f[name as "p50"][func] = quantile(lengths, fraction);
	}
	const func = Uint32Array.from(f.count.keys()).filter(i => f.count[i]);
	const made = { n: func.length, func } as CallRows;

	for (const figure of FIGURES)
		made[figure] = Float64Array.from(func, i => f[figure][i]!);
	return made;
}

export const callRows = memo(makeRows);

/* -- one function ------------------------------------------------------- */

/* The chosen rows of @func in its table, in the order of that. */
export function callsOf(chosen: Chosen, func: number): Uint32Array {
	const pieces = emptyPieces();
	const { rows } = findPieces(chosen, func, pieces);
	let n = 0;

	for (let i = 0; i < pieces.n; i++)
		n += pieces.at[2 * i + 1]! - pieces.at[2 * i]!;
	const found = new Uint32Array(n);

	for (let i = 0, at = 0; i < pieces.n; i++) {
		const part = rows.subarray(pieces.at[2 * i],
					   pieces.at[2 * i + 1]);

		found.set(part, at);
		at += part.length;
	}
	return found;
}

export function lengthsOf(chosen: Chosen, func: number): Lengths {
	const lengths = noLengths(), pieces = emptyPieces();

	addLengths(findPieces(chosen, func, pieces), pieces, lengths);
	return lengths;
}

/* The @n slowest of them, the longest first. */
export function slowest(chosen: Chosen, func: number, n: number): number[] {
	const { duration, thread, begin } = tableOf(chosen.profile, func);
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
