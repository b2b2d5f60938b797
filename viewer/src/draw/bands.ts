/* SPDX-License-Identifier: MIT */
/*
 * bands.ts - the samples of a track as bands of layers, at any zoom
 *
 * By track the samples in the order of time, with the weight of each layer
 * summed from the track's first one: the weight in any range is a difference
 * of two sums, so a picture costs its pixels, not its samples, and is exact.
 */
import { lowerBound } from "../engine/arrays";
import { LAYERS } from "../profile";

export const N_LAYERS = LAYERS.length;

export interface Bands {
	nTracks: number;
	start: Uint32Array;	/* by track its first sample; one more at the end */
	time: Float64Array;
	row: Uint32Array;	/* of the profile's samples */
	/* sums[N_LAYERS * i + layer]: of all samples before the i-th one */
	sums: Float64Array;
}

export interface BandSource {
	n: number;		/* rows, in the order of time */
	nTracks: number;
	track: Uint32Array;	/* by row; not below nTracks: left out */
	time: Float64Array;
	weight: Float64Array;
	layer: Uint8Array;	/* by row */
}

const SLICE = 1 << 16;		/* rows between two yields */

export function* buildBands(from: BandSource): Generator<void, Bands> {
	const { n, nTracks, track } = from;
	const start = new Uint32Array(nTracks + 1);

	for (let i = 0; i < n; i++) {
		if (track[i]! < nTracks)
			start[track[i]! + 1]!++;
		if (i % SLICE === SLICE - 1)
			yield;
	}
	for (let k = 0; k < nTracks; k++)
		start[k + 1]! += start[k]!;
	const kept = start[nTracks]!, next = start.slice(0, nTracks);
	const bands: Bands = {
		nTracks, start, time: new Float64Array(kept),
		row: new Uint32Array(kept),
		sums: new Float64Array(N_LAYERS * (kept + 1)),
	};

	for (let i = 0; i < n; i++) {
		if (track[i]! < nTracks) {
			const at = next[track[i]!]!++;

			bands.time[at] = from.time[i]!;
			bands.row[at] = i;
		}
		if (i % SLICE === SLICE - 1)
			yield;
	}
	yield* addUp(bands, from);
	return bands;
}

/* Sums go on from track to track: only differences within one are used. */
function* addUp(bands: Bands, from: BandSource): Generator<void> {
	const { sums, row } = bands;

	for (let i = 0; i < row.length; i++) {
		const at = N_LAYERS * i, r = row[i]!;

		for (let l = 0; l < N_LAYERS; l++)
			sums[at + N_LAYERS + l] = sums[at + l]!;
		sums[at + N_LAYERS + from.layer[r]!]! += from.weight[r]!;
		if (i % SLICE === SLICE - 1)
			yield;
	}
}

/*
 * The first sample of [lo, hi) at or after @time, searched from @lo in steps
 * that double: neighbouring pixels are near each other.
 */
function gallop(time: Float64Array, value: number, lo: number, hi: number):
		number {
	let step = 1;

	while (lo + step < hi && time[lo + step - 1]! < value) {
		lo += step;
		step *= 2;
	}
	return lowerBound(time, value, lo, Math.min(lo + step, hi));
}

/*
 * Weights by layer around each of @n pixels of a track: out[N_LAYERS * x + l] is
 * of the samples in [from + (x + 0.5) * grain - window / 2, the same + window).
 * Returns the number of samples in the picture.
 */
export function bandPixels(bands: Bands, track: number, from: number,
			   grain: number, n: number, window: number,
			   out: Float64Array): number {
	const { time, sums } = bands;
	const last = bands.start[track + 1]!;
	const begin = from + 0.5 * grain - window / 2;
	let lo = lowerBound(time, begin, bands.start[track]!, last);
	let hi = lo;
	const first = lo;

	for (let x = 0; x < n; x++) {
		const at = begin + x * grain;

		/* without an overlap a window begins where the last one ended */
		lo = window === grain && x ? hi : gallop(time, at, lo, last);
		hi = gallop(time, at + window, Math.max(lo, hi), last);
		for (let l = 0; l < N_LAYERS; l++)
			out[N_LAYERS * x + l] = sums[N_LAYERS * hi + l]! -
						sums[N_LAYERS * lo + l]!;
	}
	return hi - first;
}

/* The track's weights by layer before @time, where @i is its next sample. */
function spreadSums(bands: Bands, first: number, last: number, i: number,
		    time: number, out: Float64Array): void {
	const { sums } = bands, at = N_LAYERS * i;
	let weight = 0;

	for (let l = 0; l < N_LAYERS; l++) {
		out[l] = sums[at + l]!;
		if (i < last)
			weight += sums[at + N_LAYERS + l]! - sums[at + l]!;
	}
	if (i >= last)
		return;
	const end = bands.time[i]!;
	const length = Math.min(weight, i > first ? end - bands.time[i - 1]! :
				Infinity);
	const share = length > 0 ? 1 - (end - time) / length : 0;

	for (let l = 0; share > 0 && l < N_LAYERS; l++)
		out[l]! += share * (sums[at + N_LAYERS + l]! - sums[at + l]!);
}

const edges = [new Float64Array(N_LAYERS), new Float64Array(N_LAYERS)] as const;

/*
 * As bandPixels() without an overlap, for samples of time: each fills the time
 * before it that is its weight, back to the sample before.  A thread that runs
 * all the time is a full band however close the picture is.
 */
export function spreadPixels(bands: Bands, track: number, from: number,
			     grain: number, n: number, out: Float64Array):
		number {
	const { time } = bands, first = bands.start[track]!;
	const last = bands.start[track + 1]!, [before, after] = edges;
	let i = lowerBound(time, from, first, last);
	const seen = i;

	spreadSums(bands, first, last, i, from, before);
	for (let x = 0; x < n; x++) {
		const to = from + (x + 1) * grain;

		i = gallop(time, to, i, last);
		spreadSums(bands, first, last, i, to, after);
		for (let l = 0; l < N_LAYERS; l++) {
			out[N_LAYERS * x + l] = after[l]! - before[l]!;
			before[l] = after[l]!;
		}
	}
	/* the next one may reach into the picture */
	return Math.min(i + 1, last) - seen;
}

/* The weight of a track in [@from, @to), of all layers. */
export function weightIn(bands: Bands, track: number, from: number,
			 to: number): number {
	const start = bands.start[track]!, end = bands.start[track + 1]!;
	const lo = lowerBound(bands.time, from, start, end);
	const hi = lowerBound(bands.time, to, lo, end);
	let sum = 0;

	for (let l = 0; l < N_LAYERS; l++)
		sum += bands.sums[N_LAYERS * hi + l]! -
		       bands.sums[N_LAYERS * lo + l]!;
	return sum;
}

/* The sample of @track nearest to @time, at most @slack ns away; -1: none. */
export function sampleAt(bands: Bands, track: number, time: number,
			 slack: number): number {
	const start = bands.start[track]!, end = bands.start[track + 1]!;
	const at = lowerBound(bands.time, time, start, end);
	const after = at < end ? bands.time[at]! - time : Infinity;
	const before = at > start ? time - bands.time[at - 1]! : Infinity;

	return Math.min(after, before) > slack ? -1 :
	       after <= before ? at : at - 1;
}
