/* SPDX-License-Identifier: MIT */
/*
 * calls.tsx - calls by function; of one function how long they took
 *
 * Intervals that the program marked are beside the calls, by their name.
 * A range of lengths, chosen in the histogram or by a button, is the condition
 * of the selection: then every view has only what ran inside these calls.
 */
import { useMemo } from "preact/hooks";
import { callRows, lengthsOf, quantile, slowest, type CallRows, type Figure,
	 type Lengths } from "../engine/calls";
import { hasWaits, tableOf } from "../engine/call_index";
import { choose } from "../engine/chosen";
import { commandOf } from "../engine/command";
import { threadName } from "../engine/rows";
import { NONE } from "../profile";
import { ALL, type Selection } from "../select";
import { cut, formatCount, formatNs, formatTime, functionName, isMarked,
	 nounOf, plural, shortName, visible } from "../text";
import { Grid, type Column } from "./grid";
import { Histogram, type Range } from "./histogram";
import { FunctionButton } from "./names";
import { Pair } from "./pair";
import { FunctionPicker } from "./picker";
import type { ViewProps } from "./props";

const FIGURES: [Figure, string, string][] = [
	["count", "Calls", "calls that begin in the time"],
	["total", "Total", "time in which a call was open"],
	["sum", "Sum", "of all calls, recursive ones too"],
	["self", "Self", "without what it called"],
	["min", "Min", "the shortest call"],
	["p50", "p50", "half of the calls are not longer"],
	["p90", "p90", "90 % of the calls are not longer"],
	["p99", "p99", "99 % of the calls are not longer"],
	["p999", "p99.9", "99.9 % of the calls are not longer"],
	["max", "Max", "the longest call"],
];
/* Of a marked interval the waits are of all its time: nothing is its self. */
const WAITS: [Figure, string, string][] = [
	["selfBlocked", "Blocked", "of self: the thread waited for something"],
	["selfPreempted", "Preempted", "of self: the thread had no CPU"],
];
const OF_MARKED: Partial<Record<Figure, Figure>> = {
	selfBlocked: "blocked", selfPreempted: "preempted",
};

function columnsOf(props: ViewProps, rows: CallRows): Column[] {
	const { profile, go } = props;
	const figures = hasWaits(profile) ? [...FIGURES, ...WAITS] : FIGURES;

	return [
		{ id: "name", head: "Function", isText: true,
		  value: row => profile.functions.name[rows.func[row]!]!,
		  cell: row => <FunctionButton profile={profile}
			  func={rows.func[row]!} title="Histogram"
			  onOpen={func => go({ func })} /> },
		...figures.map(([figure, head, title]): Column => {
			const value = (row: number) => rows[isMarked(profile,
				rows.func[row]!) && OF_MARKED[figure] ||
				figure][row]!;

			return {
				id: figure, head, title, value,
				cell: row => figure === "count" ?
					formatCount(value(row)) :
					figure.startsWith("self") && !value(row)
					&& (figure !== "self" || isMarked(
					profile, rows.func[row]!)) ? "–" :
					formatNs(value(row)),
			};
		}),
	];
}

const MANY = 100;		/* calls: enough for a percentile to mean much */

/* The function of the view if it was called; else that with most time. */
function focusOf(props: ViewProps, rows: CallRows): number {
	const asked = props.selection.calls?.func ?? props.view.func;
	/* a main loop is called once, and has all the time */
	const least = rows.count.some(n => n >= MANY) ? MANY : 1;
	let most = -1;

	if (asked !== null && (props.selection.calls ||
			       rows.func.includes(asked)))
		return asked;
	for (let i = 0; i < rows.n; i++)
		if (rows.count[i]! >= least &&
		    (most < 0 || rows.total[i]! > rows.total[most]!))
			most = i;
	return most < 0 ? rows.func[0] ?? NONE : rows.func[most]!;
}

function Buttons({ lengths, onRange, range }: { lengths: Lengths;
		range: Range | null; onRange: (range: Range | null) => void }) {
	const from = (fraction: number, text: string) => {
		/* the middle of a bucket: from its calls on, all */
		const min = quantile(lengths, fraction);

		return <button onClick={() => onRange({ min,
			max: Infinity })} aria-pressed={range?.min === min &&
			range.max === Infinity}>{text}</button>;
	};

	return <div class="buttons" role="group" aria-label="Slow calls">
		{from(0.9, "p90 and slower")}
		{from(0.99, "p99 and slower")}
		{from(0.999, "p99.9 and slower")}
		{from(1, "the slowest")}
		{range && <button onClick={() => onRange(null)}>
			all lengths</button>}
	</div>;
}

/* The slowest calls as links to their time and thread. */
function Slowest({ props, func, calls }: { props: ViewProps; func: number;
		calls: number[] }) {
	const { profile, selection, select, go } = props;
	const table = tableOf(profile, func);

	return <section>
		<h2>The slowest</h2>
		<ol class="slowest">{calls.map(i => {
			const begin = table.begin[i]!, ns = table.duration[i]!;
			const next: Selection = { ...selection, calls: null,
				from: begin, to: begin + ns,
				threads: [table.thread[i]!] };

			return <li key={i}>
				<button class="link" title="Show this time of
					this thread in the time line"
					onClick={() => go({ tab: "time",
						selection: next })}>
					{formatNs(ns)}</button>{" "}
				at {formatTime(begin, ns)} in{" "}
				{shortName(threadName(profile,
						      table.thread[i]!))}
				{table.text[i] ? <code>{" "}{cut(visible(
					profile.words[table.text[i]!]!), 120)}
				</code> : null}
				{" "}<button class="link small"
					onClick={() => select({ ...selection,
						calls: { func, min: ns,
							 max: ns } })}
					>inside it</button>
			</li>;
		})}</ol>
	</section>;
}

function OneFunction({ props, func, rows }: { props: ViewProps; func: number;
		rows: CallRows }) {
	const { profile, selection, select } = props;
	/* the picture is of all lengths, to choose another range from */
	const plain = useMemo(() => selection.calls ?
		{ ...selection, calls: null } : selection, [selection]);
	const chosen = choose(profile, plain);
	const lengths = useMemo(() => lengthsOf(chosen, func), [chosen, func]);
	const slow = useMemo(() => slowest(chosen, func, 10), [chosen, func]);
	const range = selection.calls?.func === func ? selection.calls : null;
	const name = functionName(profile, func), noun = nounOf(profile, func);
	const onRange = (next: Range | null) => select({ ...selection,
		calls: next && { func, min: next.min, max: next.max } });

	return <>
		<FunctionPicker {...props} func={func} only={rows.func} />
		<h2 class="functionname">{cut(name, 300)}</h2>
		{!lengths.count ? <p class="empty">No {noun} of it is
			selected.</p> : <>
			<p>{plural(lengths.count, noun)}: p50{" "}
				{formatNs(quantile(lengths, 0.5))}, p90{" "}
				{formatNs(quantile(lengths, 0.9))}, p99{" "}
				{formatNs(quantile(lengths, 0.99))}, p99.9{" "}
				{formatNs(quantile(lengths, 0.999))}, longest{" "}
				{formatNs(lengths.max)}. Drag over the bars to
				see what differs inside these {noun}s.</p>
			<Histogram lengths={lengths} range={range}
				onRange={onRange}
				noun={noun} label={`Lengths of the ${noun}s of ${
					cut(name, 200)}`} />
			<Buttons lengths={lengths} range={range}
				onRange={onRange} />
			{range && <Pair props={{ ...props, selection: plain }}
				func={func} min={range.min} max={range.max} />}
			<Slowest props={props} func={func} calls={slow} />
		</>}
	</>;
}

export function CallsView(props: ViewProps) {
	const { profile, selection, view, go } = props;
	const chosen = choose(profile, selection);
	const rows = useMemo(() => callRows(chosen), [chosen]);
	const columns = useMemo(() => columnsOf(props, rows),
				[rows, selection]);
	const all = useMemo(() => Array.from(rows.func.keys()), [rows]);
	const func = focusOf(props, rows);
	const command = commandOf(profile, { ...ALL, from: selection.from,
		to: selection.to }, "calls");

	if (!profile.calls.n && !profile.intervals.n)
		return <p class="empty">This recording has no calls: they are
			of programs with XRay's sleds, by
			{" "}<code>seam record --trace</code>.</p>;
	return <>
		{func !== NONE && <OneFunction props={props} func={func}
			rows={rows} />}
		<h2>All functions{profile.intervals.n ?
			" and marked intervals" : ""}{selection.calls ?
			`, inside these ${nounOf(profile,
				selection.calls.func)}s` : ""}</h2>
		{command && !selection.calls && <p class="command"><code>
			{cut(visible(command), 300)}</code></p>}
		<Grid label="Calls by function" columns={columns} rows={all}
			sort={view.sort} fallback="total"
			onSort={sort => go({ sort })}
			isCurrent={row => rows.func[row] === func} />
	</>;
}
