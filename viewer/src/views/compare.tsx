/* SPDX-License-Identifier: MIT */
/*
 * compare.tsx - two recordings of the page, or two selections of one
 *
 * A is the first recording, or the selection that was kept; B is the second
 * one, or the selection.  The words and matches are those of 'seam diff'.
 */
import { useMemo } from "preact/hooks";
import { FlameGraph } from "../draw/flame_graph";
import { choose, type Chosen } from "../engine/chosen";
import { diffOf, type Diff, type Side } from "../engine/diff";
import { otherLengths } from "../engine/causes";
import { FIRST_VIEW, writeHash } from "../hash";
import { NONE } from "../profile";
import { ALL, type Selection } from "../select";
import { cut, formatChange, formatDifference, formatMean, formatNs, plural, shortName,
	 visible } from "../text";
import { describe } from "./chips";
import { Grid, type Column } from "./grid";
import { LayerMark } from "./names";
import type { ViewProps } from "./props";

function durationOf({ profile, selection }: Chosen): number {
	return Math.max(0, Math.min(selection.to, profile.meta.durationNs) -
			   selection.from);
}

const sizeOf = (c: Chosen) => c.inside ? plural(c.inside.n, "call") :
	formatNs(durationOf(c));

interface Sides {
	a: Side;
	b: Side;
	per: string;
}

/* Per call where both sides are inside calls, else a second of each. */
function sidesOf(a: Chosen, b: Chosen, byRun: boolean): Sides {
	if (a.inside && b.inside)
		return { a: { chosen: a, units: a.inside.n },
			 b: { chosen: b, units: b.inside.n }, per: "call" };
	if (byRun)
		return { a: { chosen: a, units: 1 }, b: { chosen: b, units: 1 },
			 per: "run" };
	return { a: { chosen: a, units: durationOf(a) / 1e9 },
		 b: { chosen: b, units: durationOf(b) / 1e9 }, per: "second" };
}

function columnsOf(props: ViewProps, diff: Diff, which: "self" | "total"):
		Column[] {
	const { rows, unit } = diff;
	const change = (row: number) => rows[row]![which];

	return [
		{ id: "name", head: "Function", isText: true,
		  value: row => rows[row]!.func.name,
		  cell: row => {
			const { func } = rows[row]!, own = func.funcs[1];

			return <span class="name">
				<LayerMark layer={func.layer} />
				{own === NONE ? <span>{shortName(func.name)}
				</span> : <button class="link" data-row
					title={cut(visible(func.name), 1000)}
					onClick={() => props.go({ func: own,
						tab: "sandwich" })}>
					{shortName(func.name)}</button>}
				<span class="module">{shortName(func.module)}
				</span>
			</span>;
		  } },
		{ id: "a", head: "A", value: row => change(row).a,
		  cell: row => formatMean(change(row).a, unit) },
		{ id: "b", head: "B", value: row => change(row).b,
		  cell: row => formatMean(change(row).b, unit) },
		{ id: "size", head: "Difference",
		  value: row => Math.abs(change(row).b - change(row).a),
		  cell: row => formatDifference(change(row).b -
						change(row).a, unit) },
		{ id: "change", head: "Change",
		  value: row => change(row).change,
		  cell: row => formatChange(change(row).change) },
		{ id: "verdict", head: "Verdict",
		  value: row => change(row).verdict,
		  cell: row => change(row).verdict },
	];
}

const recordingOf = ({ profiles }: ViewProps, { chosen }: Side) =>
	Math.max(0, profiles.indexOf(chosen.profile));

function Result({ props, sides }: { props: ViewProps; sides: Sides }) {
	const { view, go, selection, select } = props;
	const diff = useMemo(() => diffOf(sides.a, sides.b),
			     [sides.a.chosen, sides.b.chosen]);
	const which = view.by === "total" ? "total" : "self";
	const columns = useMemo(() => columnsOf(props, diff, which),
				[diff, which]);
	const all = useMemo(() => diff.rows.map((_, i) => i), [diff]);

	return <>
		<p role="status">All: {formatMean(diff.all.a, diff.unit)} a{" "}
			{sides.per} in A, {formatMean(diff.all.b, diff.unit)} in
			B ({formatChange(diff.all.change)}, one run of each:{" "}
			{diff.all.verdict}).</p>
		{diff.warnings.map(w => <p class="warning" key={w}>{w}</p>)}
		<FlameGraph profile={sides.b.chosen.profile} tree={diff.tree}
			selection={selection} select={select}
			icicle={view.icicle}
			onFunction={func => go({ tab: "sandwich", func,
				recording: recordingOf(props, sides.b) })} />
		<div class="buttons" role="group" aria-label="Compared">
			<button aria-pressed={which === "self"}
				onClick={() => go({ by: "function" })}>Self
			</button>
			<button aria-pressed={which === "total"}
				onClick={() => go({ by: "total" })}>Total
			</button>
		</div>
		<Grid label="Changes by function" columns={columns} rows={all}
			sort={view.sort} fallback="size"
			onSort={sort => go({ sort })} />
	</>;
}

const Text = ({ profile, selection }: Chosen) => <>{describe(profile,
	selection).map(chip => chip.text).join("; ") || "everything"}</>;

/*
 * The selection that @selection is compared with: what was kept, else the other
 * calls of the function, else everything; with the same events.
 */
function beforeOf({ profile, selection, view }: ViewProps): Selection | null {
	const { calls } = selection, events = choose(profile, selection).events;
	const same = { events: events.map((_, i) => i).filter(i => events[i]) };

	if (view.before)
		return { ...view.before, ...same };
	if (calls) {
		const { min, max } = calls;
		const other = otherLengths(profile, selection, calls.func,
					   min, max);

		return other && { ...selection, ...same, calls: {
			func: calls.func, ...other } };
	}
	return writeHash({ ...FIRST_VIEW, selection: { ...selection, search: "",
		events: null } }) === writeHash(FIRST_VIEW) ? null :
		{ ...ALL, ...same };
}

function TwoSelections(props: ViewProps) {
	const { profile, selection, view, go } = props, { before } = view;
	const from = useMemo(() => beforeOf(props), [selection, before]);

	if (!from)
		return <p class="empty">Select something: a time, a thread, the
			slow calls of a function; it is compared with all of the
			recording. Or keep a selection as A and choose
			another.</p>;
	const a = choose(profile, from), b = choose(profile, selection);

	return <>
		<p><strong>A</strong>: <Text {...a} />, {sizeOf(a)}.{" "}
			<strong>B</strong>: <Text {...b} />, {sizeOf(b)}.</p>
		<Result props={props} sides={sidesOf(a, b, false)} />
		<p>{before && <button onClick={() => go({ before: null })}>
			Compare with everything</button>}</p>
	</>;
}

export function CompareView(props: ViewProps) {
	const { profiles, selection, go } = props;
	const [x, y] = profiles;
	/* indices of one recording mean nothing in the other */
	const common = useMemo(() => ({ ...ALL, from: selection.from,
		to: selection.to, layers: selection.layers }), [selection]);

	if (x && y)
		return <>
			<p><strong>A</strong>: {cut(visible(x.meta.file), 200)},
				{" "}{plural(x.samples.n, "sample")}.{" "}
				<strong>B</strong>: {cut(visible(y.meta.file),
				200)}, {plural(y.samples.n, "sample")}.</p>
			<Result props={props} sides={sidesOf(choose(x, common),
				choose(y, common), true)} />
		</>;
	return <>
		<p><button onClick={() => go({ before: selection })}>
			Keep this selection as A</button></p>
		<TwoSelections {...props} />
	</>;
}
