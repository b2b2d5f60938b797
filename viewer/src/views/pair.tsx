/* SPDX-License-Identifier: MIT */
/*
 * pair.tsx - inside the slow calls, and inside the others, side by side
 *
 * A sentence with what differs most, the parts that the time of a call divides
 * into, the functions inside, and a flame graph of each group.
 */
import { useMemo } from "preact/hooks";
import { FlameGraph } from "../draw/flame_graph";
import { causesOf, partName, type Causes, type Group, type Inside }
	from "../engine/causes";
import { diffOf } from "../engine/diff";
import { treeOf } from "../engine/sums";
import type { CountedTree } from "../engine/tree_nodes";
import { LAYERS, NONE } from "../profile";
import { answerOf } from "../sentence";
import { formatDifference, formatMean, formatNs, plural, shortName }
	from "../text";
import { Grid, type Column } from "./grid";
import { FunctionButton } from "./names";
import type { ViewProps } from "./props";

const MAX_INSIDE = 500;		/* functions of a table */

function Sentence({ causes }: { causes: Causes }) {
	const answer = useMemo(() => answerOf(causes), [causes]);

	return <div class="answer" role="status" id="answer">
		<p>{answer.groups}</p>
		{answer.cause && <p><strong>{answer.cause}</strong>{" "}
			{answer.rest}</p>}
	</div>;
}

function PartTable({ causes }: { causes: Causes }) {
	const { slow, fast, parts } = causes;

	return <div class="grid" role="region" tabIndex={0}
		aria-label="Where the time of a call goes">
		<table>
			<caption>Where the time of a call goes</caption>
			<thead><tr>
				<th scope="col" class="text">Part</th>
				<th scope="col">{plural(slow.n, "slow call")}
				</th>
				{fast && <th scope="col">
					{plural(fast.n, "other")}</th>}
				{fast && <th scope="col">Difference</th>}
			</tr></thead>
			<tbody>
				{parts.map(part => <tr key={partName(part)}>
					<th scope="row" class="text">
						<span class={`swatch ${part
							.kind === "running" ?
							LAYERS[part.layer] :
							part.kind}`}
							aria-hidden="true" />
						{shortName(partName(part))}
					</th>
					<td>{formatMean(part.slow, "ns")}</td>
					{fast && <td>{formatMean(part.fast,
						"ns")}</td>}
					{fast && <td>{formatDifference(
						part.slow - part.fast, "ns")}
					</td>}
				</tr>)}
				<tr class="sum">
					<th scope="row" class="text">A call</th>
					<td>{formatNs(slow.ns)}</td>
					{fast && <td>{formatNs(fast.ns)}</td>}
					{fast && <td>{formatDifference(
						slow.ns - fast.ns, "ns")}</td>}
				</tr>
			</tbody>
		</table>
	</div>;
}

function insideColumns(props: ViewProps, rows: Inside[]): Column[] {
	const { profile, go } = props;
	const figure = (id: "slow" | "fast", head: string): Column => ({
		id, head, value: row => rows[row]![id],
		cell: row => formatMean(rows[row]![id], "ns"),
	});

	return [
		{ id: "name", head: "Function", isText: true,
		  value: row => profile.functions.name[rows[row]!.func]!,
		  cell: row => <FunctionButton profile={profile}
			  func={rows[row]!.func} title="Its calls"
			  onOpen={func => go({ tab: "sandwich", func })} /> },
		figure("slow", "Slow"), figure("fast", "Other"),
		{ id: "more", head: "Difference",
		  value: row => rows[row]!.slow - rows[row]!.fast,
		  cell: row => formatDifference(rows[row]!.slow -
						rows[row]!.fast, "ns") },
	];
}

function InsideTable({ props, title, rows }: { props: ViewProps;
		title: string; rows: Inside[] }) {
	const shown = useMemo(() => rows.slice(0, MAX_INSIDE), [rows]);
	const columns = useMemo(() => insideColumns(props, shown), [shown]);
	const all = useMemo(() => shown.map((_, i) => i), [shown]);

	return <section>
		<h2>{title}</h2>
		<Grid label={title} columns={columns} rows={all} step={20}
			sort={props.view.sort} fallback="more"
			onSort={sort => props.go({ sort })} />
	</section>;
}

/* @tree has values for one call, or all of @group. */
function GroupGraph({ props, group, title, tree, text }: { props: ViewProps;
		group: Group; title: string; tree: CountedTree;
		text: string }) {
	return <section>
		<h2>{title}</h2>
		<p>{text}</p>
		{tree.n > 1 ? <FlameGraph profile={props.profile} tree={tree}
			selection={group.chosen.selection}
			select={props.select} icicle={props.view.icicle}
			onFunction={func => props.go({ tab: "sandwich",
						       func })} /> :
			<p class="empty">No sample and no wait lies in these
				calls.</p>}
	</section>;
}

function Graphs({ props, causes }: { props: ViewProps; causes: Causes }) {
	const { slow, fast } = causes;
	const tree = useMemo(() => !fast ? treeOf(slow.chosen) :
		diffOf({ chosen: fast.chosen, units: fast.n },
		       { chosen: slow.chosen, units: slow.n }).tree, [causes]);
	const of = (group: Group, total: number) => `${plural(group.n,
		"call")}, ${formatNs(group.ns)} each; samples and waits have ` +
		`${formatMean(total, "ns")} a call.`;

	return <div class="columns">
		<GroupGraph props={props} group={slow} tree={tree}
			title="Inside the slow calls"
			text={of(slow, tree.total[0]! / (fast ? 1 : slow.n)) +
			      (fast ? " The colour is the difference a call."
			       : "")} />
		{fast && <GroupGraph props={props} group={fast}
			tree={treeOf(fast.chosen)} title="Inside the others"
			text={of(fast, treeOf(fast.chosen).total[0]! /
				       fast.n)} />}
	</div>;
}

export function Pair({ props, func, min, max }: { props: ViewProps;
		func: number; min: number; max: number }) {
	const { profile, selection } = props;
	const causes = useMemo(() => func === NONE ? null :
		causesOf(profile, selection, func, min, max),
		[profile, selection, func, min, max]);

	if (!causes)
		return <p class="empty" role="status">No call has this
			length.</p>;
	return <>
		<Sentence causes={causes} />
		<PartTable causes={causes} />
		<Graphs props={props} causes={causes} />
		<div class="columns">
			<InsideTable props={props} rows={causes.callees}
				title="Calls inside: self time a call" />
			<InsideTable props={props} rows={causes.leaves}
				title="Samples inside: self time a call" />
		</div>
	</>;
}
