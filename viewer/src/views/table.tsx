/* SPDX-License-Identifier: MIT */
/* table.tsx - rows by function, module, thread, reason of a wait ... */
import { useMemo } from "preact/hooks";
import { choose } from "../engine/chosen";
import { commandOf } from "../engine/command";
import { KEYS, RAN, rowName, rowsOf, type Key, type Rows }
	from "../engine/rows";
import { findsFunction, findsName } from "../engine/search";
import { NONE, type Profile } from "../profile";
import type { Selection } from "../select";
import { cut, formatCount, formatPercent, formatWeight, plural, shortName,
	 visible } from "../text";
import { Grid, type Column } from "./grid";
import { FunctionButton, LayerMark, Share } from "./names";
import type { ViewProps } from "./props";

const KEY_NAMES: Record<Key, string> = {
	function: "Function", module: "Module", layer: "Layer",
	thread: "Thread", process: "Process", cpu: "CPU", wait: "Wait reason",
	waker: "Woken by", event: "Event",
};

/* The selection with what row @id of @key is of; null: it selects nothing. */
function narrowed(profile: Profile, s: Selection, key: Key, id: number):
		Selection | null {
	switch (key) {
	case "module":
		return id === NONE ? null : { ...s, module: id };
	case "layer":
		return id === NONE ? null : { ...s, layers: [id] };
	case "thread":
		return { ...s, threads: [id] };
	case "process":
		return { ...s, threads: profile.threads.map((_, i) => i)
			.filter(i => profile.threads[i]!.process === id) };
	case "event":
		return { ...s, events: [id] };
	case "wait":
	case "waker":
		return id === RAN ? null : { ...s, events: profile.events
			.map((_, i) => i)
			.filter(i => profile.events[i]!.kind === "wait") };
	default:
		return null;
	}
}

function NameCell({ props, rows, row }: { props: ViewProps; rows: Rows;
		row: number }) {
	const { profile, selection, select, go } = props;
	const id = rows.id[row]!, key = rows.key;

	if (key === "function")
		return <FunctionButton profile={profile} func={id}
			title="Callers and callees"
			onOpen={func => go({ tab: "sandwich", func })} />;
	const name = rowName(profile, key, id);
	const next = narrowed(profile, selection, key, id);

	return <span class="name">
		{key === "layer" && id !== NONE && <LayerMark layer={id} />}
		{next ? <button class="link" data-row
			title={`Only ${cut(visible(name), 1000)}`}
			onClick={() => select(next)}>{shortName(name)}
			</button> : shortName(name)}
	</span>;
}

function columnsOf(props: ViewProps, rows: Rows, unit: "ns" | "count"):
		Column[] {
	const code = ["function", "module", "layer"].includes(rows.key);
	const weight = (w: Float64Array) => (row: number) =>
		<Share part={w[row]!} whole={rows.sum}
			text={formatWeight(w[row]!, unit)} />;
	const share = (w: Float64Array) => (row: number) =>
		formatPercent(w[row]!, rows.sum);
	const columns: Column[] = [
		{ id: "name", head: KEY_NAMES[rows.key], isText: true,
		  value: row => rowName(props.profile, rows.key, rows.id[row]!),
		  cell: row => <NameCell props={props} rows={rows}
			  row={row} /> },
		{ id: "self", head: code ? "Self" : "Sum",
		  title: code ? "what ended in it" : "",
		  value: row => rows.self[row]!, cell: weight(rows.self) },
		{ id: "selfshare", head: "%", title: "share of everything " +
		  "that is selected", value: row => rows.self[row]!,
		  cell: share(rows.self) },
	];

	if (code)
		columns.push({ id: "total", head: "Total",
			title: "what passed through it, a recursive " +
			"function once", value: row => rows.total[row]!,
			cell: weight(rows.total) },
			{ id: "totalshare", head: "%", title: "share of " +
			"everything that is selected",
			value: row => rows.total[row]!,
			cell: share(rows.total) });
	if (rows.waiting.some(w => w > 0))
		columns.push({ id: "waiting", head: "Waiting",
			title: "of total: blocked, or preempted",
			value: row => rows.waiting[row]!,
			cell: row => formatWeight(rows.waiting[row]!, unit) });
	columns.push({ id: "count", head: "Samples", title: "samples, waits " +
		"or calls of self", value: row => rows.selfCount[row]!,
		cell: row => formatCount(rows.selfCount[row]!) });
	return columns;
}

function isMarked(props: ViewProps, rows: Rows, row: number): boolean {
	const { profile, selection } = props, id = rows.id[row]!;

	if (!selection.search)
		return false;
	return rows.key === "function" ?
	       findsFunction(profile, id, selection.search) :
	       findsName(rowName(profile, rows.key, id), selection.search);
}

function Above({ props, rows, unit, n }: { props: ViewProps; rows: Rows;
		unit: "ns" | "count"; n: number }) {
	const { profile, selection, view, go } = props;
	const key = rows.key;
	const command = commandOf(profile, selection, "report");
	const by = key === "function" ? "symbol" : key;

	return <div class="above">
		<label>Rows by{" "}
			<select value={key} onChange={e => go({
				by: e.currentTarget.value, sort: "" })}>
				{KEYS.map(k => <option key={k} value={k}>
					{KEY_NAMES[k]}</option>)}
			</select>
		</label>
		<p role="status">{plural(rows.n, "row")}, {formatWeight(
			rows.sum, unit)} in {plural(rows.sumCount, "sample")}
			{selection.search ? `; ${formatCount(n)} match` : ""}
		</p>
		{command && key !== "layer" && key !== "event" &&
			<p class="command" title="the same in a terminal">
			<code>{cut(visible(command), 300)}{key === "function" ?
				"" : ` --by=${by}`}{view.sort === "total" ?
				" --sort=total" : ""}</code></p>}
	</div>;
}

export function TableView(props: ViewProps) {
	const { profile, selection, view, go } = props;
	const key = KEYS.find(k => k === view.by) ?? "function";
	const chosen = choose(profile, selection);
	const rows = useMemo(() => rowsOf(chosen, key), [chosen, key]);
	const columns = useMemo(() => columnsOf(props, rows, chosen.unit),
				[rows, selection]);
	const all = useMemo(() => Array.from(rows.id, (_, i) => i), [rows]);
	const marked = useMemo(() => new Set(all.filter(row =>
		isMarked(props, rows, row))), [rows, selection.search]);

	return <>
		<Above props={props} rows={rows} unit={chosen.unit}
			n={marked.size} />
		<Grid key={key} label={`Rows by ${KEY_NAMES[key]}`}
			columns={columns} rows={all}
			sort={view.sort} fallback="self"
			onSort={sort => go({ sort })}
			isMarked={row => marked.has(row)}
			isCurrent={row => key === "function" &&
				rows.id[row] === view.func} />
	</>;
}

