/* SPDX-License-Identifier: MIT */
/*
 * grid.tsx - a table that sorts by its columns and grows on demand
 *
 * The first hundred rows are in the document; more are on request, so a
 * recording with 100,000 functions costs no more than one with a hundred.
 * Arrow keys move between the rows' buttons: one of them is a tab stop.
 */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatCount } from "../text";

export interface Column {
	id: string;
	head: string;
	title?: string;		/* what the figures are */
	value: (row: number) => number | string;	/* sorts */
	cell: (row: number) => ComponentChildren;
	isText?: boolean;	/* ascends first; to the left */
}

interface GridProps {
	label: string;
	columns: Column[];
	rows: number[];
	sort: string;		/* "self", or "-self" for the other direction */
	fallback: string;	/* column, where sort is none of them */
	onSort: (sort: string) => void;
	step?: number;		/* rows shown at first, and more each time */
	isMarked?: (row: number) => boolean;
	isCurrent?: (row: number) => boolean;
}

const STEP = 100;

function order(columns: Column[], rows: number[], column: Column,
	       reverse: boolean): number[] {
	const values = new Map(rows.map(row => [row, column.value(row)]));
	const tie = columns.find(c => c.isText) ?? column;
	const ascends = (column.isText === true) !== reverse;

	return [...rows].sort((a, b) => {
		const x = values.get(a)!, y = values.get(b)!;

		if (x !== y)
			return (x < y ? -1 : 1) * (ascends ? 1 : -1);
		const p = tie.value(a), q = tie.value(b);

		return p < q ? -1 : p > q ? 1 : a - b;
	});
}

/* Up, Down, Home and End among the first buttons of rows. */
function move(event: KeyboardEvent): void {
	const body = event.currentTarget as HTMLElement;
	const buttons = [...body.querySelectorAll<HTMLElement>("[data-row]")];
	const at = buttons.indexOf(document.activeElement as HTMLElement);
	const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0,
		     End: buttons.length - 1 }[event.key];

	if (at < 0 || to === undefined || !buttons[to])
		return;
	event.preventDefault();
	event.stopPropagation();
	for (const button of buttons)
		button.tabIndex = button === buttons[to] ? 0 : -1;
	buttons[to]!.focus();
}

function Head({ column, sorted, reverse, onSort }: { column: Column;
		sorted: boolean; reverse: boolean;
		onSort: (sort: string) => void }) {
	const direction = (column.isText === true) !== reverse ?
			  "ascending" : "descending";

	return <th scope="col" class={column.isText ? "text" : ""}
		aria-sort={sorted ? direction : undefined}>
		<button title={column.title} onClick={() => onSort(
			sorted && !reverse ? `-${column.id}` : column.id)}>
			{column.head}
			<span aria-hidden="true">{!sorted ? "" :
				direction === "ascending" ? " ▲" : " ▼"}</span>
		</button>
	</th>;
}

export function Grid(props: GridProps) {
	const { columns, rows, sort, onSort, step = STEP } = props;
	const [limit, setLimit] = useState(step);
	const reverse = sort.startsWith("-"), id = sort.replace(/^-/, "");
	const known = columns.find(c => c.id === id);
	const column = known ??
		       columns.find(c => c.id === props.fallback)!;
	const sorted = useMemo(() => order(columns, rows, column,
					   known ? reverse : false),
			       [columns, rows, column, reverse]);

	return <div class="grid" role="region" aria-label={props.label}
		tabIndex={0}>
		<table>
			<thead><tr>{columns.map(c => <Head key={c.id} column={c}
				sorted={c === column} onSort={onSort}
				reverse={c === known && reverse} />)}
			</tr></thead>
			<tbody onKeyDown={move}>
				{sorted.slice(0, limit).map(row => <tr key={row}
					class={props.isMarked?.(row) ?
						"marked" : ""}
					aria-current={props.isCurrent?.(row) ?
						"true" : undefined}>
					{columns.map(c => c.isText ?
						<th scope="row" class="text">
							{c.cell(row)}</th> :
						<td>{c.cell(row)}</td>)}
				</tr>)}
			</tbody>
		</table>
		{rows.length > limit && <p class="more">
			<button onClick={() => setLimit(limit + step)}>
				Show {Math.min(step, rows.length - limit)} more
			</button>{" "}
			{formatCount(limit)} of {formatCount(rows.length)} rows
		</p>}
		{!rows.length && <p class="empty">Nothing is selected here.</p>}
	</div>;
}
