/* SPDX-License-Identifier: MIT */
/*
 * causes.ts - why some calls of a function are slower than others
 *
 * The time of a call is divided into parts that add up to it: blocked, by the
 * reason of the wait; preempted; running, by layer, where code of the kernel is
 * divided by what entered it.  The waits are exact; how running divides into
 * layers is estimated from the samples inside the calls.  All figures are ns a
 * call, so groups of different size compare.
 */
import { LAYERS, NONE, type Profile } from "../profile";
import type { Selection } from "../select";
import { callWaits, hasWaits } from "./call_index";
import { choose, intervalsOf, mainEvents, matchingCalls, type Chosen }
	from "./chosen";
import { chosenCalls } from "./sums";

export interface Group {
	min: number;		/* ns, of a call's length */
	max: number;
	n: number;		/* calls, without those inside others */
	ns: number;		/* a call, mean */
	samples: number;	/* inside, running */
	chosen: Chosen;		/* samples and waits inside */
}

export interface Part {
	kind: "running" | "blocked" | "preempted";
	layer: number;		/* of running; NONE: no sample has it */
	/* the reason of a wait; what entered the kernel; "" */
	what: string;
	slow: number;		/* ns a call */
	fast: number;
}

/* A function that the calls called, or that samples inside ended in. */
export interface Inside {
	func: number;
	slow: number;		/* ns of self a call */
	fast: number;
}

export interface Causes {
	func: number;
	slow: Group;
	fast: Group | null;	/* there is no other call */
	fastAreLonger: boolean;	/* all others last longer */
	parts: Part[];		/* largest difference first */
	/* the exact layer: self time of calls, without and with waits */
	callees: Inside[];
	/* where samples of each layer ended */
	leaves: Inside[];
}

/* Frames through which every system call enters the kernel. */
const ENTRY = /^(entry_SYSCALL_64.*|do_syscall_64|x64_sys_call|el0.*|invoke_syscall.*|do_el0_svc|el0_svc_common.*)$/;

/* The first frame of the kernel that says why it was entered. */
function kernelEntry(profile: Profile, stack: number): number {
	const { stacks, frames, functions } = profile;
	let entry = NONE;

	for (let at = stack; at; at = stacks.parent[at]!) {
		const func = frames.func[stacks.frame[at]!]!;

		if (functions.layer[func] !== 0)
			break;
		if (!ENTRY.test(functions.name[func]!) || entry === NONE)
			entry = func;
	}
	return entry;
}

function groupOf(profile: Profile, selection: Selection, func: number,
		 min: number, max: number): Group | null {
	const condition = { func, min, max };
	const calls = matchingCalls(profile, selection, condition);
	const inside = intervalsOf(profile, calls);

	if (!inside.n)
		return null;
	return {
		min, max, n: inside.n, ns: inside.ns / inside.n, samples: 0,
		chosen: choose(profile, { ...selection, calls: condition }),
	};
}

/*
 * The lengths that calls of min to max ns are compared with: the shorter ones;
 * where there are none, the longer ones.  Null: no other call.
 */
export function otherLengths(profile: Profile, selection: Selection,
			     func: number, min: number, max: number):
		{ min: number; max: number } | null {
	const all = matchingCalls(profile, selection,
				  { func, min: 0, max: Infinity });
	let below = -1, above = Infinity;

	for (const call of all) {
		const ns = profile.calls.duration[call]!;

		if (ns < min && ns > below)
			below = ns;
		if (ns > max && ns < above)
			above = ns;
	}
	return below >= 0 ? { min: 0, max: below } :
	       above < Infinity ? { min: above, max: Infinity } : null;
}

/* -- parts -------------------------------------------------------------- */

type Amounts = Map<string, Part>;

function addPart(parts: Amounts, side: "slow" | "fast",
		 kind: Part["kind"], layer: number, what: string,
		 ns: number): void {
	const key = `${kind} ${layer} ${what}`;
	let part = parts.get(key);

	if (!part)
		parts.set(key, part = { kind, layer, what, slow: 0, fast: 0 });
	part[side] += ns;
}

interface Waited {
	blocked: number;
	preempted: number;
}

/* Adds the waits inside that have a place; returns their sums. */
function addWaits(parts: Amounts, side: "slow" | "fast", group: Group):
		Waited {
	const { profile } = group.chosen, { samples, events } = profile;
	const isWait = events.map(e => e.kind === "wait");
	const sums = { blocked: 0, preempted: 0 };

	for (const i of group.chosen.samples) {
		const event = samples.event[i]!, ns = samples.weight[i]!;

		if (!isWait[event])
			continue;
		const preempted = events[event]!.preempted;

		sums[preempted ? "preempted" : "blocked"] += ns;
		addPart(parts, side, preempted ? "preempted" : "blocked", NONE,
			preempted ? "" : profile.words[samples.reason[i]!] ||
			"not known", ns / group.n);
	}
	return sums;
}

/* What the calls waited beside @placed; returns all that they waited. */
function addShortWaits(parts: Amounts, side: "slow" | "fast", group: Group,
		       placed: Waited): number {
	const { profile, selection } = group.chosen;
	const waits = hasWaits(profile) ? callWaits(profile) : null;
	let { blocked, preempted } = { blocked: 0, preempted: 0 }, end = -1;
	let thread = NONE;

	for (const i of matchingCalls(profile, selection, selection.calls)) {
		const { begin, duration } = profile.calls;

		if (!waits || (profile.calls.thread[i] === thread &&
			       begin[i]! + duration[i]! <= end))
			continue;	/* inside the one before */
		thread = profile.calls.thread[i]!;
		end = begin[i]! + duration[i]!;
		blocked += waits.blocked[i]!;
		preempted += waits.preempted[i]!;
	}
	blocked = Math.max(0, blocked - placed.blocked);
	preempted = Math.max(0, preempted - placed.preempted);
	if (blocked)
		addPart(parts, side, "blocked", NONE, "short waits",
			blocked / group.n);
	if (preempted)
		addPart(parts, side, "preempted", NONE, "",
			preempted / group.n);
	return placed.blocked + placed.preempted + blocked + preempted;
}

/* Divides @ns of running by the samples of @group. */
function addRunning(parts: Amounts, side: "slow" | "fast", group: Group,
		    ns: number): void {
	const { profile } = group.chosen, { samples, stacks } = profile;
	const main = mainEvents(profile, false)[0];
	const rows = group.chosen.samples.filter(i =>
		samples.event[i] === main &&
		profile.events[main]!.kind === "sample");
	let weight = 0;

	for (const i of rows) {
		weight += samples.weight[i]!;
		group.samples += samples.count[i]!;
	}
	if (!weight) {
		addPart(parts, side, "running", NONE, "", ns / group.n);
		return;
	}
	for (const i of rows) {
		const stack = samples.stack[i]!;
		const func = stack ? profile.frames.func[
			stacks.frame[stack]!]! : NONE;
		const layer = func === NONE ? NONE :
			      profile.functions.layer[func]!;

		addPart(parts, side, "running", layer, layer !== 0 ? "" :
			profile.functions.name[kernelEntry(profile, stack)]!,
			ns / group.n * samples.weight[i]! / weight);
	}
}

function addGroup(parts: Amounts, side: "slow" | "fast", group: Group): void {
	const placed = addWaits(parts, side, group);
	const waited = addShortWaits(parts, side, group, placed);

	addRunning(parts, side, group,
		   Math.max(0, group.ns * group.n - waited));
}

/*
 * Where one side has no sample, running of the other one is not divided
 * either: else the same code would look like two.
 */
function mergeRunning(parts: Amounts): void {
	const bare = parts.get(`running ${NONE} `);
	const sum = (side: "slow" | "fast") => [...parts.values()]
		.filter(p => p.kind === "running" && p.layer !== NONE)
		.reduce((ns, p) => ns + p[side], 0);
	const slow = sum("slow"), fast = sum("fast");

	/* what ran alike on both sides is spread as on the side with samples */
	if (!bare || (!slow && !fast))
		return;
	const from = slow ? "slow" : "fast", to = slow ? "fast" : "slow";
	const whole = slow || fast, ns = bare[to];

	if (bare[from] || !ns)
		return;
	for (const part of parts.values())
		if (part.kind === "running" && part !== bare)
			part[to] = ns * part[from] / whole;
	parts.delete(`running ${NONE} `);
}

const difference = (x: { slow: number; fast: number }) => x.slow - x.fast;

/* -- functions ---------------------------------------------------------- */

function collect(sums: Map<number, Inside>, side: "slow" | "fast",
		 func: number, ns: number): void {
	let row = sums.get(func);

	if (func === NONE)
		return;		/* the log has no name for it */
	if (!row)
		sums.set(func, row = { func, slow: 0, fast: 0 });
	row[side] += ns;
}

const inOrder = (sums: Map<number, Inside>) => [...sums.values()]
	.sort((a, b) => difference(b) - difference(a));

function calleesOf(groups: [("slow" | "fast"), Group][]): Inside[] {
	const sums = new Map<number, Inside>();

	for (const [side, group] of groups) {
		const { calls } = group.chosen.profile;
		const has = chosenCalls(group.chosen);

		for (let i = 0; i < calls.n; i++)
			if (has[i])
				collect(sums, side, calls.func[i]!,
					calls.self[i]! / group.n);
	}
	return inOrder(sums);
}

function leavesOf(groups: [("slow" | "fast"), Group][]): Inside[] {
	const sums = new Map<number, Inside>();

	for (const [side, group] of groups) {
		const { samples, stacks, frames, events } =
			group.chosen.profile;

		for (const i of group.chosen.samples)
			if (samples.stack[i] &&
			    events[samples.event[i]!]!.kind === "sample")
				collect(sums, side, frames.func[stacks.frame[
					samples.stack[i]!]!]!,
					samples.weight[i]! / group.n);
	}
	return inOrder(sums);
}

/* Of @func the calls that last @min to @max ns, against the others. */
export function causesOf(profile: Profile, selection: Selection, func: number,
			 min: number, max: number): Causes | null {
	const rest = { ...selection, calls: null, events: null, layers: null,
		       module: null };
	const slow = groupOf(profile, rest, func, min, max);

	if (!slow)
		return null;
	const other = otherLengths(profile, rest, func, min, max);
	const fast = other &&
		groupOf(profile, rest, func, other.min, other.max);
	const parts: Amounts = new Map();
	const groups: [("slow" | "fast"), Group][] = [["slow", slow]];

	if (fast)
		groups.push(["fast", fast]);
	for (const [side, group] of groups)
		addGroup(parts, side, group);
	mergeRunning(parts);
	return {
		func, slow, fast, fastAreLonger: (fast?.min ?? 0) > max,
		parts: [...parts.values()].sort((a, b) =>
			difference(b) - difference(a)),
		callees: calleesOf(groups), leaves: leavesOf(groups),
	};
}

/*
 * Of all functions that were called inside, the one whose self time has most of
 * the part's difference; NONE: no call says so.
 */
export function placeOf(causes: Causes, part: Part): number {
	const { profile } = causes.slow.chosen, { calls } = profile;
	const waits = hasWaits(profile) ? callWaits(profile) : null;
	const sums = new Map<number, Inside>();
	const ns = (i: number) => !waits ? calls.self[i]! :
		part.kind === "blocked" ? waits.selfBlocked[i]! :
		part.kind === "preempted" ? waits.selfPreempted[i]! :
		calls.self[i]! - waits.selfBlocked[i]! -
		waits.selfPreempted[i]!;

	for (const side of ["slow", "fast"] as const) {
		const group = causes[side];

		if (!group)
			continue;
		const has = chosenCalls(group.chosen);

		for (let i = 0; i < calls.n; i++)
			if (has[i])
				collect(sums, side, calls.func[i]!,
					ns(i) / group.n);
	}
	const first = inOrder(sums)[0];

	return first && difference(first) > 0 ? first.func : NONE;
}

/*
 * The code of @part that samples of the slow calls ended in; NONE: no code has
 * a good part of the difference.
 */
export function leafOf(causes: Causes, part: Part): number {
	const { layer } = causes.slow.chosen.profile.functions;
	const least = Math.abs(difference(part)) / 4;
	const first = part.kind !== "running" ? undefined :
		causes.leaves.find(row => layer[row.func] === part.layer);

	return first && difference(first) >= least ? first.func : NONE;
}

/* "running in guest", "blocked: futex_wait", "waiting for a CPU" */
export function partName(part: Part): string {
	return part.kind === "preempted" ? "waiting for a CPU" :
	       part.kind === "blocked" ? `blocked: ${part.what}` :
	       part.layer === NONE ? "running (no sample says where)" :
	       part.what ? `running in the kernel: ${part.what}` :
	       `running in ${LAYERS[part.layer]} code`;
}
