/* SPDX-License-Identifier: MIT */
/*
 * tree_table.tsx - a call tree as rows that open and close
 *
 * A treegrid: Up and Down move, Right opens, Left closes or goes to the caller.
 * The widest path is open at first.
 */
import { useMemo, useState } from "preact/hooks";
import type { CountedTree } from "../engine/tree_nodes";
import { NONE, type Profile } from "../profile";
import { nodeName } from "../draw/flame_text";
import { formatPercent, formatWeight, shortName } from "../text";
import { FunctionButton, Share } from "./names";

const MAX_ROWS = 400;
const MAX_INDENT = 24;		/* levels; deeper ones: the same */
const OPEN_SHARE = 0.5;		/* of the whole: opened at first */

function children(tree: CountedTree, node: number): number[] {
	const found: number[] = [];

	for (let c = tree.firstChild[node]!; c !== NONE;
	     c = tree.nextSibling[c]!)
		found.push(c);
	return found.sort((a, b) => tree.total[b]! - tree.total[a]! || a - b);
}

function firstOpen(tree: CountedTree, root: number): Set<number> {
	const open = new Set([root]), whole = tree.total[root]!;
	let node = root;

	for (let depth = 0; depth < 40; depth++) {
		const next = children(tree, node)[0];

		if (next === undefined ||
		    tree.total[next]! < OPEN_SHARE * whole)
			break;
		open.add(next);
		node = next;
	}
	return open;
}

function visibleRows(tree: CountedTree, root: number, open: Set<number>):
		number[] {
	const rows: number[] = [], stack = [root];

	while (stack.length && rows.length < MAX_ROWS) {
		const node = stack.pop()!;

		rows.push(node);
		if (open.has(node))
			stack.push(...children(tree, node).reverse());
	}
	return rows;
}

function focusRow(from: HTMLElement, to: Element | null | undefined): void {
	const button = to?.querySelector<HTMLElement>("button.link");

	if (!button)
		return;
	for (const other of from.closest("tbody")!
			.querySelectorAll<HTMLElement>("button.link"))
		other.tabIndex = -1;
	button.tabIndex = 0;
	button.focus();
}

interface TreeTableProps {
	profile: Profile;
	tree: CountedTree;
	root: number;
	label: string;
	onOpen: (func: number) => void;
}

export function TreeTable({ profile, tree, root, label, onOpen }:
			  TreeTableProps) {
	const [state, setState] = useState<{ tree: CountedTree;
					     open: Set<number> } | null>(null);
	const first = useMemo(() => firstOpen(tree, root), [tree, root]);
	const open = state?.tree === tree ? state.open : first;
	const rows = useMemo(() => visibleRows(tree, root, open),
			     [tree, root, open]);
	const whole = tree.total[root]!;
	const top = tree.depth[root]!;

	const toggle = (node: number, to: boolean) => {
		const next = new Set(open);

		if (to)
			next.add(node);
		else
			next.delete(node);
		setState({ tree, open: next });
	};
	const onKey = (event: KeyboardEvent) => {
		const at = event.target as HTMLElement;
		const row = at.closest("tr"), node = Number(row?.dataset.node);
		const isOpen = open.has(node);
		const has = tree.firstChild[node] !== NONE;

		if (!row || !at.matches("button.link"))
			return;
		if (event.key === "ArrowDown")
			focusRow(at, row.nextElementSibling);
		else if (event.key === "ArrowUp")
			focusRow(at, row.previousElementSibling);
		else if (event.key === "ArrowRight" && has && !isOpen)
			toggle(node, true);
		else if (event.key === "ArrowLeft" && has && isOpen)
			toggle(node, false);
		else if (event.key === "ArrowLeft")
			focusRow(at, row.parentElement!.querySelector(
				`[data-node="${tree.parent[node]}"]`));
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	};

	return <div class="grid" role="region" aria-label={label} tabIndex={0}>
		<table role="treegrid" aria-label={`${label} as a tree`}>
			<thead><tr role="row">
				<th role="columnheader" class="text">
					Function</th>
				<th role="columnheader">Total</th>
				<th role="columnheader">%</th>
				{!tree.isInverted &&
					<th role="columnheader">Self</th>}
			</tr></thead>
			<tbody onKeyDown={onKey}>{rows.map(node =>
				<tr role="row" key={node} data-node={node}
					aria-level={tree.depth[node]! - top + 1}
					aria-expanded={tree.firstChild[node] ===
						NONE ? undefined :
						open.has(node)}>
				<td role="gridcell" class="text" style={{
					paddingLeft: `${Math.min(MAX_INDENT,
						tree.depth[node]! - top) * 0.9 +
						0.4}em` }}>
					{tree.firstChild[node] === NONE ?
						<span class="twist" /> :
						<button class="twist"
						tabIndex={-1}
						aria-label={open.has(node) ?
							"Close" : "Open"}
						onClick={() => toggle(node,
							!open.has(node))}>
						{open.has(node) ? "▾" : "▸"}
						</button>}
					{tree.func[node] === NONE ?
						<button class="link" onClick={
						() => toggle(node,
							!open.has(node))}>
						{shortName(nodeName(profile,
							tree, node))}</button> :
						<FunctionButton profile={profile}
						func={tree.func[node]!}
						onOpen={onOpen} />}
				</td>
				<td role="gridcell"><Share whole={whole}
					part={tree.total[node]!}
					text={formatWeight(tree.total[node]!,
						tree.unit)} /></td>
				<td role="gridcell">{formatPercent(
					tree.total[node]!, whole)}</td>
				{!tree.isInverted && <td role="gridcell">{
					formatWeight(tree.self[node]!,
						     tree.unit)}</td>}
			</tr>)}</tbody>
		</table>
		{rows.length === MAX_ROWS && <p class="more">
			More rows are open than can be shown.</p>}
	</div>;
}
