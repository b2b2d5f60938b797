/* SPDX-License-Identifier: MIT */
/* flame.test.ts - layouts of flame graphs: what is seen, and what it adds up to */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	beside, boxAt, boxOf, foundIn, layOut, rowsIn, sameNode, siblings,
	widestCallee, type Layout,
} from "../draw/flame_layout";
import { stackText } from "../draw/flame_text";
import { choose } from "../engine/chosen";
import { treeInTime } from "../engine/in_time";
import { invertedOf } from "../engine/sandwich";
import { treeByThread, treeOf } from "../engine/sums";
import { emptyTree, linkTree } from "../engine/tree_nodes";
import { NONE } from "../profile";
import { ALL } from "../select";
import type { Tree } from "../tree";
import { smallProfile } from "./small";
import { randomOf } from "./synthetic";

const EPSILON = 1e-6;		/* pixels: sums of doubles */

/* A tree of @n nodes, each with a caller among those before. */
function randomTree(n: number, seed: number, deep: number): Tree {
	const random = randomOf(seed), tree = emptyTree(n, "ns");

	for (let i = 0; i < n; i++) {
		tree.self[i] = random() < 0.3 ? 0 : Math.floor(random() * 1000);
		if (!i)
			continue;
		tree.func[i] = i;
		tree.parent[i] = random() < deep ? i - 1 :
				 Math.floor(random() * i);
	}
	linkTree(tree);
	return tree;
}

const widthOf = (l: Layout, box: number) => l.right[box]! - l.left[box]!;

/* By node the width of its callees' boxes. */
function calleeWidths(l: Layout): Float64Array {
	const sums = new Float64Array(l.tree.n);

	for (let box = 0; box < l.node.length; box++) {
		const parent = l.tree.parent[l.node[box]!]!;

		if (parent !== NONE)
			sums[parent]! += widthOf(l, box);
	}
	return sums;
}

const TREES = [[40, 1, 0.2], [3000, 2, 0.5], [3000, 3, 0.99],
	       [20000, 4, 0]] as const;

test("callees, with the smaller ones, have the caller's total less self",
     () => {
	for (const [n, seed, deep] of TREES) {
		const tree = randomTree(n, seed, deep);
		const l = layOut(tree, 0, 800), sums = calleeWidths(l);

		for (let box = 0; box < l.node.length; box++) {
			const node = l.node[box]!;
			const below = tree.total[node]! - tree.self[node]!;

			if (l.rest[box])
				continue;
			assert.ok(Math.abs(sums[node]! - 800 * below /
				tree.total[0]!) < EPSILON, `node ${node}`);
			assert.ok(sums[node]! <= widthOf(l, box) + EPSILON);
		}
	}
});

test("a frame is seen from one pixel on, and no smaller one is", () => {
	for (const [n, seed, deep] of TREES) {
		const tree = randomTree(n, seed, deep);
		const l = layOut(tree, 0, 500);
		const seen = new Set(l.node.filter((_, box) => !l.rest[box]));

		for (let i = 0; i < n; i++)
			assert.equal(seen.has(i), tree.total[i]! *
				     (500 / tree.total[0]!) >= 1, `node ${i}`);
	}
});

test("boxes of a row are in order and do not overlap", () => {
	for (const [n, seed, deep] of TREES) {
		const l = layOut(randomTree(n, seed, deep), 0, 800);

		for (let row = 0; row < rowsIn(l); row++) {
			assert.ok(l.start[row]! < l.start[row + 1]!, "no row " +
				  "is empty");
			for (let b = l.start[row]!; b < l.start[row + 1]!; b++) {
				assert.equal(l.tree.depth[l.node[b]!], row);
				assert.ok(l.left[b]! <= l.right[b]!);
				assert.ok(b === l.start[row]! || l.right[b - 1]! <=
					  l.left[b]! + EPSILON);
			}
		}
	}
});

test("callers of the frame that is shown have all of the width", () => {
	const tree = randomTree(3000, 2, 0.9);
	const top = widestCallee(layOut(tree, 0, 800),
		widestCallee(layOut(tree, 0, 800), 0));
	const l = layOut(tree, top, 800);

	assert.ok(top !== NONE);
	for (let at = top; at !== NONE; at = tree.parent[at]!)
		assert.equal(widthOf(l, boxOf(l, at)), 800);
	for (let row = 0; row <= tree.depth[top]!; row++)
		assert.equal(l.start[row + 1]! - l.start[row]!, 1);
});

const profile = smallProfile({ samples: [
	"main;a;f", "main;a;g", "main;a;g", "main;b;f", "main;b;f;f", "main",
].map((stack, i) => ({ time: i, stack, thread: i % 2 })),
	threads: ["one", "two"] });
const small = treeOf(choose(profile, ALL));
const node = (path: string, tree: Tree = small) => path.split(";").reduce(
	(at, name) => {
		let c = tree.firstChild[at]!;

		while (profile.functions.name[tree.func[c]!] !== name)
			c = tree.nextSibling[c]!;
		return c;
	}, 0);

test("frames are found by place, and from frame to frame", () => {
	const l = layOut(small, 0, 600);

	assert.equal(l.node[boxAt(l, 2, 0)], node("main;a"));
	assert.equal(l.node[boxAt(l, 2, 299)], node("main;a"));
	assert.equal(l.node[boxAt(l, 2, 300)], node("main;b"));
	assert.equal(boxAt(l, 2, 550), -1, "self of main");
	assert.equal(boxAt(l, 9, 10), -1);
	assert.equal(boxAt(l, -1, 10), -1);
	assert.equal(beside(l, node("main;a"), 1), node("main;b"));
	assert.equal(beside(l, node("main;a"), -1), NONE);
	assert.equal(beside(l, node("main;a;g"), 1), node("main;b;f"));
	assert.equal(widestCallee(l, node("main;a")), node("main;a;g"));
	assert.equal(widestCallee(l, node("main;a;f")), NONE);
	assert.deepEqual(siblings(l, node("main;b")),
			 [node("main;a"), node("main;b")]);
});

test("in the order of time frames are where they begin", () => {
	const p = smallProfile({ samples: ["main;a", "main", "main;a", "main;b",
		"main"].map((stack, time) => ({ stack, time })) });
	const { tree } = treeInTime(choose(p, ALL));
	const whole = layOut(tree, 0, 500);
	const boxes = (l: Layout, row: number) => l.node.map((node, box) =>
		[node, l.left[box], l.right[box]]).slice(l.start[row],
							 l.start[row + 1]);
	const first = tree.firstChild[tree.firstChild[tree.firstChild[0]!]!]!;

	assert.deepEqual(boxes(whole, 3), [[first, 0, 100],
		[first + 1, 200, 300], [first + 2, 300, 400]]);
	/* zoomed: the second a alone */
	assert.deepEqual(boxes(layOut(tree, first + 1, 500), 3),
			 [[first + 1, 0, 500]]);
});

test("a stack as text is innermost first, of an inverted tree too", () => {
	const text = "g  native · native\na  native · native\n" +
		     "main  native · native";
	const inverted = invertedOf(choose(profile, ALL));

	assert.equal(stackText(profile, small, node("main;a;g")), text);
	assert.equal(stackText(profile, inverted, node("g;a;main", inverted)),
		     text);
});

test("a search counts a stack once, recursion too", () => {
	const found = (name: string) => foundIn(small, Uint8Array.from(
		profile.functions.name, other => other === name ? 1 : 0));

	assert.deepEqual(found("f"), { total: 30, frames: 3 });
	assert.deepEqual(found("main"), { total: 60, frames: 1 });
	assert.deepEqual(found("nothing"), { total: 0, frames: 0 });
});

test("a zoom goes on in another tree where the functions are there", () => {
	const one = treeOf(choose(profile, { ...ALL, threads: [0] }));
	const threads = treeByThread(choose(profile, ALL));

	assert.equal(sameNode(small, node("main;b;f;f"), one),
		     node("main;b;f;f", one));
	assert.equal(sameNode(small, node("main;b;f"), small),
		     node("main;b;f"));
	assert.equal(sameNode(small, node("main;a;g"), threads), 0);
});
