/* SPDX-License-Identifier: MIT */
/*
 * pair.tsx - inside the slow calls, and inside the others, side by side
 *
 * A sentence with what differs most, the parts that the time of a call divides
 * into, the functions inside, and a flame graph of each group.
 */
import { useEffect, useMemo, useState } from "preact/hooks";
import { FlameGraph } from "../draw/flame_graph";
import { findCauses, partName, type Causes, type Group, type Inside }
	from "../engine/causes";
import { diffOf } from "../engine/diff";
import { treeOf } from "../engine/sums";
import type { CountedTree } from "../engine/tree_nodes";
import { LAYERS, NONE } from "../profile";
import { answerOf, type Answer } from "../sentence";
import { runInSlices } from "../slices";
import { formatDifference, formatMean, formatNs, nounOf, plural, shortName }
	from "../text";
import { Grid, type Column } from "./grid";
import { FunctionButton } from "./names";
import type { ViewProps } from "./props";

const MAX_INSIDE = 500;		/* functions of a table */

/* What is shown, which takes some 0.4 s of a million calls. */
interface Compared {
	causes: Causes;
	answer: Answer;
	slowTree: CountedTree;	/* a call, where there are others */
	fastTree: CountedTree | null;
}

function* compare(props: ViewProps, func: number, min: number, max: number):
		Generator<void, Compared | null> {
	const causes = func === NONE ? null : yield* findCauses(props.profile,
		props.selection, func, min, max);

	if (!causes)
		return null;
	yield;
	const { slow, fast } = causes, answer = answerOf(causes);

	yield;
	const slowTree = treeOf(slow.chosen);

	yield;
	const fastTree = fast && treeOf(fast.chosen);

	yield;
	return { causes, answer, fastTree, slowTree: !fast ? slowTree :
		diffOf({ chosen: fast.chosen, units: fast.n },
		       { chosen: slow.chosen, units: slow.n }).tree };
}

function Sentence({ answer }: { answer: Answer }) {
	return <div class="answer" role="status" id="answer">
		<p>{answer.groups}</p>
		{answer.cause && <p><strong>{answer.cause}</strong>{" "}
			{answer.rest}</p>}
	</div>;
}

function PartTable({ causes }: { causes: Causes }) {
	const { slow, fast, parts } = causes;
	const noun = nounOf(slow.chosen.profile, causes.func);
	const title = `Where the time of ${noun === "call" ? "a" : "an"} ${
		noun} goes`;

	return <div class="grid" role="region" tabIndex={0}
		aria-label={title}>
		<table>
			<caption>{title}</caption>
			<thead><tr>
				<th scope="col" class="text">Part</th>
				<th scope="col">{plural(slow.n, `slow ${noun}`)}
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
					<th scope="row" class="text">One {noun}</th>
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

function Graphs({ props, compared }: { props: ViewProps;
		compared: Compared }) {
	const { causes, slowTree: tree, fastTree } = compared;
	const { slow, fast } = causes;
	const noun = nounOf(props.profile, causes.func);
	const of = (group: Group, total: number) => `${plural(group.n,
		noun)}, ${formatNs(group.ns)} each; samples and waits have ` +
		`${formatMean(total, "ns")} each.`;

	return <div class="columns">
		<GroupGraph props={props} group={slow} tree={tree}
			title={`Inside the slow ${noun}s`}
			text={of(slow, tree.total[0]! / (fast ? 1 : slow.n)) +
			      (fast ? " The colour is the difference a call."
			       : "")} />
		{fast && fastTree && <GroupGraph props={props} group={fast}
			tree={fastTree} title="Inside the others"
			text={of(fast, fastTree.total[0]! / fast.n)} />}
	</div>;
}

export function Pair({ props, func, min, max }: { props: ViewProps;
		func: number; min: number; max: number }) {
	const { profile, selection } = props;
	const [compared, setCompared] = useState<Compared | null | undefined>(
		undefined);

	/* in slices, so that the histogram answers meanwhile */
	useEffect(() => {
		setCompared(undefined);
		return runInSlices(compare(props, func, min, max), setCompared);
	}, [profile, selection, func, min, max]);
	if (compared === undefined)
		return <p class="empty" role="status">Comparing these calls
			with the others …</p>;
	if (!compared)
		return <p class="empty" role="status">No call has this
			length.</p>;
	const { causes, answer } = compared;

	return <>
		<Sentence answer={answer} />
		<PartTable causes={causes} />
		<Graphs props={props} compared={compared} />
		<div class="columns">
			<InsideTable props={props} rows={causes.callees}
				title="Calls inside: self time a call" />
			<InsideTable props={props} rows={causes.leaves}
				title="Samples inside: self time a call" />
		</div>
	</>;
}
