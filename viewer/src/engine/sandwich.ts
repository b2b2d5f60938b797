/* SPDX-License-Identifier: MIT */
/*
 * sandwich.ts - callers and callees of a function, and callers of all
 *
 * As 'seam report --callers' and '--callees': the callers begin at the
 * innermost call of the function, the callees at the outermost, so that the
 * time of a recursive function counts once.  Functions of the same name are
 * the same function here.  Node 1 of each tree is the function.
 */
import { NONE } from "../profile";
import { pairPut, pairTable } from "./arrays";
import type { Chosen } from "./chosen";
import { nameRanks } from "./paths";
import { treeOf } from "./sums";
import { depthFirst, emptyTree, linkTree, type CountedTree }
	from "./tree_nodes";

export interface Sandwich {
	callers: CountedTree;
	callees: CountedTree;
}

interface Growing {
	parent: number[];
	key: number[];		/* func << 1 | inlined */
	self: number[];
	count: number[];
	waiting: number[];
	known: ReturnType<typeof pairTable>;
}

function growing(): Growing {
	return {
		parent: [NONE], key: [NONE], self: [0], count: [0],
		waiting: [0], known: pairTable(),
	};
}

/* The child of @parent with @key, added if there is none. */
function child(g: Growing, parent: number, key: number): number {
	const node = pairPut(g.known, parent, key, g.parent.length);

	if (node === g.parent.length) {
		g.parent.push(parent);
		g.key.push(key);
		g.self.push(0);
		g.count.push(0);
		g.waiting.push(0);
	}
	return node;
}

const keyOf = (tree: CountedTree, node: number) =>
	tree.func[node]! * 2 + tree.inlined[node]!;

/* What waits in the node itself. */
function ownWaiting(tree: CountedTree, node: number): number {
	let sum = tree.waiting[node]!;

	for (let c = tree.firstChild[node]!; c !== NONE;
	     c = tree.nextSibling[c]!)
		sum -= tree.waiting[c]!;
	return sum;
}

function addSelf(g: Growing, to: number, tree: CountedTree,
		 node: number): void {
	g.self[to]! += tree.self[node]!;
	g.count[to]! += tree.selfCount[node]!;
	g.waiting[to]! += ownWaiting(tree, node);
}

/* By node its innermost, and its outermost, ancestor or self of the name. */
function find(tree: CountedTree, is: Uint8Array):
		{ inner: Uint32Array; outer: Uint32Array } {
	const inner = new Uint32Array(tree.n).fill(NONE);
	const outer = new Uint32Array(tree.n).fill(NONE);

	for (let i = 1; i < tree.n; i++) {
		const parent = tree.parent[i]!;
		const here = tree.func[i] !== NONE && is[tree.func[i]!] === 1;

		inner[i] = here ? i : inner[parent]!;
		outer[i] = outer[parent] === NONE && here ? i : outer[parent]!;
	}
	return { inner, outer };
}

/* The node of the stack that ends in @node, its end first. */
function upwards(g: Growing, tree: CountedTree, node: number): number {
	let to = 0;

	for (let at = node; at > 0; at = tree.parent[at]!)
		to = child(g, to, keyOf(tree, at));
	return to;
}

function callersOf(tree: CountedTree, inner: Uint32Array): Growing {
	const g = growing(), path = new Uint32Array(tree.n);

	for (let i = 1; i < tree.n; i++) {
		if (inner[i] === NONE || (!tree.self[i] && !tree.selfCount[i]))
			continue;
		path[inner[i]!] ||= upwards(g, tree, inner[i]!);
		addSelf(g, path[inner[i]!]!, tree, i);
	}
	return g;
}

function calleesOf(tree: CountedTree, outer: Uint32Array): Growing {
	const g = growing(), path = new Uint32Array(tree.n);

	for (let i = 1; i < tree.n; i++) {
		if (outer[i] === NONE)
			continue;
		path[i] = child(g, outer[i] === i ? 0 : path[tree.parent[i]!]!,
				keyOf(tree, i));
		addSelf(g, path[i]!, tree, i);
	}
	return g;
}

/* With children by name, as src/tree.ts promises. */
function finish(chosen: Chosen, g: Growing): CountedTree {
	const n = g.parent.length, ranks = nameRanks(chosen.profile);
	const tree = emptyTree(n, chosen.unit), { key } = g;
	const { order, place } = depthFirst(g.parent, n, (a, b) =>
		ranks[key[a]! >>> 1]! - ranks[key[b]! >>> 1]! ||
		key[a]! - key[b]!);

	order.forEach((node, i) => {
		tree.self[i] = g.self[node]!;
		tree.selfCount[i] = g.count[node]!;
		tree.waiting[i] = g.waiting[node]!;
		if (i === 0)
			return;
		tree.parent[i] = place[g.parent[node]!]!;
		tree.func[i] = key[node]! >>> 1;
		tree.inlined[i] = key[node]! & 1;
	});
	linkTree(tree);
	return tree;
}

export function sandwichOf(chosen: Chosen, func: number): Sandwich {
	const { name } = chosen.profile.functions, tree = treeOf(chosen);
	const is = Uint8Array.from(name, text => text === name[func] ? 1 : 0);
	const { inner, outer } = find(tree, is);

	return {
		callers: { ...finish(chosen, callersOf(tree, inner)),
			   isInverted: true },
		callees: finish(chosen, calleesOf(tree, outer)),
	};
}

/* All stacks, their ends first: what used the time itself, then its callers. */
export function invertedOf(chosen: Chosen): CountedTree {
	const tree = treeOf(chosen), g = growing();

	for (let i = 0; i < tree.n; i++)
		if (tree.self[i] || tree.selfCount[i])
			addSelf(g, upwards(g, tree, i), tree, i);
	return { ...finish(chosen, g), isInverted: true };
}
