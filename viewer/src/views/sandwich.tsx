/* SPDX-License-Identifier: MIT */
/* sandwich.tsx - a function with its callers above, its callees below */
import { useMemo } from "preact/hooks";
import { FlameGraph } from "../draw/flame_graph";
import { choose } from "../engine/chosen";
import { rowsOf } from "../engine/rows";
import { sandwichOf } from "../engine/sandwich";
import { NONE } from "../profile";
import { formatPercent, formatWeight, functionName } from "../text";
import { FunctionPicker } from "./picker";
import type { ViewProps } from "./props";
import { TreeTable } from "./tree_table";

/*
 * The function of the view; else of those that are @wanted, or of all, the one
 * with the most self time.
 */
export function focusOf({ profile, selection, view }: ViewProps,
			wanted: (func: number) => boolean = () => true):
		number {
	if (view.func !== null)
		return view.func;
	const rows = rowsOf(choose(profile, selection), "function");
	const better = (i: number, than: number) => {
		const [a, b] = [i, than].map(row => wanted(rows.id[row]!));

		return a === b ? rows.self[i]! > rows.self[than]! : a!;
	};
	let most = -1;

	for (let i = 0; i < rows.n; i++)
		if (rows.id[i] !== NONE &&
		    (most < 0 || better(i, most)))
			most = i;
	return most < 0 ? NONE : rows.id[most]!;
}

export function SandwichView(props: ViewProps) {
	const { profile, selection, select, go } = props;
	const chosen = choose(profile, selection), func = focusOf(props);
	const both = useMemo(() => func === NONE ? null :
			     sandwichOf(chosen, func), [chosen, func]);
	const open = (next: number) => go({ func: next });

	if (!both)
		return <p class="empty">Nothing is selected here.</p>;
	const { callers, callees } = both;
	const name = functionName(profile, func);
	const has = callees.n > 1;

	return <>
		<FunctionPicker {...props} func={func} />
		<p role="status">{has ? `${name}: ${formatWeight(
			callees.total[0]!, chosen.unit)} of ${formatWeight(
			rowsOf(chosen, "function").sum, chosen.unit)} ` +
			`(${formatPercent(callees.total[0]!,
			rowsOf(chosen, "function").sum)}), in itself ` +
			formatWeight(callees.self[1] ?? 0, chosen.unit) :
			`${name} is on no selected stack.`}</p>
		{has && <div class="columns">
			<section>
				<h2>Callers</h2>
				<FlameGraph profile={profile} tree={callers}
					selection={selection} select={select}
					icicle={false} onFunction={open} />
				<TreeTable profile={profile} tree={callers}
					root={1} label="Callers"
					onOpen={open} />
			</section>
			<section>
				<h2>Callees</h2>
				<FlameGraph profile={profile} tree={callees}
					selection={selection} select={select}
					icicle={true} onFunction={open} />
				<TreeTable profile={profile} tree={callees}
					root={1} label="Callees"
					onOpen={open} />
			</section>
		</div>}
	</>;
}
