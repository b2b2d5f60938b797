/* SPDX-License-Identifier: MIT */
/* chips.tsx - the selection in words, each part with a button that removes it */
import { threadName } from "../engine/rows";
import type { Profile } from "../profile";
import type { Selection } from "../select";
import { cut, formatNs, formatTime, functionName, visible } from "../text";
import { LAYER_NAMES } from "./names";

export interface Chip {
	id: keyof Selection;
	text: string;
	without: Partial<Selection>;
}

const few = (names: string[]) => names.length > 3 ?
	`${names.slice(0, 2).join(", ")} and ${names.length - 2} more` :
	names.join(", ");

function timeText(profile: Profile, { from, to }: Selection): string {
	const end = Math.min(to, profile.meta.durationNs), span = end - from;

	return `${formatTime(from, span)} to ${formatTime(end, span)} (` +
	       `${formatNs(Math.max(span, 0))})`;
}

function callsText(profile: Profile, calls: NonNullable<Selection["calls"]>):
		string {
	const { func, min, max } = calls;
	const range = max === Infinity ? `${formatNs(min)} or more` :
		      min === 0 ? `at most ${formatNs(max)}` :
		      `${formatNs(min)} to ${formatNs(max)}`;

	return `inside ${cut(functionName(profile, func), 60)} of ${range}`;
}

export function describe(profile: Profile, s: Selection): Chip[] {
	const chips: Chip[] = [];
	const add = (id: keyof Selection, text: string,
		     without: Partial<Selection>) =>
		chips.push({ id, text, without });

	if (s.from > 0 || s.to < Infinity)
		add("from", timeText(profile, s), { from: 0, to: Infinity });
	if (s.threads)
		add("threads", few(s.threads.map(t => cut(visible(
			threadName(profile, t)), 40))), { threads: null });
	if (s.layers)
		add("layers", few(s.layers.map(i => LAYER_NAMES[i]!)) +
			" code", { layers: null });
	if (s.events)
		add("events", few(s.events.map(i => cut(visible(
			profile.events[i]!.name), 40))), { events: null });
	if (s.module !== null)
		add("module", `through ${cut(visible(profile.modules
			.path[s.module] || "[unknown]"), 60)}`,
			{ module: null });
	if (s.calls)
		add("calls", callsText(profile, s.calls), { calls: null });
	if (s.search)
		add("search", `“${cut(visible(s.search), 40)}” marked`,
			{ search: "" });
	return chips;
}

export function Chips({ profile, selection, select }: { profile: Profile;
		selection: Selection; select: (next: Selection) => void }) {
	const chips = describe(profile, selection);

	return <ul class="chips" aria-label="Selection">
		{!chips.length && <li class="none">Everything is selected.</li>}
		{chips.map(({ id, text, without }) => <li key={id}>
			<span>{text}</span>
			<button aria-label={`Remove: ${text}`} title="Remove"
				onClick={() => select({ ...selection,
							...without })}>
				<span aria-hidden="true">×</span></button>
		</li>)}
		{chips.length > 1 && <li class="all"><button
			onClick={() => select({ ...selection,
				...Object.assign({}, ...chips.map(chip =>
					chip.without)) })}>Remove all</button>
		</li>}
	</ul>;
}
