/* SPDX-License-Identifier: MIT */
/*
 * time_index.ts - a profile's samples, waits, calls and marks by track
 *
 * Made once for a profile, in slices; the bands once more for another event or
 * set of layers.  All are typed arrays: a million samples and a million calls
 * take some 100 MiB and 0.2 s.
 */
import { byKey, memo, type ByKey } from "../engine/arrays";
import { mainEvents, stacksOfModule } from "../engine/chosen";
import { LAYERS, NONE, type Profile } from "../profile";
import type { Selection } from "../select";
import { buildBands, type Bands } from "./bands";
import { buildSpans, type Spans } from "./spans";

/* Deeper calls are not drawn; the flame graph has them. */
export const MAX_DEPTH = 64;
/* Of marked intervals more that overlap are not drawn; tables have them. */
const MAX_LANES = 16;

export interface TimeBase {
	waits: Spans;		/* lane 2 * thread, + 1: preempted */
	calls: Spans;
	callLane: Uint32Array;	/* by thread its first lane; one more */
	intervals: Spans;	/* that the program marked */
	intervalLane: Uint32Array;	/* as callLane */
	marks: ByKey;		/* by thread; the last key: of no thread */
	busy: Float64Array;	/* by thread, to order tracks; < 0: no rows */
}

export interface TimeBands {
	event: number;		/* that the bands are of; -1: none */
	byThread: Bands;
	byCpu: Bands;
	all: Bands;		/* one track */
	/* ns of a typical sample, 0 where the event does not count time */
	period: number;
}

const SLICE = 1 << 16;

/* -- what has no bands -------------------------------------------------- */

/* By row of samples the lane of a wait; NONE: not one with a place. */
function* waitLanes(profile: Profile): Generator<void, Uint32Array> {
	const { samples, events } = profile;
	const kind = Uint8Array.from(events, e => e.kind !== "wait" ? 0 :
				     e.preempted ? 2 : 1);
	const lane = new Uint32Array(samples.n).fill(NONE);

	for (let i = 0; i < samples.n; i++) {
		const of = kind[samples.event[i]!]!;

		if (of && samples.placed[i])
			lane[i] = 2 * samples.thread[i]! + of - 1;
		if (i % SLICE === SLICE - 1)
			yield;
	}
	return lane;
}

function* callLanes(profile: Profile):
		Generator<void, { first: Uint32Array; lane: Uint32Array }> {
	const { calls, threads } = profile;
	const first = new Uint32Array(threads.length + 1);
	const lane = new Uint32Array(calls.n).fill(NONE);

	for (let i = 0; i < calls.n; i++) {
		const depth = Math.min(calls.depth[i]!, MAX_DEPTH - 1);
		const at = calls.thread[i]! + 1;

		if (first[at]! < depth + 1)
			first[at] = depth + 1;
		if (i % SLICE === SLICE - 1)
			yield;
	}
	for (let t = 0; t < threads.length; t++)
		first[t + 1]! += first[t]!;
	for (let i = 0; i < calls.n; i++) {
		const depth = calls.depth[i]!;

		if (depth < MAX_DEPTH)
			lane[i] = first[calls.thread[i]!]! + depth;
		if (i % SLICE === SLICE - 1)
			yield;
	}
	return { first, lane };
}

/* Of a thread the first lane that is free when the interval begins. */
function* intervalLanes(profile: Profile):
		Generator<void, { first: Uint32Array; lane: Uint32Array }> {
	const { intervals: { n, begin, duration, thread }, threads } = profile;
	const first = new Uint32Array(threads.length + 1);
	const lane = new Uint32Array(n).fill(NONE);
	let free: number[] = [];

	for (let i = 0; i < n; i++) {
		if (i && thread[i] !== thread[i - 1])
			free = [];
		const found = free.findIndex(end => end <= begin[i]!);
		const at = found < 0 ? free.length : found;

		if (at < MAX_LANES) {
			free[at] = begin[i]! + duration[i]!;
			lane[i] = at;
			first[thread[i]! + 1] = Math.max(at + 1,
				first[thread[i]! + 1]!);
		}
		if (i % SLICE === SLICE - 1)
			yield;
	}
	for (let t = 0; t < threads.length; t++)
		first[t + 1]! += first[t]!;
	for (let i = 0; i < n; i++)
		if (lane[i] !== NONE)
			lane[i]! += first[thread[i]!]!;
	return { first, lane };
}

/* Time on a CPU by switches, else by samples; calls where there are none. */
function* busyOf(profile: Profile): Generator<void, Float64Array> {
	const { samples, calls, marks, intervals, threads, events } = profile;
	const busy = new Float64Array(threads.length).fill(-1);
	const sampled = Uint8Array.from(events, e => e.kind === "sample" ? 1 : 0);
	const add = (thread: number, ns: number) => {
		if (thread < busy.length)
			busy[thread] = Math.max(0, busy[thread]!) + ns;
	};

	for (let i = 0; i < samples.n; i++) {
		add(samples.thread[i]!, sampled[samples.event[i]!] ?
		    samples.weight[i]! : 0);
		if (i % SLICE === SLICE - 1)
			yield;
	}
	for (let i = 0; i < calls.n; i++) {
		add(calls.thread[i]!, 1e-6 * calls.self[i]!);
		if (i % SLICE === SLICE - 1)
			yield;
	}
	for (const { n, thread } of [marks, intervals])
		for (let i = 0; i < n; i++)
			add(thread[i]!, 0);
	threads.forEach((t, i) => {
		if (busy[i]! >= 0 && t.running >= 0)
			busy[i] = t.running;
	});
	return busy;
}

export function* buildBase(profile: Profile): Generator<void, TimeBase> {
	const { samples, calls, marks, intervals, threads } = profile;
	const { first, lane } = yield* callLanes(profile);
	const marked = yield* intervalLanes(profile);
	const waits = yield* buildSpans({
		n: samples.n, nLanes: 2 * threads.length,
		lane: yield* waitLanes(profile),
		begin: samples.time, duration: samples.weight,
	});

	return {
		waits, callLane: first,
		calls: yield* buildSpans({
			n: calls.n, nLanes: first[threads.length]!, lane,
			begin: calls.begin, duration: calls.duration,
		}),
		intervals: yield* buildSpans({
			n: intervals.n, nLanes: marked.first[threads.length]!,
			lane: marked.lane, begin: intervals.begin,
			duration: intervals.duration,
		}),
		intervalLane: marked.first,
		marks: byKey(marks.thread.map(t => Math.min(t, threads.length)),
			     marks.n, threads.length + 1),
		busy: yield* busyOf(profile),
	};
}

/* -- bands -------------------------------------------------------------- */

/* The part of the selection that bands depend on. */
export type Code = Pick<Selection, "layers" | "module">;

/*
 * By stack the layer of the innermost frame that is not left out; 255: no
 * frame, or none of the module.  An empty stack has the layer of native code.
 */
function layerOfStacks(profile: Profile, { layers, module }: Code): Uint8Array {
	const { stacks, frames, functions } = profile;
	const through = module === null ? null :
			stacksOfModule(profile, module);
	const has = LAYERS.map((_, l) => !layers || layers.includes(l));
	const of = new Uint8Array(stacks.n);

	of[0] = layers ? 255 : 1;
	for (let i = 1; i < stacks.n; i++) {
		const layer = functions.layer[frames.func[stacks.frame[i]!]!]!;

		of[i] = has[layer] ? layer : of[stacks.parent[i]!]!;
	}
	for (let i = 0; through && i < stacks.n; i++)
		if (!through[i])
			of[i] = 255;
	return of;
}

/* The median of some of the weights: one row may stand for many samples. */
function periodOf(profile: Profile, rows: Uint32Array): number {
	const { weight, count } = profile.samples;
	const step = Math.max(1, Math.floor(rows.length / 1000));
	const some: number[] = [];

	for (let i = 0; i < rows.length; i += step)
		some.push(weight[rows[i]!]! / Math.max(1, count[rows[i]!]!));
	return some.sort((a, b) => a - b)[some.length >> 1] ?? 0;
}

/* Rows of @event by thread, by CPU and as a whole. */
export function* buildTimeBands(profile: Profile, event: number,
				code: Code): Generator<void, TimeBands> {
	const { samples, threads } = profile, n = samples.n;
	const ofStack = layerOfStacks(profile, code);
	const layer = new Uint8Array(n), all = new Uint32Array(n).fill(NONE);
	const thread = new Uint32Array(n).fill(NONE);
	const cpu = new Uint32Array(n).fill(NONE);
	let nCpus = 0;

	for (let i = 0; i < n; i++) {
		const of = ofStack[samples.stack[i]!]!;

		if (samples.event[i] === event && samples.placed[i] &&
		    of !== 255) {
			layer[i] = of;
			all[i] = 0;
			thread[i] = samples.thread[i]!;
			if (samples.cpu[i] !== 0xffff) {
				cpu[i] = samples.cpu[i]!;
				nCpus = Math.max(nCpus, cpu[i]! + 1);
			}
		}
		if (i % SLICE === SLICE - 1)
			yield;
	}
	const part = (track: Uint32Array, nTracks: number) => buildBands({
		n, nTracks, track, time: samples.time,
		weight: samples.weight, layer,
	});
	const whole = yield* part(all, 1);

	return {
		event, all: whole,
		byThread: yield* part(thread, threads.length),
		byCpu: yield* part(cpu, nCpus),
		period: profile.events[event]?.unit === "ns" ?
			periodOf(profile, whole.row) : 0,
	};
}

const mainOf = memo((profile: Profile) => mainEvents(profile, false)[0] ?? -1);

/* The event of samples that the selection shows; -1: none. */
export function bandEvent(profile: Profile, selection: Selection): number {
	const isSample = (e: number) => profile.events[e]?.kind === "sample";
	const chosen = selection.events?.find(isSample);
	const main = mainOf(profile);

	return chosen ?? (isSample(main) ? main : -1);
}

/* -- kept --------------------------------------------------------------- */

interface Kept {
	base: TimeBase | null;
	bands: Map<string, TimeBands>;
}

const keptOf = memo((_profile: Profile): Kept => ({ base: null,
						    bands: new Map() }));

/* Base and bands, of which those are made that are not there. */
export function* timeIndex(profile: Profile, event: number, code: Code):
		Generator<void, { base: TimeBase; bands: TimeBands }> {
	const kept = keptOf(profile);
	const key = `${event} ${code.layers ?? ""} ${code.module ?? ""}`;
	let bands = kept.bands.get(key);

	kept.base ??= yield* buildBase(profile);
	if (!bands) {
		bands = yield* buildTimeBands(profile, event, code);
		if (kept.bands.size >= 3)
			kept.bands.clear();
		kept.bands.set(key, bands);
	}
	return { base: kept.base, bands };
}
