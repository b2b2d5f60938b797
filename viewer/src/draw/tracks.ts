/* SPDX-License-Identifier: MIT */
/*
 * tracks.ts - the rows of the time line: what each shows, and where
 *
 * Processes and, in each, threads: the busiest first; then CPUs.  A track of a
 * thread has a band of samples and waits and, below it, rows of marked intervals
 * and a row for each depth of calls.  Sizes are CSS pixels.
 */
import { rowName, threadName } from "../engine/rows";
import type { Profile } from "../profile";
import type { TimeBands, TimeBase } from "./time_index";

export const BAND = 26;
export const CALL_ROW = 15;
const HEADING = 20;
const GAP = 5;
const MARKS = 20;
const CPU = 20;
const FEW_ROWS = 5;		/* of calls, until the track is opened */

export interface Track {
	kind: "heading" | "thread" | "cpu" | "marks";
	id: number;		/* thread, CPU, process; 0 */
	name: string;		/* of the recorded program */
	y: number;
	height: number;
	band: number;		/* its height; 0: no band */
	marked: number;		/* rows of intervals */
	rows: number;		/* of calls that are shown */
	depth: number;		/* of all calls */
}

/* Threads that have rows, in groups of their process, the busiest first. */
export function threadOrder(profile: Profile, busy: Float64Array):
		{ process: number; threads: number[] }[] {
	const groups = new Map<number, { process: number; threads: number[];
					 busy: number }>();

	profile.threads.forEach((thread, t) => {
		if (busy[t]! < 0)
			return;
		const { process } = thread;
		const group = groups.get(process) ??
			      { process, threads: [], busy: 0 };

		group.threads.push(t);
		group.busy += busy[t]!;
		groups.set(process, group);
	});
	for (const group of groups.values())
		group.threads.sort((a, b) => busy[b]! - busy[a]! || a - b);
	return [...groups.values()].sort((a, b) => b.busy - a.busy ||
					 a.process - b.process);
}

function threadTrack(profile: Profile, base: TimeBase, bands: TimeBands,
		     t: number, isOpen: boolean): Omit<Track, "y"> {
	const depth = base.callLane[t + 1]! - base.callLane[t]!;
	const rows = isOpen ? depth : Math.min(depth, FEW_ROWS);
	const has = (start: Uint32Array, lane: number, n: number) =>
		start[lane + n]! > start[lane]!;
	const band = has(bands.byThread.start, t, 1) ||
		     has(base.waits.start, 2 * t, 2) || !depth ? BAND : 0;
	const marked = base.intervalLane[t + 1]! - base.intervalLane[t]!;

	return { kind: "thread", id: t, name: threadName(profile, t), band,
		 marked, rows, depth,
		 height: band + (marked + rows) * CALL_ROW + GAP };
}

/* @open: threads all of whose calls are shown. */
export function layOutTracks(profile: Profile, base: TimeBase,
			     bands: TimeBands, open: ReadonlySet<number>):
		Track[] {
	const tracks: Track[] = [];
	const nThreads = profile.threads.length, { marks } = base;
	const nCpus = bands.byCpu.nTracks;
	let y = 0;
	const put = (track: Omit<Track, "y">) => {
		tracks.push({ ...track, y });
		y += track.height;
	};
	const heading = (id: number, name: string) => put({ kind: "heading", id,
		name, height: HEADING, band: 0, marked: 0, rows: 0,
		depth: 0 });

	if (marks.start[nThreads + 1]! > marks.start[nThreads]!)
		put({ kind: "marks", id: 0, name: "no thread",
		      height: MARKS + GAP, band: MARKS, marked: 0, rows: 0,
		      depth: 0 });
	for (const { process, threads } of threadOrder(profile, base.busy)) {
		heading(process, rowName(profile, "process", process));
		for (const t of threads)
			put(threadTrack(profile, base, bands, t, open.has(t)));
	}
	if (nCpus)
		heading(-1, "CPUs");
	for (let cpu = 0; cpu < nCpus; cpu++)
		if (bands.byCpu.start[cpu + 1]! > bands.byCpu.start[cpu]!)
			put({ kind: "cpu", id: cpu, name: `CPU ${cpu}`,
			      height: CPU + GAP, band: CPU, marked: 0, rows: 0,
			      depth: 0 });
	return tracks;
}

export function heightOf(tracks: Track[]): number {
	const last = tracks[tracks.length - 1];

	return last ? last.y + last.height : 0;
}

/* The index of the track at @y; -1: none. */
export function trackAt(tracks: Track[], y: number): number {
	let lo = 0, hi = tracks.length;

	while (lo < hi) {
		const middle = (lo + hi) >>> 1, track = tracks[middle]!;

		if (track.y + track.height <= y)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < tracks.length && tracks[lo]!.y <= y ? lo : -1;
}
