/* SPDX-License-Identifier: MIT */
/* filters.tsx - events, layers, threads and the search of the selection */
import { useEffect, useMemo, useState } from "preact/hooks";
import { hasWaits } from "../engine/call_index";
import { mainEvents } from "../engine/chosen";
import { threadName } from "../engine/rows";
import { LAYERS, type Profile } from "../profile";
import { cut, visible } from "../text";
import { LAYER_NAMES, LayerMark } from "./names";
import type { ViewProps } from "./props";

const MAX_THREADS = 300;	/* in the list; others by the time line */

/* Threads that have rows, by name. */
function threadsOf(profile: Profile): number[] {
	const has = new Set<number>();

	for (const columns of [profile.samples, profile.calls,
			       profile.intervals])
		for (let i = 0; i < columns.n; i++)
			has.add(columns.thread[i]!);
	return [...has].sort((a, b) => threadName(profile, a) <
		threadName(profile, b) ? -1 : 1).slice(0, MAX_THREADS);
}

/* The choices of events: each alone, and time with the waits. */
function eventChoices(profile: Profile): { text: string; events: number[] }[] {
	const events = profile.events.map((_, i) => i);
	const waits = events.filter(i => profile.events[i]!.kind === "wait");
	const [main] = mainEvents(profile, false);
	const choices = events.filter(i => !/^(dummy|seam):/.test(
		profile.events[i]!.name)).map(i => ({ events: [i],
			text: cut(visible(profile.events[i]!.name), 60) }));

	if (hasWaits(profile) && main !== undefined &&
	    profile.events[main]!.kind === "sample" &&
	    profile.events[main]!.unit === "ns")
		choices.unshift({ events: [main, ...waits].sort((a, b) =>
			a - b), text: "running and waiting" });
	if (waits.length > 1)
		choices.push({ events: waits, text: "waiting" });
	return choices;
}

const same = (a: number[] | null, b: number[]) =>
	a?.length === b.length && b.every(i => a.includes(i));

function Events({ profile, selection, select }: ViewProps) {
	const choices = useMemo(() => eventChoices(profile), [profile]);
	const at = choices.findIndex(c => same(selection.events, c.events));

	return <label>Events{" "}
		<select value={selection.events ? at : ""}
			onChange={e => select({ ...selection,
				events: choices[Number(e.currentTarget.value)]
					?.events ?? null })}>
			<option value="">main</option>
			{selection.events && at < 0 &&
				<option value="-1">several</option>}
			{choices.map((c, i) => <option key={i} value={i}>
				{c.text}</option>)}
		</select>
	</label>;
}

function Layers({ selection, select, profile }: ViewProps) {
	const all = useMemo(() => {
		const has = new Set(profile.functions.layer);

		return LAYERS.map((_, i) => i).filter(i => has.has(i));
	}, [profile]);
	const layers = selection.layers ?? all;
	const toggle = (layer: number) => {
		const next = all.filter(i => layers.includes(i) !==
					     (i === layer));

		select({ ...selection, layers: next.length === 0 ||
			next.length === all.length ? null : next });
	};

	return <div role="group" aria-label="Layers" class="layers">
		{all.map(i => <button key={i} aria-pressed={layers.includes(i)}
			onClick={() => toggle(i)}>
			<LayerMark layer={i} /> {LAYER_NAMES[i]}</button>)}
	</div>;
}

function Threads({ profile, selection, select }: ViewProps) {
	const threads = useMemo(() => threadsOf(profile), [profile]);
	const chosen = selection.threads;
	const one = chosen?.length === 1 ? chosen[0]! : null;

	return <label>Thread{" "}
		<select value={one ?? (chosen ? "some" : "")}
			onChange={e => select({ ...selection, threads:
				e.currentTarget.value === "" ? null :
				[Number(e.currentTarget.value)] })}>
			<option value="">all</option>
			{chosen && one === null &&
				<option value="some" disabled>some</option>}
			{threads.map(t => <option key={t} value={t}>
				{cut(visible(threadName(profile, t)), 60)}
			</option>)}
		</select>
	</label>;
}

/* A step of Back is one search, not one letter. */
function Search({ selection, select }: ViewProps) {
	const [text, setText] = useState(selection.search);

	useEffect(() => setText(selection.search), [selection.search]);
	return <form role="search" onSubmit={e => {
		e.preventDefault();
		select({ ...selection, search: text.slice(0, 1000) });
	}}>
		<label>Mark{" "}
			<input id="search" type="search" value={text}
				placeholder="function or module"
				spellcheck={false} autocomplete="off"
				onInput={e => setText(e.currentTarget.value)}
				onBlur={() => text !== selection.search &&
					select({ ...selection,
						 search: text.slice(0, 1000) })}
				/>
		</label>
	</form>;
}

export function Filters(props: ViewProps) {
	return <div class="filters">
		<Events {...props} />
		<Layers {...props} />
		<Threads {...props} />
		<Search {...props} />
	</div>;
}
