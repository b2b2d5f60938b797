/* SPDX-License-Identifier: MIT */
/* pictures.tsx - the tabs of the two canvases, and what is chosen for them */
import { useMemo, useState } from "preact/hooks";
import { FlameGraph } from "../draw/flame_graph";
import { TimeLine } from "../draw/time_line";
import { choose, type Chosen } from "../engine/chosen";
import { MOST_NODES, treeInTime } from "../engine/in_time";
import { invertedOf } from "../engine/sandwich";
import { treeByThread, treeOf } from "../engine/sums";
import type { CountedTree } from "../engine/tree_nodes";
import { SHAPES, type Shape } from "../hash";
import { formatCount, formatWeight } from "../text";
import type { ViewProps } from "./props";
import { TreeTable } from "./tree_table";

const SHAPE_NAMES: Record<Shape, string> = {
	merged: "merged", threads: "by thread", inverted: "inverted",
	time: "in the order of time",
};

export function TimeView({ profile, selection, select }: ViewProps) {
	return <TimeLine profile={profile} selection={selection}
		select={select} />;
}

interface Shaped {
	tree: CountedTree;
	missing: string;	/* what of the selection it does not have */
}

function inTime(chosen: Chosen): Shaped {
	const { tree, unplaced, beyond } = treeInTime(chosen);
	const missing: string[] = [];

	if (unplaced)
		missing.push(`${formatWeight(unplaced, tree.unit)} of sums ` +
			     "have no place in time");
	if (beyond)
		missing.push(`${formatWeight(beyond, tree.unit)} are beyond ` +
			     `${formatCount(MOST_NODES)} frames: select a ` +
			     "time or a thread");
	return { tree, missing: missing.join("; ") };
}

const shaped: Record<Shape, (chosen: Chosen) => Shaped> = {
	merged: chosen => ({ tree: treeOf(chosen), missing: "" }),
	threads: chosen => ({ tree: treeByThread(chosen), missing: "" }),
	inverted: chosen => ({ tree: invertedOf(chosen), missing: "" }),
	time: inTime,
};

/* The rows are made when they are asked for. */
function CallTree({ profile, tree, onOpen }: { profile: ViewProps["profile"];
		tree: CountedTree; onOpen: (func: number) => void }) {
	const [isOpen, setOpen] = useState(false);

	return <details open={isOpen}
		onToggle={e => setOpen(e.currentTarget.open)}>
		<summary>The same as a table</summary>
		{isOpen && <TreeTable profile={profile} tree={tree} root={0}
			label="Call tree" onOpen={onOpen} />}
	</details>;
}

export function FlameView(props: ViewProps) {
	const { profile, selection, select, view, go } = props;
	const chosen = choose(profile, selection);
	const { tree, missing } = useMemo(() => shaped[view.shape](chosen),
					  [chosen, view.shape]);
	const open = (func: number) => go({ tab: "sandwich", func });

	return <>
		<div class="buttons" role="group" aria-label="Flame graph">
			<label>Stacks{" "}
				<select value={view.shape} onChange={e => go({
					shape: SHAPES[e.currentTarget
						.selectedIndex]! })}>
					{SHAPES.map(s => <option key={s}
						value={s}>{SHAPE_NAMES[s]}
						</option>)}
				</select>
			</label>
			<button aria-pressed={view.icicle}
				onClick={() => go({ icicle: !view.icicle })}>
				{tree.isInverted ? "Callees" : "Callers"} on top
			</button>
			<span role="status">{formatWeight(tree.total[0] ?? 0,
				tree.unit)}{tree.waiting[0] ? `, of that ${
				formatWeight(tree.waiting[0], tree.unit)} ` +
				"waiting" : ""}{missing && `; ${missing}`}</span>
		</div>
		{tree.total[0] ? <>
			<FlameGraph profile={profile} tree={tree}
				selection={selection} select={select}
				icicle={view.icicle} onFunction={open} />
			<CallTree profile={profile} tree={tree} onOpen={open} />
		</> : <p class="empty">Nothing is selected here.</p>}
	</>;
}
