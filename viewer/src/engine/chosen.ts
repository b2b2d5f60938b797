/* SPDX-License-Identifier: MIT */
/*
 * chosen.ts - the samples and calls that a selection has
 *
 * The rules are those of src/model/profile/selection.h: ranges of time are
 * half open, a wait is at the time of its beginning, a sample whose frames are
 * all of layers left out does not count.  A call is selected when it begins in
 * the range; in sums by stack it counts as far as it lies in the range
 * (src/model/xray/stream_calls.c).
 */
import { NONE, type Profile, type Timed } from "../profile";
import type { Selection } from "../select";
import { lowerBound, memo } from "./arrays";
import { hasAllCalls, hasWaits, rowsOfFunction, tableOf }
	from "./call_index";
import { pathsOf, type Paths } from "./paths";

/* Times by thread: of thread t those from start[t] to start[t + 1] - 1. */
export interface Intervals {
	start: Uint32Array;
	begin: Float64Array;	/* ascending, and none overlaps the next */
	end: Float64Array;
	n: number;
	ns: number;		/* of all */
}

export interface Chosen {
	profile: Profile;
	selection: Selection;
	paths: Paths;
	events: boolean[];
	unit: "ns" | "count";
	samples: Uint32Array;	/* rows, in the order of time */
	inside: Intervals | null;	/* the calls of selection.calls */
	/* sums of calls are made of the calls, not of rows of samples */
	fromCalls: boolean;
}

const isIdle = (profile: Profile, event: number) =>
	/^(dummy|seam):/.test(profile.events[event]!.name);

/*
 * The events of a view without a choice: the first one that was sampled, time
 * before counts; inside calls the waits beside it, where both are times.
 */
export const mainEvents = (profile: Profile, inCalls: boolean): number[] =>
	(inCalls ? mainInCalls : mainOfAll)(profile);

const mainOfAll = memo((profile: Profile) => findMain(profile, false));
const mainInCalls = memo((profile: Profile) => findMain(profile, true));

function findMain(profile: Profile, inCalls: boolean): number[] {
	const has = new Uint8Array(profile.events.length);

	for (let i = 0; i < profile.samples.n; i++)
		has[profile.samples.event[i]!] = 1;
	const all = profile.events.map((_, i) => i)
		.filter(i => has[i] && !isIdle(profile, i));
	const of = (kind: string, unit?: string) => all.filter(i =>
		profile.events[i]!.kind === kind &&
		(!unit || profile.events[i]!.unit === unit));
	const main = of("sample", "ns")[0] ?? of("sample")[0] ??
		     of("call")[0] ?? of("wait")[0];

	if (main === undefined)
		return [];
	if (inCalls && profile.events[main]!.unit === "ns" &&
	    profile.events[main]!.kind === "sample" && hasWaits(profile))
		return [main, ...of("wait")];
	return [main];
}

/*
 * Rows of the table of @condition.func: its calls, or marked intervals, that
 * begin in the range of @selection and last min to max.
 */
export function matchingCalls(profile: Profile, selection: Selection,
			      condition: Selection["calls"]): Uint32Array {
	if (!condition)
		return new Uint32Array(0);
	const { func, min, max } = condition, { from, to } = selection;
	const { begin, duration, thread } = tableOf(profile, func);
	const threads = flags(selection.threads, profile.threads.length);
	const all = rowsOfFunction(profile, func);
	const rows = new Uint32Array(all.length);
	let n = 0;

	for (let k = 0; k < all.length; k++) {
		const i = all[k]!, ns = duration[i]!;

		if (ns >= min && ns <= max && begin[i]! >= from &&
		    begin[i]! < to && threads[thread[i]!])
			rows[n++] = i;
	}
	return rows.subarray(0, n);
}

/* The times of @rows of @table, which are in its order, outer ones first. */
export function intervalsOf(profile: Profile, table: Timed,
			    rows: Uint32Array): Intervals {
	const { begin, duration, thread } = table;
	const start = new Uint32Array(profile.threads.length + 1);
	const from = new Float64Array(rows.length);
	const to = new Float64Array(rows.length);
	let last = NONE, ns = 0, n = 0;

	for (let k = 0; k < rows.length; k++) {
		const i = rows[k]!, end = begin[i]! + duration[i]!;
		let at = begin[i]!;

		if (thread[i] === last) {
			/* inside another one it adds nothing */
			if (end <= to[n - 1]!)
				continue;
			/* marks of two logs of a thread may overlap */
			at = Math.max(at, to[n - 1]!);
		}
		last = thread[i]!;
		start[last + 1]!++;
		from[n] = at;
		to[n++] = end;
		ns += end - at;
	}
	for (let t = 0; t < profile.threads.length; t++)
		start[t + 1]! += start[t]!;
	return { start, begin: from.subarray(0, n), end: to.subarray(0, n),
		 n, ns };
}

/* By stack whether it has a frame of @module. */
export function stacksOfModule(profile: Profile, module: number): Uint8Array {
	const { stacks, frames, functions } = profile;
	const has = new Uint8Array(stacks.n);

	for (let i = 1; i < stacks.n; i++)
		has[i] = has[stacks.parent[i]!]! || (functions.module[
			frames.func[stacks.frame[i]!]!] === module ? 1 : 0);
	return has;
}

/* 1 for those of @chosen; null: for all. */
export function flags(chosen: number[] | null, n: number): Uint8Array {
	const has = new Uint8Array(n).fill(chosen ? 0 : 1);

	for (const i of chosen ?? [])
		if (i < n)
			has[i] = 1;
	return has;
}

/* A test whether a time of a thread is inside; times ascend. */
function insideTest(inside: Intervals, nThreads: number):
		(thread: number, time: number) => boolean {
	const next = inside.start.slice(0, nThreads);

	return (thread, time) => {
		const last = inside.start[thread + 1]!;
		let at = next[thread]!;

		while (at < last && inside.end[at]! <= time)
			at++;
		next[thread] = at;
		return at < last && inside.begin[at]! <= time;
	};
}

function chooseSamples(c: Omit<Chosen, "samples">): Uint32Array {
	const { profile, selection, paths } = c;
	const { time, thread, stack, event, placed } = profile.samples;
	const lo = lowerBound(time, selection.from, 0, profile.samples.n);
	const hi = lowerBound(time, selection.to, lo, profile.samples.n);
	const threads = flags(selection.threads, profile.threads.length);
	const events = Uint8Array.from(c.events, (has, i) => has &&
		!(c.fromCalls && profile.events[i]!.kind === "call") ? 1 : 0);
	const stacks = selection.module === null ? null :
		       stacksOfModule(profile, selection.module);
	const inside = c.inside && insideTest(c.inside, profile.threads.length);
	const rows = new Uint32Array(hi - lo);
	let n = 0;

	for (let i = lo; i < hi; i++) {
		if (!events[event[i]!] || !threads[thread[i]!] ||
		    (paths.leavesOut && paths.of[stack[i]!] === 0) ||
		    (stacks && !stacks[stack[i]!]) ||
		    (inside && (!placed[i] || !inside(thread[i]!, time[i]!))))
			continue;
		rows[n++] = i;
	}
	return rows.subarray(0, n);
}

const known = new WeakMap<Profile, { selection: Selection; chosen: Chosen }[]>();
const KEPT = 4;		/* selections: before, after, slow and fast calls */

/* What @selection has of @profile; kept for the last selections. */
export function choose(profile: Profile, selection: Selection): Chosen {
	const entries = known.get(profile) ?? [];
	const found = entries.find(e => e.selection === selection);

	if (found)
		return found.chosen;
	const chosen = chooseNew(profile, selection);

	entries.unshift({ selection, chosen });
	known.set(profile, entries.slice(0, KEPT));
	return chosen;
}

function chooseNew(profile: Profile, selection: Selection): Chosen {
	const events = flags(selection.events ??
		mainEvents(profile, selection.calls !== null),
		profile.events.length);
	const units = new Set(profile.events.filter((_, i) => events[i])
			      .map(e => e.unit));
	const limits = selection.calls !== null || selection.from > 0 ||
		       selection.to < Infinity;
	const partly = {
		profile, selection, paths: pathsOf(profile, selection.layers),
		events: Array.from(events, has => has === 1),
		unit: units.has("ns") ? "ns" as const : "count" as const,
		inside: selection.calls && intervalsOf(profile,
			tableOf(profile, selection.calls.func),
			matchingCalls(profile, selection, selection.calls)),
		fromCalls: limits && hasAllCalls(profile),
	};

	return { ...partly, samples: chooseSamples(partly) };
}
