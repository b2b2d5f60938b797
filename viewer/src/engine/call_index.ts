/* SPDX-License-Identifier: MIT */
/*
 * call_index.ts - what is the same in every selection of calls and intervals
 *
 * Each index is made when a view first needs it and kept with the profile.
 * The rules are those of src/model/xray/account.c and call_waits.c.
 */
import { MARKED, NONE, type Profile, type Timed } from "../profile";
import { byKey, lowerBound, memo, type ByKey } from "./arrays";
import { pathBelow, type Paths } from "./paths";

/* The table that has the calls, or the marked intervals, of @func. */
export const tableOf = (profile: Profile, func: number): Timed =>
	profile.functions.layer[func] === MARKED ? profile.intervals :
	profile.calls;

const byFunction = memo((profile: Profile) => ({
	calls: byKey(profile.calls.func, profile.calls.n,
		     profile.functions.n),
	intervals: byKey(profile.intervals.func, profile.intervals.n,
			 profile.functions.n),
}));

/* Rows of a table by function, in the order of the table. */
export const rowsByFunction = (profile: Profile, table: Timed): ByKey =>
	table === profile.calls ? byFunction(profile).calls :
	byFunction(profile).intervals;

/* The rows of @func in its table. */
export function rowsOfFunction(profile: Profile, func: number): Uint32Array {
	const { start, rows } = rowsByFunction(profile,
					       tableOf(profile, func));

	return func < profile.functions.n ?
	       rows.subarray(start[func], start[func + 1]) :
	       new Uint32Array(0);
}

/* By call: 1 where no caller of it is a call of the same function. */
export const outermostCalls = memo((profile: Profile): Uint8Array => {
	const { n, func, parent } = profile.calls;
	const flags = new Uint8Array(n);
	const open = new Uint32Array(profile.functions.n);
	const path: number[] = [];

	for (let i = 0; i < n; i++) {
		while (path.length && path[path.length - 1] !== parent[i])
			open[func[path.pop()!]!]!--;
		path.push(i);
		/* of a call without a name nothing is asked */
		flags[i] = func[i] !== NONE && open[func[i]!]!++ === 0 ? 1 : 0;
	}
	return flags;
});

/* The waits of a thread that have a place in time, and the sums before them. */
interface ThreadWaits {
	from: Float64Array;
	to: Float64Array;
	before: Float64Array;	/* sum of the waits before; one more entry */
}

/* Of each thread the waits for a CPU, or all others. */
function waitsByThread(profile: Profile, preempted: boolean): ThreadWaits[] {
	const { samples, events, threads } = profile;
	const wanted = events.map(e => e.kind === "wait" &&
				       e.preempted === preempted);
	const keys = new Uint32Array(samples.n);

	for (let i = 0; i < samples.n; i++)
		keys[i] = wanted[samples.event[i]!] && samples.placed[i] ?
			  samples.thread[i]! : NONE;
	const rows = byKey(keys, samples.n, threads.length);

	return threads.map((_, thread) => {
		const at = rows.rows.subarray(rows.start[thread],
					      rows.start[thread + 1]);
		const from = Float64Array.from(at, i => samples.time[i]!);
		const to = Float64Array.from(at, i => samples.time[i]! +
						      samples.weight[i]!);
		const before = new Float64Array(at.length + 1);

		for (let i = 0; i < at.length; i++)
			before[i + 1] = before[i]! + to[i]! - from[i]!;
		return { from, to, before };
	});
}

/* How much of @waits lies before @time. */
function waitedUntil(waits: ThreadWaits, time: number): number {
	const next = lowerBound(waits.from, time);

	/* waits of a thread do not overlap: only the last may be open */
	return waits.before[next]! -
	       (next ? Math.max(0, waits.to[next - 1]! - time) : 0);
}

/* By row, ns: of its time the thread had no CPU. */
export interface TimedWaits {
	blocked: Float64Array;
	preempted: Float64Array;
}

/* The same of calls, and of their self time. */
export interface CallWaits extends TimedWaits {
	selfBlocked: Float64Array;
	selfPreempted: Float64Array;
}

/* By row its waits that have a place in time. */
function placedWaits(profile: Profile, table: Timed, preempted: boolean):
		Float64Array {
	const { n, begin, duration, thread } = table;
	const waits = waitsByThread(profile, preempted);
	const all = new Float64Array(n);

	for (let i = 0; i < n; i++) {
		const of = waits[thread[i]!]!;

		if (of.from.length)
			all[i] = waitedUntil(of, begin[i]! + duration[i]!) -
				 waitedUntil(of, begin[i]!);
	}
	return all;
}

function waitsIn(profile: Profile, table: Timed): TimedWaits {
	const { blocked, preempted } = table;

	return {
		blocked: blocked?.length ? blocked :
			placedWaits(profile, table, false),
		preempted: preempted?.length ? preempted :
			placedWaits(profile, table, true),
	};
}

/* @all without what is in direct callees. */
function selfOf({ calls: { n, parent } }: Profile, all: Float64Array):
		Float64Array {
	const self = all.slice();

	for (let i = 0; i < n; i++)
		if (parent[i] !== NONE)
			self[parent[i]!]! -= all[i]!;
	return self;
}

export function hasWaits(profile: Profile): boolean {
	return profile.events.some(e => e.kind === "wait");
}

export const callWaits = memo((profile: Profile): CallWaits => {
	const { blocked, preempted } = waitsIn(profile, profile.calls);

	return {
		blocked, selfBlocked: selfOf(profile, blocked),
		preempted, selfPreempted: selfOf(profile, preempted),
	};
});

const intervalWaits = memo((profile: Profile): TimedWaits =>
	waitsIn(profile, profile.intervals));

export const timedWaits = (profile: Profile, table: Timed): TimedWaits =>
	table === profile.calls ? callWaits(profile) : intervalWaits(profile);

/* By call its path; 0 where its layer is left out. */
export const callPaths = (() => {
	const known = new WeakMap<Paths, Uint32Array>();

	return (profile: Profile, paths: Paths): Uint32Array => {
		let of = known.get(paths);

		if (!of)
			known.set(paths, of = findPaths(profile, paths));
		return of;
	};
})();

function findPaths(profile: Profile, paths: Paths): Uint32Array {
	const { n, func, parent } = profile.calls;
	const of = new Uint32Array(n);

	for (let i = 0; i < n; i++)
		of[i] = func[i] === NONE ? 0 : pathBelow(paths, parent[i] === NONE ? 0 :
				  of[parent[i]!]!, func[i]!);
	return of;
}

/* Whether the page has every call, so that calls can be added up again. */
export function hasAllCalls(profile: Profile): boolean {
	return profile.calls.n > 0 && profile.meta.coarse.calls === 0;
}
