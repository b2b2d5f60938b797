/* SPDX-License-Identifier: MIT */
/*
 * spans.ts - millions of intervals in lanes, drawn at any zoom
 *
 * A lane is the calls of one thread at one depth, or the waits of a thread:
 * intervals in the order of time that do not overlap.  Over each lane is a
 * pyramid: a block of four spans, or of four blocks, has its end, its longest
 * span and the sum of its spans.  A block without a span as wide as a pixel is
 * drawn as a part of one box; so a picture costs its pixels, not its spans.
 *
 * Pictures of many spans have these boxes made already: a rung has them for
 * pixels of its grain, and a picture with larger pixels merges boxes of the
 * last rung that is not coarser.  The pyramid is left for what a rung's box has on
 * both sides of the picture's edge, and for pictures closer than all rungs.
 */
import { lowerBound } from "../engine/arrays";

const FAN = 4;

/* One level of blocks; of all lanes, one after the other. */
interface Level {
	start: Uint32Array;	/* by lane its first block; one more at the end */
	begin: Float64Array;
	end: Float64Array;
	longest: Float64Array;
	sum: Float64Array;
}

/* Boxes of all lanes, one after the other. */
interface Rung {
	grain: number;		/* no gap in a box is as long */
	start: Uint32Array;	/* by lane its first box; one more at the end */
	begin: Float64Array;
	end: Float64Array;
	sum: Float64Array;
	first: Uint32Array;	/* its first span; one more at the end */
}

export interface Spans {
	n: number;
	nLanes: number;
	start: Uint32Array;	/* by lane its first span; one more at the end */
	begin: Float64Array;
	end: Float64Array;
	row: Uint32Array;	/* of the profile's table */
	levels: Level[];
	rungs: Rung[];		/* finest first */
}

/* Rows of a table as spans; rows with lane NONE are left out. */
export interface SpanSource {
	n: number;
	nLanes: number;
	lane: Uint32Array;	/* by row; in a lane rows are in order of time */
	begin: Float64Array;
	duration: Float64Array;
}

const SLICE = 1 << 16;		/* rows between two yields: < 4 ms */

/* The rows of each lane, a counting sort. */
function* sorted(from: SpanSource): Generator<void, Spans> {
	const { n, nLanes, lane } = from;
	const start = new Uint32Array(nLanes + 1);

	for (let i = 0; i < n; i++) {
		if (lane[i]! < nLanes)
			start[lane[i]! + 1]!++;
		if (i % SLICE === SLICE - 1)
			yield;
	}
	for (let k = 0; k < nLanes; k++)
		start[k + 1]! += start[k]!;
	const kept = start[nLanes]!, next = start.slice(0, nLanes);
	const spans: Spans = {
		n: kept, nLanes, start, begin: new Float64Array(kept),
		end: new Float64Array(kept), row: new Uint32Array(kept),
		levels: [], rungs: [],
	};

	for (let i = 0; i < n; i++) {
		if (lane[i]! < nLanes) {
			const at = next[lane[i]!]!++;

			spans.begin[at] = from.begin[i]!;
			spans.end[at] = from.begin[i]! + from.duration[i]!;
			spans.row[at] = i;
		}
		if (i % SLICE === SLICE - 1)
			yield;
	}
	return spans;
}

/* Clocks jitter: a span that overlaps the one before it begins at its end. */
function* separate(spans: Spans): Generator<void> {
	const { begin, end, start, nLanes } = spans;

	for (let k = 0, i = 0; k < nLanes; k++)
		for (let last = -Infinity; i < start[k + 1]!; i++) {
			if (begin[i]! < last)
				begin[i] = last;
			if (end[i]! < begin[i]!)
				end[i] = begin[i]!;
			last = end[i]!;
			if (i % SLICE === SLICE - 1)
				yield;
		}
}

function emptyLevel(below: Uint32Array, nLanes: number): Level {
	const start = new Uint32Array(nLanes + 1);

	for (let k = 0; k < nLanes; k++)
		start[k + 1] = start[k]! +
			Math.ceil((below[k + 1]! - below[k]!) / FAN);
	const n = start[nLanes]!;

	return {
		start, begin: new Float64Array(n), end: new Float64Array(n),
		longest: new Float64Array(n), sum: new Float64Array(n),
	};
}

/* The level above @below, or above the spans. */
function* levelAbove(spans: Spans, below: Level | null):
		Generator<void, Level> {
	const from = below ? below.start : spans.start;
	const level = emptyLevel(from, spans.nLanes);

	for (let k = 0; k < spans.nLanes; k++)
		for (let b = level.start[k]!; b < level.start[k + 1]!; b++) {
			const lo = from[k]! + FAN * (b - level.start[k]!);
			const hi = Math.min(lo + FAN, from[k + 1]!);

			if (below)
				fillFromLevel(level, b, below, lo, hi);
			else
				fillFromSpans(level, b, spans, lo, hi);
			if (b % (SLICE / FAN) === SLICE / FAN - 1)
				yield;
		}
	return level;
}

function fillFromSpans(level: Level, b: number, spans: Spans, lo: number,
		       hi: number): void {
	let longest = 0, sum = 0;

	for (let i = lo; i < hi; i++) {
		const ns = spans.end[i]! - spans.begin[i]!;

		longest = Math.max(longest, ns);
		sum += ns;
	}
	level.begin[b] = spans.begin[lo]!;
	level.end[b] = spans.end[hi - 1]!;
	level.longest[b] = longest;
	level.sum[b] = sum;
}

function fillFromLevel(level: Level, b: number, below: Level, lo: number,
		       hi: number): void {
	let longest = 0, sum = 0;

	for (let i = lo; i < hi; i++) {
		longest = Math.max(longest, below.longest[i]!);
		sum += below.sum[i]!;
	}
	level.begin[b] = below.begin[lo]!;
	level.end[b] = below.end[hi - 1]!;
	level.longest[b] = longest;
	level.sum[b] = sum;
}

const LEAST_MERGED = 0.6;	/* a rung has at most so many of the boxes below */
const FEW_BOXES = 256;		/* of a lane: it needs no coarser rung */

/* Spans as boxes. */
function spansAsRung(spans: Spans): Rung {
	const { start, begin, end, n } = spans, sum = new Float64Array(n);
	const first = new Uint32Array(n + 1);

	for (let i = 0; i < n; i++) {
		sum[i] = end[i]! - begin[i]!;
		first[i] = i;
	}
	first[n] = n;
	return { grain: 0, start, begin, end, sum, first };
}

/* The boxes for pixels of @grain, by the rules of a Walk. */
function* rungAbove(below: Rung, grain: number, nLanes: number):
		Generator<void, Rung> {
	const n = below.sum.length, start = new Uint32Array(nLanes + 1);
	const begin = new Float64Array(n), end = new Float64Array(n);
	const sum = new Float64Array(n), first = new Uint32Array(n + 1);
	let at = -1;

	for (let k = 0, i = 0; k < nLanes; k++) {
		/* a box that may grow */
		let isOpen = false;

		for (; i < below.start[k + 1]!; i++) {
			const b = below.begin[i]!, e = below.end[i]!;

			if (!isOpen || e - b >= grain ||
			    b - end[at]! >= grain) {
				at++;
				begin[at] = b;
				first[at] = below.first[i]!;
			}
			end[at] = e;
			sum[at]! += below.sum[i]!;
			isOpen = e - begin[at]! < grain;
			if (i % SLICE === SLICE - 1)
				yield;
		}
		start[k + 1] = at + 1;
	}
	first[at + 1] = below.first[n]!;
	return { grain, start, begin: begin.slice(0, at + 1),
		 end: end.slice(0, at + 1), sum: sum.slice(0, at + 1),
		 first: first.slice(0, at + 2) };
}

/* From the grain at which the fullest lane begins to merge. */
function* buildRungs(spans: Spans): Generator<void, Rung[]> {
	const { start, begin, end, nLanes } = spans, rungs: Rung[] = [];
	let least = Infinity, longest = 0;

	for (let k = 0; k < nLanes; k++) {
		const n = start[k + 1]! - start[k]!;
		const ns = n && end[start[k + 1]! - 1]! - begin[start[k]!]!;

		if (n > FEW_BOXES && ns > 0)
			least = Math.min(least, ns / n);
		longest = Math.max(longest, ns);
	}
	if (least === Infinity)
		return rungs;
	let below = spansAsRung(spans);

	for (let grain = least; grain < longest / FEW_BOXES; grain *= 2) {
		const rung = yield* rungAbove(below, grain, nLanes);

		if (rung.sum.length <= LEAST_MERGED * below.sum.length)
			rungs.push(below = rung);
	}
	return rungs;
}

/* Each yield is a place to pause; see slices.ts. */
export function* buildSpans(from: SpanSource): Generator<void, Spans> {
	const spans = yield* sorted(from);
	let below: Level | null = null, widest = 0;

	yield* separate(spans);
	for (let k = 0; k < spans.nLanes; k++)
		widest = Math.max(widest, spans.start[k + 1]! - spans.start[k]!);
	for (; widest > 1; widest = Math.ceil(widest / FAN)) {
		below = yield* levelAbove(spans, below);
		spans.levels.push(below);
	}
	spans.rungs = yield* buildRungs(spans);
	return spans;
}

/*
 * What a picture of [@from, @to) with pixels of @grain ns has of a lane, in the
 * order of time: box() is called for each span of at least a pixel, with its
 * index, and merged() for narrower ones next to each other, with the sum of
 * their times in it and the first one's index.
 */
export interface SpanSink {
	box: (span: number) => void;
	merged: (begin: number, end: number, sum: number, first: number) => void;
}

/* A walk over one lane: narrow neighbours grow into one box. */
interface Walk {
	spans: Spans;
	lane: number;
	from: number;
	to: number;
	grain: number;
	sink: SpanSink;
	begin: number;		/* of the box that grows */
	end: number;
	sum: number;
	first: number;		/* -1: there is none */
}

function flush(w: Walk): void {
	if (w.first >= 0)
		w.sink.merged(w.begin, w.end, w.sum, w.first);
	w.first = -1;
}

/* Add [begin, end) to the box that grows; a gap of a pixel ends that. */
function grow(w: Walk, begin: number, end: number, sum: number,
	      first: number): void {
	if (w.first >= 0 && begin - w.end >= w.grain)
		flush(w);
	if (w.first < 0) {
		w.first = first;
		w.begin = begin;
		w.sum = 0;
	}
	w.end = end;
	w.sum += sum;
	/* one box must not hide where the lane is busy and where it is not */
	if (w.end - w.begin >= w.grain)
		flush(w);
}

function visitSpan(w: Walk, i: number): void {
	const begin = w.spans.begin[i]!, end = w.spans.end[i]!;

	if (end <= w.from && end !== begin || end < w.from || begin >= w.to)
		return;
	if (end - begin >= w.grain) {
		flush(w);
		w.sink.box(i);
	} else {
		grow(w, begin, end, end - begin, i);
	}
}

function visit(w: Walk, height: number, b: number): void {
	const level = w.spans.levels[height]!;
	const begin = level.begin[b]!, end = level.end[b]!;

	if (end < w.from || begin >= w.to)
		return;
	const lane = w.lane, inLane = b - level.start[lane]!;

	if (level.longest[b]! < w.grain && end - begin < w.grain &&
	    begin >= w.from && end < w.to) {
		grow(w, begin, end, level.sum[b]!, w.spans.start[lane]! +
		     inLane * FAN ** (height + 1));
		return;
	}
	const below = height ? w.spans.levels[height - 1]!.start :
		      w.spans.start;
	const lo = below[lane]! + FAN * inLane;
	const hi = Math.min(lo + FAN, below[lane + 1]!);

	for (let i = lo; i < hi; i++)
		if (height)
			visit(w, height - 1, i);
		else
			visitSpan(w, i);
}

/* The last rung that is not coarser than pixels of @grain. */
function rungOf({ rungs }: Spans, grain: number): Rung | null {
	let i = rungs.length;

	while (i > 0 && rungs[i - 1]!.grain > grain)
		i--;
	return grain < Infinity && i ? rungs[i - 1]! : null;
}

function visitRung(w: Walk, rung: Rung): void {
	const { begin, end, sum, first } = rung, { from, to } = w;
	const last = rung.start[w.lane + 1]!;

	for (let i = lowerBound(end, from, rung.start[w.lane]!, last);
	     i < last && begin[i]! < to; i++) {
		const isOne = first[i + 1]! - first[i]! === 1;

		if (isOne) {
			visitSpan(w, first[i]!);
		} else if (begin[i]! >= from && end[i]! <= to) {
			grow(w, begin[i]!, end[i]!, sum[i]!, first[i]!);
		} else {
			/* what of it is in the picture */
			w.from = Math.max(from, begin[i]!);
			w.to = Math.min(to, end[i]!);
			visitLane(w);
			w.from = from;
			w.to = to;
		}
	}
}

/* The same by the pyramid. */
function visitLane(w: Walk): void {
	const { spans, lane } = w;
	const n = spans.start[lane + 1]! - spans.start[lane]!;

	/* the level at which this lane is one block */
	let height = -1;

	for (let blocks = n; blocks > 1; blocks = Math.ceil(blocks / FAN))
		height++;
	if (height < 0)
		visitSpan(w, spans.start[lane]!);
	else
		visit(w, height, spans.levels[height]!.start[lane]!);
}

export function walkSpans(spans: Spans, lane: number, from: number, to: number,
			  grain: number, sink: SpanSink): void {
	const rung = rungOf(spans, grain);
	const w: Walk = { spans, lane, from, to, grain, sink, begin: 0, end: 0,
			  sum: 0, first: -1 };

	if (spans.start[lane + 1] === spans.start[lane])
		return;
	if (rung)
		visitRung(w, rung);
	else
		visitLane(w);
	flush(w);
}

/* The span of @lane at @time, or one whose end is less than @slack ns away. */
export function spanAt(spans: Spans, lane: number, time: number,
		       slack: number): number {
	const lo = spans.start[lane]!, hi = spans.start[lane + 1]!;
	const at = lowerBound(spans.end, time, lo, hi);

	if (at < hi && spans.begin[at]! <= time)
		return at;
	const after = at < hi ? spans.begin[at]! - time : Infinity;
	const before = at > lo ? time - spans.end[at - 1]! : Infinity;

	return Math.min(after, before) > slack ? -1 :
	       after < before ? at : at - 1;
}

/* The time of @lane's spans inside [@from, @to): O(log n). */
export function timeIn(spans: Spans, lane: number, from: number,
		       to: number): number {
	let sum = 0;

	/* a grain longer than all makes every block one box */
	walkSpans(spans, lane, from, to, Infinity, {
		box: () => undefined,
		merged: (_begin, _end, ns) => { sum += ns; },
	});
	return sum - outside(spans, lane, from, to);
}

/* What the spans at both ends have outside of [@from, @to). */
function outside(spans: Spans, lane: number, from: number, to: number):
		number {
	let ns = 0;

	for (const time of [from, to]) {
		const i = spanAt(spans, lane, time, 0);

		if (i < 0 || spans.begin[i]! >= to || spans.end[i]! <= from)
			continue;
		ns += time === from ? time - spans.begin[i]! :
		      spans.end[i]! - time;
	}
	return ns;
}
