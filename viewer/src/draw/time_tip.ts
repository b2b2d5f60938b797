/* SPDX-License-Identifier: MIT */
/*
 * time_tip.ts - what is at a point of the time line, in words
 *
 * The tool tip has it, and the live region that a screen reader reads.
 */
import { rowName } from "../engine/rows";
import { LAYERS, MARK_KINDS, NONE, type Profile } from "../profile";
import { cut, formatNs, formatWeight, functionName, moduleOf, visible }
	from "../text";
import { sampleAt, weightIn } from "./bands";
import { spanAt } from "./spans";
import { timesOf } from "./time_marks";
import { tickText, type Range, type Scene } from "./time_scene";
import { CALL_ROW, type Track } from "./tracks";
import { lowerBound } from "../engine/arrays";

export interface Tip {
	title: string;
	lines: string[];
	/* what Enter or a click can go to; NONE */
	func: number;
	range: Range | null;	/* of the call or the wait */
}

const MAX_CALLERS = 7;

const tip = (title: string, lines: (string | false)[], func = NONE,
	     range: Range | null = null): Tip => ({
	title: cut(title, 600), lines: lines.filter(Boolean) as string[], func,
	range,
});

/* The index of the track of thread @id; -1: none. */
export const trackOf = (tracks: Track[], id: number): number =>
	tracks.findIndex(t => t.kind === "thread" && t.id === id);

const share = (part: number, whole: number) =>
	`${(100 * part / (whole || 1)).toFixed(1)} %`;

/* The innermost frames of @stack, "f < g < main". */
function stackLines(profile: Profile, stack: number): string[] {
	const { stacks, frames } = profile, lines: string[] = [];

	for (let at = stack; at; at = stacks.parent[at]!) {
		const func = frames.func[stacks.frame[at]!]!;

		if (lines.length === MAX_CALLERS) {
			lines.push("…");
			break;
		}
		lines.push(`${lines.length ? "← " : ""}${cut(functionName(
			profile, func), 160)}`);
	}
	return lines;
}

const leafOf = ({ stacks, frames }: Profile, stack: number): number =>
	stack ? frames.func[stacks.frame[stack]!]! : NONE;

function waitTip(scene: Scene, span: number): Tip {
	const { profile, base } = scene, { samples, words } = profile;
	const row = base.waits.row[span]!, begin = samples.time[row]!;
	const word = (id: number) => cut(visible(words[id] ?? ""), 300);
	const preempted = profile.events[samples.event[row]!]?.preempted;
	const waker = samples.waker[row]!, reason = samples.reason[row]!;

	return tip(`${preempted ? "preempted" : "blocked"} ${formatNs(
		samples.weight[row]!)}${reason ? `: ${word(reason)}` : ""}`, [
		`from ${tickText(begin, 1000)}`,
		waker > 0 && `woken by ${word(waker)}`,
		...stackLines(profile, samples.stack[row]!),
	], leafOf(profile, samples.stack[row]!),
	{ from: begin, to: begin + samples.weight[row]! });
}

function callTip(scene: Scene, span: number): Tip {
	const { profile, base } = scene, { calls, words } = profile;
	const row = base.calls.row[span]!, func = calls.func[row]!;
	const ns = calls.duration[row]!, text = words[calls.text[row]!] ?? "";

	return tip(func === NONE ? "unknown function" :
		   functionName(profile, func), [
		`${formatNs(ns)}, self ${formatNs(calls.self[row]!)}`,
		`from ${tickText(calls.begin[row]!, 1000)}, depth ${
			calls.depth[row]! + 1}`,
		text !== "" && cut(visible(text), 400),
		func !== NONE && `${LAYERS[profile.functions.layer[func]!]}, ${
			cut(moduleOf(profile, func), 200)}`,
	], func, { from: calls.begin[row]!, to: calls.begin[row]! + ns });
}

function intervalTip(scene: Scene, span: number): Tip {
	const { profile, base } = scene, { intervals, words } = profile;
	const row = base.intervals.row[span]!, func = intervals.func[row]!;
	const from = intervals.begin[row]!, ns = intervals.duration[row]!;
	const text = words[intervals.text[row]!] ?? "";

	return tip(functionName(profile, func), [
		`marked by the program, ${formatNs(ns)}`,
		`from ${tickText(from, 1000)}`,
		text !== "" && cut(visible(text), 400),
	], func, { from, to: from + ns });
}

/* Marks near @time, up to five. */
function markTip(scene: Scene, key: number, time: number, slack: number):
		Tip | null {
	const { profile, base } = scene, { marks, words } = profile;
	const times = timesOf(profile, base, key);
	const first = lowerBound(times, time - slack), found: string[] = [];

	for (let i = first; i < times.length && times[i]! <= time + slack; i++) {
		const row = base.marks.rows[base.marks.start[key]! + i]!;
		const text = words[marks.text[row]!] ?? "";

		if (found.length === 5) {
			found.push("…");
			break;
		}
		found.push(`${MARK_KINDS[marks.kind[row]!]} ${cut(visible(words[
			marks.name[row]!] ?? ""), 200)}${marks.duration[row] ?
			`, ${formatNs(marks.duration[row]!)}` : ""}${text ?
			`: ${cut(visible(text), 300)}` : ""}`);
	}
	return found.length ? tip(found[0]!, [...found.slice(1),
		`at ${tickText(times[first]!, 1000)}`]) : null;
}

/* The nearest sample, and the layers of what is around it. */
function sampleTip(scene: Scene, track: Track, time: number, grain: number):
		Tip | null {
	const { profile, bands } = scene, { samples } = profile;
	const of = track.kind === "cpu" ? bands.byCpu : bands.byThread;
	const at = sampleAt(of, track.id, time, Math.max(3 * grain,
							 bands.period));

	if (at < 0)
		return null;
	const row = of.row[at]!, leaf = leafOf(profile, samples.stack[row]!);
	const { unit } = profile.events[samples.event[row]!]!;

	return tip(leaf === NONE ? "[no stack]" : functionName(profile, leaf), [
		...stackLines(profile, samples.stack[row]!).slice(1),
		track.kind === "cpu" && `thread ${cut(visible(rowName(profile,
			"thread", samples.thread[row]!)), 100)}`,
		`sample at ${tickText(samples.time[row]!, 1000)}, ${
			formatWeight(samples.weight[row]!, unit)}`,
	], leaf);
}

/* What a whole track has in the visible range. */
export function trackFacts(scene: Scene, track: Track): string[] {
	const { profile, bands, view } = scene;
	const thread = track.kind === "thread" ? profile.threads[track.id] :
		       undefined;
	const time = (word: string, ns: number) => !Number.isNaN(ns) &&
		`${word} ${formatNs(ns)}`;
	const of = track.kind === "cpu" ? bands.byCpu : bands.byThread;
	const { unit } = profile.events[bands.event] ?? { unit: "count" };

	if (track.kind !== "thread" && track.kind !== "cpu")
		return [];
	const weight = weightIn(of, track.id, view.from, view.to);

	return [
		thread && `in all: ${[time("running", thread.running),
			time("blocked", thread.blocked),
			time("preempted", thread.preempted)]
			.filter(Boolean).join(", ")}`,
		`samples in view: ${formatWeight(weight, unit as "ns")}${
			bands.period ? `, ${share(weight, view.to - view.from)
			} of the time` : ""}`,
	].filter(line => line && line !== "in all: ") as string[];
}

export function trackTip(scene: Scene, track: Track): Tip {
	return tip(visible(track.name), trackFacts(scene, track));
}

/*
 * At @y CSS pixels below the upper edge of @track and @time; a point less than
 * three pixels of @grain ns away counts.
 */
export function tipAt(scene: Scene, track: Track, y: number, time: number,
		      grain: number): Tip | null {
	const { base, profile } = scene, slack = 3 * grain;
	const row = Math.floor((y - track.band) / CALL_ROW);

	if (track.kind === "marks")
		return markTip(scene, profile.threads.length, time, slack);
	if (track.kind === "cpu")
		return sampleTip(scene, track, time, grain);
	if (track.kind !== "thread")
		return null;
	if (row >= 0 && row < track.marked) {
		const span = spanAt(base.intervals,
			base.intervalLane[track.id]! + row, time, slack);

		return span < 0 ? null : intervalTip(scene, span);
	}
	if (row >= 0) {
		const depth = row - track.marked;
		const span = depth < track.rows ? spanAt(base.calls,
			base.callLane[track.id]! + depth, time, slack) : -1;

		return span < 0 ? null : callTip(scene, span);
	}
	const mark = markTip(scene, track.id, time, slack);

	if (mark)
		return mark;
	for (const preempted of [0, 1]) {
		const span = spanAt(base.waits, 2 * track.id + preempted, time,
				    grain / 2);

		if (span >= 0)
			return waitTip(scene, span);
	}
	return sampleTip(scene, track, time, grain);
}
