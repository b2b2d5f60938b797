/* SPDX-License-Identifier: MIT */
/*
 * select.ts - the one selection that holds in every view
 *
 * A selection is a value: views get one and a function that asks for another.
 * It is in the URL's hash, so a link or Back restores it.
 */

export interface Selection {
	from: number;		/* ns since the start, inclusive */
	to: number;		/* exclusive; Infinity: the end */
	threads: number[] | null;	/* indices; null: all */
	layers: number[] | null;	/* of LAYERS: other frames are left out */
	events: number[] | null;	/* null: the main event of a view */
	module: number | null;		/* only stacks with a frame of it */
	search: string;			/* highlights; never leaves rows out */
	/*
	 * Only what ran on the thread inside calls of a function that lasted
	 * from min to max ns: a conditioned view.
	 */
	calls: { func: number; min: number; max: number } | null;
}

export const ALL: Selection = {
	from: 0, to: Infinity, threads: null, layers: null, events: null,
	module: null, search: "", calls: null,
};
