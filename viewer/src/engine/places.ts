/* SPDX-License-Identifier: MIT */
/*
 * places.ts - the chosen samples of a function by line and by instruction
 *
 * As 'seam annotate': self is what ended at the line, total what passed through
 * it, once a stack.
 */
import { NONE } from "../profile";
import type { Chosen } from "./chosen";

export interface Place {
	file: number;		/* index of files; NONE */
	line: number;
	addr: number;
	self: number;
	total: number;
}

/* Weights by stack of the profile, of all that is chosen. */
function weightsOf(chosen: Chosen): Float64Array {
	const { stack, weight } = chosen.profile.samples;
	const sums = new Float64Array(chosen.profile.stacks.n);

	for (const i of chosen.samples)
		sums[stack[i]!]! += weight[i]!;
	return sums;
}

/* Frames of @func on the stack, each once, the innermost first. */
function framesOf(chosen: Chosen, stack: number, func: number): number[] {
	const { stacks, frames } = chosen.profile, found: number[] = [];

	for (let at = stack; at; at = stacks.parent[at]!) {
		const frame = stacks.frame[at]!;

		if (frames.func[frame] === func && !found.includes(frame))
			found.push(frame);
	}
	return found;
}

/* By stack whether @func is on it. */
function stacksWith(chosen: Chosen, func: number): Uint8Array {
	const { stacks, frames } = chosen.profile;
	const has = new Uint8Array(stacks.n);

	for (let i = 1; i < stacks.n; i++)
		has[i] = has[stacks.parent[i]!]! ||
			 (frames.func[stacks.frame[i]!] === func ? 1 : 0);
	return has;
}

/* The places of @func; with @byAddress each address is one, else each line. */
export function placesOf(chosen: Chosen, func: number,
			 byAddress: boolean): Place[] {
	const { stacks, frames } = chosen.profile;
	const weights = weightsOf(chosen), has = stacksWith(chosen, func);
	const known = new Map<string, Place>();
	const keyOf = (frame: number) => byAddress ?
		String(frames.addr[frame]) :
		`${frames.file[frame]} ${frames.line[frame]}`;
	const placeOf = (frame: number): Place => {
		const key = keyOf(frame);
		let place = known.get(key);

		if (!place)
			known.set(key, place = {
				file: frames.line[frame] ? frames.file[frame]! :
				      NONE,
				line: frames.line[frame]!,
				addr: frames.addr[frame]!, self: 0, total: 0,
			});
		return place;
	};

	for (let i = 1; i < stacks.n; i++) {
		if (!has[i] || !weights[i])
			continue;
		const leaf = stacks.frame[i]!;

		if (frames.func[leaf] === func)
			placeOf(leaf).self += weights[i]!;
		for (const place of new Set(framesOf(chosen, i, func)
					    .map(placeOf)))
			place.total += weights[i]!;
	}
	return [...known.values()];
}
