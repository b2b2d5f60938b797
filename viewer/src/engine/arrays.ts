/* SPDX-License-Identifier: MIT */
/* arrays.ts - searches in typed arrays, and numbers for pairs of numbers */
import { NONE } from "../profile";

interface Numbers {
	readonly length: number;
	readonly [i: number]: number;
}

/* The first index of [lo, hi) whose value is at least @value; else @hi. */
export function lowerBound(values: Numbers, value: number,
			   lo = 0, hi = values.length): number {
	while (lo < hi) {
		const middle = (lo + hi) >>> 1;

		if (values[middle]! < value)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/*
 * A hash table from pairs of 32-bit numbers to a number.  A Map of combined
 * keys takes five times as long for a million pairs.
 */
export interface PairTable {
	n: number;
	slots: Uint32Array;	/* triples; the third is value + 1, 0: free */
}

export function pairTable(expected = 16): PairTable {
	let cap = 16;

	while (cap < 2 * expected)
		cap *= 2;
	return { n: 0, slots: new Uint32Array(3 * cap) };
}

function slotOf(slots: Uint32Array, a: number, b: number): number {
	const mask = slots.length / 3 - 1;
	let h = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b);

	h ^= h >>> 15;
	for (let i = h & mask;; i = i + 1 & mask) {
		const at = 3 * i;

		if (slots[at + 2] === 0 ||
		    (slots[at] === a && slots[at + 1] === b))
			return at;
	}
}

/* The value of the pair; NONE: it has none. */
export function pairGet(table: PairTable, a: number, b: number): number {
	const value = table.slots[slotOf(table.slots, a, b) + 2]!;

	return value === 0 ? NONE : value - 1;
}

/* The value of the pair, which is @value if it had none. */
export function pairPut(table: PairTable, a: number, b: number,
			value: number): number {
	const at = slotOf(table.slots, a, b), old = table.slots[at + 2]!;

	if (old !== 0)
		return old - 1;
	table.slots[at] = a;
	table.slots[at + 1] = b;
	table.slots[at + 2] = value + 1;
	if (2 * ++table.n > table.slots.length / 3)
		grow(table);
	return value;
}

function grow(table: PairTable): void {
	const old = table.slots, slots = new Uint32Array(2 * old.length);

	for (let i = 0; i < old.length; i += 3) {
		if (old[i + 2] === 0)
			continue;
		const at = slotOf(slots, old[i]!, old[i + 1]!);

		slots[at] = old[i]!;
		slots[at + 1] = old[i + 1]!;
		slots[at + 2] = old[i + 2]!;
	}
	table.slots = slots;
}

/*
 * Rows 0 to @n - 1 by a key below @nKeys: rows of key k are
 * rows[start[k]] to rows[start[k + 1] - 1], in their order.
 */
export interface ByKey {
	start: Uint32Array;
	rows: Uint32Array;
}

/* Rows whose key is not below @nKeys are left out. */
export function byKey(keys: Numbers, n: number, nKeys: number): ByKey {
	const start = new Uint32Array(nKeys + 1);
	let kept = 0;

	for (let i = 0; i < n; i++)
		if (keys[i]! < nKeys) {
			start[keys[i]! + 1]!++;
			kept++;
		}
	for (let k = 0; k < nKeys; k++)
		start[k + 1]! += start[k]!;
	const next = start.slice(0, nKeys), rows = new Uint32Array(kept);

	for (let i = 0; i < n; i++)
		if (keys[i]! < nKeys)
			rows[next[keys[i]!]!++] = i;
	return { start, rows };
}

/* What @make returns for an object, made once and kept as long as it. */
export function memo<K extends object, V>(make: (key: K) => V):
		(key: K) => V {
	const known = new WeakMap<K, { value: V }>();

	return key => {
		let entry = known.get(key);

		if (!entry)
			known.set(key, entry = { value: make(key) });
		return entry.value;
	};
}
