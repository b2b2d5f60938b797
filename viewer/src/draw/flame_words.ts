/* SPDX-License-Identifier: MIT */
/* flame_words.ts - a frame in words: the tool tip, and for screen readers */
import { LAYERS, NONE, type Profile } from "../profile";
import { cut, formatChange, formatDifference, formatMean, formatPercent,
	 formatWeight, moduleOf, visible } from "../text";
import type { Tree } from "../tree";
import { changeOf } from "./flame_change";
import { nodeName } from "./flame_draw";

export interface Words {
	title: string;
	lines: string[];
}

const MAX_NAME = 2000;

function amounts(tree: Tree, node: number, zoomed: number): string[] {
	const { total, self, unit, waiting } = tree;
	const format = tree.change ? formatMean : formatWeight;
	const lines = [
		`total ${format(total[node]!, unit)}, ${formatPercent(
			total[node]!, total[0]!)} of all`,
		`self ${format(self[node]!, unit)}, ${formatPercent(
			self[node]!, total[0]!)}`,
	];

	if (zoomed && tree.depth[node]! > tree.depth[zoomed]!)
		lines.push(`${formatPercent(total[node]!, total[zoomed]!)} of ` +
			   "the frame in view");
	if (waiting[node])
		lines.push(`waiting ${format(waiting[node]!, unit)} of that`);
	return lines;
}

function changeLine(tree: Tree, node: number): string {
	const { ratio, sign } = changeOf(tree, node);
	const change = tree.change![node]!;

	return change === 0 ? "no change" : `${formatChange(ratio)}, ${
		formatDifference(change, tree.unit)}, A was ${formatMean(
		tree.total[node]! - change, tree.unit)}${sign === 0 ?
		": may be noise" : ""}`;
}

export function frameWords(profile: Profile, tree: Tree, node: number,
			   zoomed: number): Words {
	const func = tree.func[node]!, lines: string[] = [];
	const module = func === NONE ? "" : moduleOf(profile, func);

	if (func !== NONE)
		lines.push([LAYERS[profile.functions.layer[func]!],
			    tree.inlined[node] ? "inlined" : "",
			    cut(module, 300)].filter(Boolean).join(", "));
	lines.push(...amounts(tree, node, zoomed));
	if (tree.change)
		lines.push(changeLine(tree, node));
	return { title: cut(visible(nodeName(profile, tree, node)), MAX_NAME),
		 lines };
}

/* Callees of @node narrower than @least weight. */
export function restWords(tree: Tree, node: number, least: number): Words {
	let n = 0, sum = 0;

	for (let c = tree.firstChild[node]!; c !== NONE;
	     c = tree.nextSibling[c]!)
		if (tree.total[c]! < least) {
			n++;
			sum += tree.total[c]!;
		}
	return { title: `${n} smaller frame${n === 1 ? "" : "s"}`,
		 lines: [formatWeight(sum, tree.unit), "click to see them"] };
}
