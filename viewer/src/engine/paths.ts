/* SPDX-License-Identifier: MIT */
/*
 * paths.ts - stacks as paths of functions, without the layers left out
 *
 * Frames of one function under one path are one path, as in a flame graph;
 * inlined calls are paths of their own.  Paths are numbered depth first,
 * children by name: the sum of a subtree is a loop over a range, and a
 * selection's tree needs no sort.  They depend on the layers alone, so a change
 * of the time range makes none.
 */
import { LAYERS, NONE, type Profile } from "../profile";
import { memo, pairGet, pairPut, pairTable, type PairTable } from "./arrays";
import { depthFirst } from "./tree_nodes";

export interface Paths {
	n: number;		/* path 0 is the empty one */
	of: Uint32Array;	/* by stack of the profile */
	parent: Uint32Array;	/* NONE of path 0 */
	func: Uint32Array;	/* NONE of path 0 */
	inlined: Uint8Array;
	depth: Uint16Array;
	end: Uint32Array;	/* the first path after the subtree */
	leavesOut: boolean;	/* samples of path 0 do not count */
	/* the path of (parent, func << 1 | inlined) */
	known: PairTable;
}

/* By function its place in the order of names; equal ones by module, layer. */
export const nameRanks = memo((profile: Profile): Uint32Array => {
	const { name, module, layer, n } = profile.functions;
	const order = Uint32Array.from({ length: n }, (_, i) => i);
	const ranks = new Uint32Array(n);

	order.sort((a, b) => name[a]! < name[b]! ? -1 :
		   name[a]! > name[b]! ? 1 :
		   module[a]! - module[b]! || layer[a]! - layer[b]! || a - b);
	order.forEach((func, rank) => { ranks[func] = rank; });
	return ranks;
});

/* As Paths, numbered in the order of stacks. */
interface Found {
	n: number;
	of: Uint32Array;
	parent: Uint32Array;
	key: Uint32Array;	/* func << 1 | inlined */
}

function find(profile: Profile, hasLayer: boolean[]): Found {
	const { stacks, frames, functions } = profile;
	const table = pairTable(stacks.n);
	const found = {
		n: 1, of: new Uint32Array(stacks.n),
		parent: new Uint32Array(stacks.n),
		key: new Uint32Array(stacks.n),
	};

	found.parent[0] = found.key[0] = NONE;
	for (let i = 1; i < stacks.n; i++) {
		const parent = found.of[stacks.parent[i]!]!;
		const frame = stacks.frame[i]!, func = frames.func[frame]!;
		const key = func * 2 + frames.inlined[frame]!;

		if (!hasLayer[functions.layer[func]!]) {
			found.of[i] = parent;
			continue;
		}
		const path = pairPut(table, parent, key, found.n);

		if (path === found.n) {
			found.parent[path] = parent;
			found.key[path] = key;
			found.n++;
		}
		found.of[i] = path;
	}
	return found;
}

/* By found path its number, depth first, children by name. */
function numberDown(profile: Profile, found: Found): Uint32Array {
	const ranks = nameRanks(profile), { key } = found;

	return depthFirst(found.parent, found.n, (a, b) =>
		ranks[key[a]! >>> 1]! - ranks[key[b]! >>> 1]! ||
		key[a]! - key[b]!).place;
}

function renumber(found: Found, numbers: Uint32Array,
		  leavesOut: boolean): Paths {
	const n = found.n;
	const paths: Paths = {
		n, leavesOut, of: found.of.map(path => numbers[path]!),
		parent: new Uint32Array(n).fill(NONE),
		func: new Uint32Array(n).fill(NONE),
		inlined: new Uint8Array(n), depth: new Uint16Array(n),
		end: new Uint32Array(n), known: pairTable(n),
	};

	for (let i = 1; i < n; i++) {
		const path = numbers[i]!, key = found.key[i]!;
		const parent = numbers[found.parent[i]!]!;

		paths.parent[path] = parent;
		paths.func[path] = key >>> 1;
		paths.inlined[path] = key & 1;
		pairPut(paths.known, parent, key, path);
	}
	for (let i = 1; i < n; i++)
		paths.depth[i] = paths.depth[paths.parent[i]!]! + 1;
	for (let i = n; i-- > 0;) {
		const parent = paths.parent[i]!;

		paths.end[i] = Math.max(paths.end[i]!, i + 1);
		if (i)
			paths.end[parent] = Math.max(paths.end[parent]!,
						     paths.end[i]!);
	}
	return paths;
}

const knownPaths = memo((_profile: Profile) => new Map<number, Paths>());

/* The paths of @layers (null: all); made once for each set of layers. */
export function pathsOf(profile: Profile, layers: number[] | null): Paths {
	const hasLayer = LAYERS.map((_, i) => !layers || layers.includes(i));
	const bits = hasLayer.reduce((sum, has, i) => sum + (has ? 1 << i : 0),
				     0);
	const known = knownPaths(profile);
	let paths = known.get(bits);

	if (!paths) {
		const found = find(profile, hasLayer);

		paths = renumber(found, numberDown(profile, found),
				 hasLayer.includes(false));
		known.set(bits, paths);
	}
	return paths;
}

/*
 * By path whether no caller in it has the same key: where the time of a key is
 * counted, so that a recursive function counts once a stack.  @keys are by
 * function; NONE is no key.
 */
export function outermost(paths: Paths, keys: Uint32Array,
			  nKeys: number): Uint8Array {
	const flags = new Uint8Array(paths.n), open = new Uint32Array(nKeys);
	const stack: number[] = [];

	for (let i = 1; i < paths.n; i++) {
		const key = keys[paths.func[i]!]!;

		while (stack.length && paths.end[stack[stack.length - 1]!]! <= i)
			close(open, keys, paths, stack.pop()!);
		stack.push(i);
		if (key !== NONE)
			flags[i] = open[key]!++ === 0 ? 1 : 0;
	}
	return flags;
}

function close(open: Uint32Array, keys: Uint32Array, paths: Paths,
	       path: number): void {
	const key = keys[paths.func[path]!]!;

	if (key !== NONE)
		open[key]!--;
}

/* The path below @parent of an ordinary call of @func; 0: there is none. */
export function pathBelow(paths: Paths, parent: number, func: number): number {
	const path = pairGet(paths.known, parent, func * 2);

	return path === NONE ? 0 : path;
}
