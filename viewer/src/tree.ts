/* SPDX-License-Identifier: MIT */
/*
 * tree.ts - selected stacks added up, as flame graphs and tables show them
 *
 * Node 0 is the root of all; a parent precedes its children, and children are
 * in the order of their function's name, so that two pictures can be compared.
 */

export interface Tree {
	n: number;
	unit: "ns" | "count";
	func: Uint32Array;	/* NONE: the root, or a thread's node */
	thread: Uint32Array;	/* of a thread's node; else NONE */
	parent: Uint32Array;
	firstChild: Uint32Array;	/* NONE: a leaf */
	nextSibling: Uint32Array;	/* NONE: the last */
	depth: Uint16Array;
	self: Float64Array;
	total: Float64Array;
	/* of these: blocked and preempted, where waits are among the events */
	waiting: Float64Array;
	/* of a comparison: change of total per unit of work; null: none */
	change: Float64Array | null;
	few?: Uint8Array;	/* too few samples of both sides for a verdict */
	/*
	 * In the order of time: where a node begins, in the unit.  Children
	 * are in that order then, and the same function may be among them
	 * again.
	 */
	begin?: Float64Array;
	/* callers are below their callees; self is of stacks that begin there */
	isInverted?: boolean;
	inlined: Uint8Array;
}
