/* SPDX-License-Identifier: MIT */
/* about.tsx - what was recorded, what is missing, and how exact it is */
import { useMemo } from "preact/hooks";
import { rowName, threadName } from "../engine/rows";
import { NONE, type Profile } from "../profile";
import { cut, formatCount, formatNs, formatTime, plural, shortName, visible }
	from "../text";
import { Grid, type Column } from "./grid";
import type { ViewProps } from "./props";

function utcText(utcNs: string): string {
	const date = new Date(Number(utcNs) / 1e6);

	return utcNs && !Number.isNaN(date.getTime()) ?
	       date.toISOString().replace("T", " ").replace("Z", " UTC") : "";
}

function facts({ meta, ...p }: Profile): [string, string][] {
	const all: [string, string][] = [
		["Command", cut(visible(meta.title), 2000)],
		["File", cut(visible(meta.file), 500)],
		["Host", cut(visible(meta.hostName), 200)],
		["CPUs", meta.cpus ? formatCount(meta.cpus) : ""],
		["Began", utcText(meta.utcNs)],
		["Lasted", formatNs(meta.durationNs)],
		["Trigger", meta.openAtNs < 0 ? "" : formatTime(meta.openAtNs,
			meta.durationNs)],
		["In this page", `${plural(p.samples.n, "row")} of samples, ` +
			`${plural(p.calls.n, "call")}, ` +
			(p.intervals.n ? `${plural(p.intervals.n,
				"marked interval")}, ` : "") +
			`${plural(p.marks.n, "mark")}, ` +
			plural(p.stacks.n, "stack")],
		["Not in it", meta.coarse.samples || meta.coarse.calls ?
			`${plural(meta.coarse.samples, "sample")} added to ` +
			`others, ${plural(meta.coarse.calls, "call")} shorter` +
			` than ${formatNs(meta.coarse.shortestCallNs)}` : ""],
		["Clock of calls", meta.clockSkewNs < 0 ? "" :
			`${formatNs(meta.clockSkewNs)} from that of samples, ` +
			"at most"],
	];

	return all.filter(([, text]) => text);
}

function Losses({ meta }: Profile) {
	return <section>
		<h2>Losses</h2>
		{meta.losses.length ? <ul class="losses">{meta.losses.map(
			(loss, i) => <li key={i}>{cut(visible(loss.text), 400)}
			</li>)}</ul> : <p>Nothing was lost.</p>}
		{meta.notes.length > 0 && <>
			<h2>Notes</h2>
			<ul>{meta.notes.map((note, i) => <li key={i}>
				{cut(visible(note), 1000)}</li>)}</ul>
		</>}
	</section>;
}

function threadColumns(props: ViewProps): Column[] {
	const { profile, selection, select } = props;
	const { threads } = profile;
	const time = (id: "running" | "blocked" | "preempted" | "unknown",
		      head: string): Column => ({
		id, head, value: t => threads[t]![id] || 0,
		cell: t => Number.isNaN(threads[t]![id]) ? "–" :
			   formatNs(threads[t]![id]),
	});

	return [
		{ id: "name", head: "Thread", isText: true,
		  value: t => threadName(profile, t),
		  cell: t => <span class="name"><button class="link" data-row
			title="Only this thread" onClick={() => select({
				...selection, threads: [t] })}>
			{shortName(threadName(profile, t))}</button>
			<span class="module">{shortName(rowName(profile,
				"process", threads[t]!.process))}</span>
			</span> },
		time("running", "Running"), time("blocked", "Blocked"),
		time("preempted", "Preempted"), time("unknown", "Not known"),
	];
}

const KEYS: [string, string][] = [
	["1 to 8", "the tabs"], ["/", "search"], ["Alt+←", "back"],
	["x", "remove the whole selection"], ["t", "light or dark"],
	["?", "these keys"], ["Esc", "close"],
	["↑ ↓ Home End", "rows of a table"],
	["← →", "close and open in a call tree"],
];

export function KeyList() {
	return <dl class="keys">{KEYS.map(([key, text]) => <div key={key}>
		<dt><kbd>{key}</kbd></dt><dd>{text}</dd></div>)}</dl>;
}

export function AboutView(props: ViewProps) {
	const { profile, view, go } = props;
	const columns = useMemo(() => threadColumns(props),
				[profile, props.selection]);
	const rows = useMemo(() => {
		const used = new Uint8Array(profile.threads.length);

		for (const of of [profile.samples, profile.calls,
				  profile.intervals, profile.marks])
			for (let i = 0; i < of.n; i++)
				if (of.thread[i] !== NONE)
					used[of.thread[i]!] = 1;
		return profile.threads.map((_, t) => t).filter(t => used[t]);
	}, [profile]);

	return <>
		<dl class="facts">{facts(profile).map(([name, text]) =>
			<div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}
		</dl>
		<Losses {...profile} />
		<h2>Events</h2>
		<ul>{profile.events.map((e, i) => <li key={i}>{shortName(e.name)
			}: {e.kind === "wait" ? e.preempted ?
			"waits for a CPU" : "waits" : e.kind === "call" ?
			"calls, each measured" : `samples, in ${e.unit ===
			"ns" ? "time" : "events"}`}{e.lost ?
			`, ${plural(e.lost, "record")} lost` : ""}</li>)}</ul>
		<h2>Threads</h2>
		<Grid label="Threads" columns={columns} rows={rows}
			sort={view.sort} fallback="running"
			onSort={sort => go({ sort })} />
		<h2>Keys</h2>
		<KeyList />
	</>;
}
