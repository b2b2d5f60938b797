/* SPDX-License-Identifier: MIT */
/* flame_text.ts - what a frame of a flame graph is, in words */
import { threadName } from "../engine/rows";
import { LAYERS, NONE, type Profile } from "../profile";
import {
	cut, formatChange, formatMean, formatPercent, formatWeight, functionName,
	moduleOf, plural, visible,
} from "../text";
import type { Tree } from "../tree";

export interface FrameText {
	title: string;
	lines: string[];
}

const MAX_TITLE = 1000;

/* The name of a node, of the program: to be escaped. */
export function nodeName(profile: Profile, tree: Tree, node: number): string {
	const func = tree.func[node]!, thread = tree.thread[node]!;

	return node === 0 ? "all" :
	       thread !== NONE ? threadName(profile, thread) :
	       func === NONE ? "[no stack]" : profile.functions.name[func]!;
}

function amount(tree: Tree, value: number): string {
	return tree.change ? formatMean(value, tree.unit) :
	       formatWeight(value, tree.unit);
}

/* "A 12 ms, change +5.1%" */
function changeText(tree: Tree, node: number): string {
	const b = tree.total[node]!, a = b - tree.change![node]!;
	const least = 1e-9 * Math.max(a, b);

	return `A ${amount(tree, Math.max(0, a))}, change ${
		formatChange(a <= least ? Infinity : b / a - 1)}${
		tree.few?.[node] ? ", few samples" : ""}`;
}

function placeText(profile: Profile, tree: Tree, node: number): string {
	const func = tree.func[node]!;

	if (func === NONE)
		return "";
	return [LAYERS[profile.functions.layer[func]!]! +
		(tree.inlined[node] ? ", inlined" : ""),
		cut(moduleOf(profile, func), 200)].filter(Boolean).join(" · ");
}

/* @top is the frame with all of the width. */
export function frameText(profile: Profile, tree: Tree, node: number,
			  top: number): FrameText {
	const total = tree.total[node]!, waiting = tree.waiting[node]!;
	const share = top && tree.total[top]! >= total ? `, ${formatPercent(
		total, tree.total[top]!)} of what is shown` : "";
	const func = tree.func[node]!;

	return {
		title: cut(func === NONE ? visible(nodeName(profile, tree,
			node)) : functionName(profile, func), MAX_TITLE),
		lines: [
			placeText(profile, tree, node),
			`total ${amount(tree, total)}, ${formatPercent(total,
				tree.total[0]!)} of all${share}`,
			tree.isInverted ? "" :
				`self ${amount(tree, tree.self[node]!)}`,
			waiting > 0 ? `waiting ${amount(tree, waiting)}` : "",
			tree.change ? changeText(tree, node) : "",
		].filter(Boolean),
	};
}

/* The stack of @node, a frame a line, innermost first. */
export function stackText(profile: Profile, tree: Tree, node: number): string {
	const lines: string[] = [];

	for (let at = node; at > 0; at = tree.parent[at]!) {
		const func = tree.func[at]!;

		lines.push(func === NONE ? visible(nodeName(profile, tree, at)) :
			[cut(functionName(profile, func), MAX_TITLE),
			 placeText(profile, tree, at)].join("  "));
	}
	return (tree.isInverted ? lines.reverse() : lines).join("\n");
}

/* Frames that are too narrow to be drawn: @n callees of one frame. */
export function restText(profile: Profile, tree: Tree, first: number,
			 n: number): FrameText {
	let total = 0, at = first;

	for (let i = 0; i < n && at !== NONE; at = tree.nextSibling[at]!)
		if (tree.total[at]! > 0) {
			total += tree.total[at]!;
			i++;
		}
	return {
		title: plural(n, "smaller frame"),
		lines: [`called by ${cut(visible(nodeName(profile, tree,
			tree.parent[first]!)), 200)}`,
			`total ${amount(tree, total)}, ${formatPercent(total,
				tree.total[0]!)} of all`],
	};
}
