/* SPDX-License-Identifier: MIT */
/*
 * flame_change.ts - the colour of a frame in a comparison
 *
 * As in 'seam diff': blue for less, orange for more, deeper from 5 % and from
 * 20 % on, grey where the change may be noise.
 */
import type { Tree } from "../tree";

export interface FrameChange {
	sign: -1 | 0 | 1;
	level: 0 | 1 | 2;
	ratio: number;		/* B to A, less 1; Infinity: new */
}

const LEVELS = [0.05, 0.2] as const;

/*
 * Without a column of noise a change of less than this share of all is grey:
 * a frame that narrow cannot explain what differs.
 */
const LEAST_SHARE = 0.002;

export function changeOf(tree: Tree, node: number): FrameChange {
	const change = tree.change![node]!, before = tree.total[node]! - change;
	const ratio = before > 0 ? change / before : change > 0 ? Infinity : 0;
	const size = Math.abs(ratio);
	const isNoise = tree.noise ? tree.noise[node] === 1 :
		Math.abs(change) < LEAST_SHARE * (tree.total[0] || 1);

	return {
		ratio, sign: isNoise || change === 0 ? 0 : change > 0 ? 1 : -1,
		level: size >= LEVELS[1] ? 2 : size >= LEVELS[0] ? 1 : 0,
	};
}
