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
import { runAtOnce } from "../slices";
import { memo } from "./arrays";
import { callWaits, hasWaits, tableOf, timedWaits } from "./call_index";
import { choose, mainEvents, matchingCalls, type Chosen } from "./chosen";
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

/*
 * By stack whose leaf is of the kernel: the outermost function of the kernel
 * that says why it was entered; NONE: other stacks.
 */
const kernelEntries = memo((profile: Profile): Uint32Array => {
	const { stacks, frames, functions } = profile;
	const entry = new Uint32Array(stacks.n).fill(NONE);
	const isGate = Uint8Array.from(functions.name, (name, f) =>
		functions.layer[f] === 0 && ENTRY.test(name) ? 1 : 0);

	for (let i = 1; i < stacks.n; i++) {
		const func = frames.func[stacks.frame[i]!]!;
		const outer = entry[stacks.parent[i]!]!;

		if (functions.layer[func] === 0)
			entry[i] = outer !== NONE && !isGate[outer] ? outer :
				   func;
	}
	return entry;
});

function groupOf(profile: Profile, selection: Selection, func: number,
		 min: number, max: number): Group | null {
	const condition = { func, min, max };
	const chosen = choose(profile, { ...selection, calls: condition });
	const inside = chosen.inside!;

	return !inside.n ? null : { min, max, n: inside.n, chosen,
		ns: inside.ns / inside.n, samples: 0 };
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
	const { duration } = tableOf(profile, func);
	let below = -1, above = Infinity;

	for (let k = 0; k < all.length; k++) {
		const ns = duration[all[k]!]!;

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
	const { profile, samples: rows } = group.chosen;
	const { samples: { event, weight, reason }, events, words } = profile;
	const kind = Uint8Array.from(events, e => e.kind !== "wait" ? 0 :
				     e.preempted ? 2 : 1);
	const blocked = new Float64Array(words.length);
	const sums = { blocked: 0, preempted: 0 };

	for (let k = 0; k < rows.length; k++) {
		const i = rows[k]!, of = kind[event[i]!]!;

		if (of === 1)
			blocked[reason[i]!]! += weight[i]!;
		else if (of === 2)
			sums.preempted += weight[i]!;
	}
	for (let word = 0; word < words.length; word++) {
		sums.blocked += blocked[word]!;
		if (blocked[word])
			addPart(parts, side, "blocked", NONE, words[word] ||
				"not known", blocked[word]! / group.n);
	}
	if (sums.preempted)
		addPart(parts, side, "preempted", NONE, "",
			sums.preempted / group.n);
	return sums;
}

/* What the calls waited beside @placed; returns all that they waited. */
function addShortWaits(parts: Amounts, side: "slow" | "fast", group: Group,
		       placed: Waited): number {
	const { profile, selection } = group.chosen;
	const table = tableOf(profile, selection.calls!.func);
	const waits = hasWaits(profile) ? timedWaits(profile, table) : null;
	const rows = waits ? matchingCalls(profile, selection,
					   selection.calls) : [];
	const { begin, duration, thread } = table;
	let { blocked, preempted } = { blocked: 0, preempted: 0 }, end = -1;
	let last = NONE;

	for (let k = 0; waits && k < rows.length; k++) {
		const i = rows[k]!;

		if (thread[i] === last && begin[i]! + duration[i]! <= end)
			continue;	/* inside the one before */
		last = thread[i]!;
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
	const { profile, samples: rows } = group.chosen;
	const { samples, stacks, frames, functions } = profile;
	const main = mainEvents(profile, false)[0];
	const isSample = profile.events[main!]?.kind === "sample";
	const entries = kernelEntries(profile);
	/* of what entered the kernel; of the other layers, [0] without any */
	const kernel = new Float64Array(functions.n);
	const others = new Float64Array(LAYERS.length);
	let weight = 0;
	const add = (layer: number, what: string, part: number) => part &&
		addPart(parts, side, "running", layer, what,
			ns / group.n * part / weight);

	for (let k = 0; isSample && k < rows.length; k++) {
		const i = rows[k]!, stack = samples.stack[i]!;

		if (samples.event[i] !== main)
			continue;
		weight += samples.weight[i]!;
		group.samples += samples.count[i]!;
		if (entries[stack] !== NONE)
			kernel[entries[stack]!]! += samples.weight[i]!;
		else
			others[stack ? functions.layer[frames.func[
				stacks.frame[stack]!]!]! : 0]! +=
				samples.weight[i]!;
	}
	if (!weight) {
		addPart(parts, side, "running", NONE, "", ns / group.n);
		return;
	}
	others.forEach((part, layer) => add(layer || NONE, "", part));
	for (let f = 0; f < functions.n; f++)
		add(0, functions.name[f]!, kernel[f]!);
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

/* Sums by function, of both sides. */
interface BySide {
	slow: Float64Array;
	fast: Float64Array;
	has: Uint8Array;	/* the function is there, if with 0 ns */
}

const noSums = ({ functions: { n } }: Profile): BySide => ({
	slow: new Float64Array(n), fast: new Float64Array(n),
	has: new Uint8Array(n),
});

function inOrder(sums: BySide): Inside[] {
	const rows: Inside[] = [];

	sums.has.forEach((has, func) => has && rows.push({ func,
		slow: sums.slow[func]!, fast: sums.fast[func]! }));
	return rows.sort((a, b) => difference(b) - difference(a));
}

/* Adds @ns of the chosen calls, as a mean of the group's; some have no name. */
function addCallees(sums: BySide, side: "slow" | "fast", group: Group,
		    ns: Float64Array): void {
	const { calls: { n, func } } = group.chosen.profile;
	const chosen = chosenCalls(group.chosen);

	const sum = sums[side], { has } = sums;

	for (let i = 0; i < n; i++) {
		const f = func[i]!;

		if (chosen[i] && f !== NONE) {
			sum[f]! += ns[i]!;
			has[f] = 1;
		}
	}
	for (let f = 0; f < sum.length; f++)
		sum[f]! /= group.n;
}

function calleesOf(groups: [("slow" | "fast"), Group][]): Inside[] {
	const { profile } = groups[0]![1].chosen, sums = noSums(profile);

	for (const [side, group] of groups)
		addCallees(sums, side, group, profile.calls.self);
	return inOrder(sums);
}

function leavesOf(groups: [("slow" | "fast"), Group][]): Inside[] {
	const { profile } = groups[0]![1].chosen, sums = noSums(profile);
	const { samples: { stack, event, weight }, stacks, frames, events } =
		profile;
	const isSample = Uint8Array.from(events, e =>
		e.kind === "sample" ? 1 : 0);

	for (const [side, { n, chosen: { samples: rows } }] of groups) {
		const sum = sums[side];

		for (let k = 0; k < rows.length; k++) {
			const i = rows[k]!;

			if (!stack[i] || !isSample[event[i]!])
				continue;
			const func = frames.func[stacks.frame[stack[i]!]!]!;

			sum[func]! += weight[i]!;
			sums.has[func] = 1;
		}
		for (let f = 0; f < sum.length; f++)
			sum[f]! /= n;
	}
	return inOrder(sums);
}

/*
 * Of @func the calls that last @min to @max ns, against the others.  A yield is
 * a place to pause: of a million calls it takes 0.2 s.
 */
export function* findCauses(profile: Profile, selection: Selection,
			    func: number, min: number, max: number):
		Generator<void, Causes | null> {
	const rest = { ...selection, calls: null, events: null, layers: null,
		       module: null };
	const slow = groupOf(profile, rest, func, min, max);

	if (!slow)
		return null;
	yield;
	const other = otherLengths(profile, rest, func, min, max);
	const fast = other &&
		groupOf(profile, rest, func, other.min, other.max);
	const parts: Amounts = new Map();
	const groups: [("slow" | "fast"), Group][] = [["slow", slow]];

	if (fast)
		groups.push(["fast", fast]);
	for (const [side, group] of groups) {
		yield;
		addGroup(parts, side, group);
		yield;
		chosenCalls(group.chosen);
	}
	mergeRunning(parts);
	yield;
	const callees = calleesOf(groups);

	yield;
	return {
		func, slow, fast, callees, leaves: leavesOf(groups),
		fastAreLonger: (fast?.min ?? 0) > max,
		parts: [...parts.values()].sort((a, b) =>
			difference(b) - difference(a)),
	};
}

export const causesOf = (...of: Parameters<typeof findCauses>):
		Causes | null => runAtOnce(findCauses(...of));

/*
 * Of all functions that were called inside, the one whose self time has most of
 * the part's difference; NONE: no call says so.
 */
export function placeOf(causes: Causes, part: Part): number {
	const { profile } = causes.slow.chosen, sums = noSums(profile);
	const ns = selfIn(profile, part.kind);

	for (const side of ["slow", "fast"] as const)
		if (causes[side])
			addCallees(sums, side, causes[side], ns);
	const first = inOrder(sums)[0];

	return first && difference(first) > 0 ? first.func : NONE;
}

/* By call its self time of @kind. */
function selfIn(profile: Profile, kind: Part["kind"]): Float64Array {
	const { self } = profile.calls;

	if (!hasWaits(profile))
		return self;
	const { selfBlocked, selfPreempted } = callWaits(profile);

	return kind === "blocked" ? selfBlocked :
	       kind === "preempted" ? selfPreempted :
	       self.map((ns, i) => ns - selfBlocked[i]! - selfPreempted[i]!);
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
