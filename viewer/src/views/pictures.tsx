/* SPDX-License-Identifier: MIT */
/* pictures.tsx - the tabs of the two canvases, and what is chosen for them */
import { useMemo, useState } from "preact/hooks";
import { FlameGraph } from "../draw/flame_graph";
import { TimeLine } from "../draw/time_line";
import { choose } from "../engine/chosen";
import { treeByThread, treeOf } from "../engine/sums";
import { formatWeight } from "../text";
import type { ViewProps } from "./props";

export function TimeView({ profile, selection, select }: ViewProps) {
	return <TimeLine profile={profile} selection={selection}
		select={select} />;
}

export function FlameView(props: ViewProps) {
	const { profile, selection, select, view, go } = props;
	const [byThread, setByThread] = useState(false);
	const chosen = choose(profile, selection);
	const tree = useMemo(() => byThread ? treeByThread(chosen) :
			     treeOf(chosen), [chosen, byThread]);

	return <>
		<div class="buttons" role="group" aria-label="Flame graph">
			<button aria-pressed={view.icicle}
				onClick={() => go({ icicle: !view.icicle })}>
				Callers on top</button>
			<button aria-pressed={byThread}
				onClick={() => setByThread(!byThread)}>
				By thread</button>
			<span role="status">{formatWeight(tree.total[0] ?? 0,
				tree.unit)}{tree.waiting[0] ? `, of that ${
				formatWeight(tree.waiting[0], tree.unit)} ` +
				"waiting" : ""}</span>
		</div>
		{tree.total[0] ? <FlameGraph profile={profile} tree={tree}
			selection={selection} select={select}
			icicle={view.icicle}
			onFunction={func => go({ tab: "sandwich", func })} /> :
			<p class="empty">Nothing is selected here.</p>}
	</>;
}
