/* SPDX-License-Identifier: MIT */
/* time_scene.ts - what a picture of the time line is made of */
import type { Profile } from "../profile";
import type { Selection } from "../select";
import type { Labels } from "./labels";
import type { Spans } from "./spans";
import type { TimeBands, TimeBase } from "./time_index";
import type { Track } from "./tracks";

/* In CSS pixels, from the canvas's upper edge. */
export const OVERVIEW = 36;
export const AXIS = 22;
export const TOP = OVERVIEW + AXIS;

export interface Range {
	from: number;		/* ns */
	to: number;
}

export interface Scene {
	profile: Profile;
	base: TimeBase;
	bands: TimeBands;
	tracks: Track[];
	view: Range;
	selection: Selection;
	drag: Range | null;	/* that is being selected */
	scrollTop: number;	/* CSS pixels */
	current: number;	/* chosen track; -1: none */
	hasFocus: boolean;
	showWakers: boolean;
	found: Uint8Array | null;	/* by function; null: no search */
	/* by thread the calls of selection.calls; null: there is no such */
	inside: Spans | null;
}

/* Names cut to pixels, for one font. */
export interface TimeLabels {
	track: Labels;
	func: Labels;
	word: Labels;
}

/* Width of the names of tracks, in CSS pixels. */
export const gutterOf = (width: number): number =>
	Math.round(Math.max(76, Math.min(170, width * 0.2)));

export const durationOf = (profile: Profile): number =>
	Math.max(1, profile.meta.durationNs);

const LEAST_RANGE = 200;	/* ns */

/* @range moved and cut to fit into the recording. */
export function clampRange(profile: Profile, range: Range): Range {
	const whole = durationOf(profile);
	const size = Math.min(whole, Math.max(LEAST_RANGE, range.to - range.from));
	const middle = (range.from + range.to) / 2;
	const from = Math.min(Math.max(0, middle - size / 2), whole - size);

	return { from, to: from + size };
}

const OPEN_AT_ROOM = 50e6;	/* ns before and after a trigger's moment */

/*
 * What to show at first: the selection, a trigger's moment with the call that
 * ended then, or all.
 */
export function firstRange(profile: Profile, selection: Selection): Range {
	const whole = durationOf(profile);
	const { openAtNs, openForNs } = profile.meta;
	const to = Math.min(selection.to, whole);

	if (selection.from > 0 || selection.to < whole) {
		const room = 0.15 * Math.max(1, to - selection.from);

		return clampRange(profile, { from: selection.from - room,
					     to: to + room });
	}
	return openAtNs < 0 ? { from: 0, to: whole } :
	       clampRange(profile, {
			from: openAtNs - Math.max(OPEN_AT_ROOM, 1.2 * openForNs),
			to: openAtNs + OPEN_AT_ROOM,
	       });
}

export function zoomRange(profile: Profile, range: Range, at: number,
			  factor: number): Range {
	const size = Math.max(LEAST_RANGE, (range.to - range.from) * factor);
	const share = (at - range.from) / (range.to - range.from);

	return clampRange(profile, { from: at - share * size,
				     to: at - share * size + size });
}

export function panRange(profile: Profile, range: Range, ns: number): Range {
	return clampRange(profile, { from: range.from + ns,
				     to: range.to + ns });
}

/* A step of 1, 2 or 5 times a power of ten, at least @least. */
export function niceStep(least: number): number {
	const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));

	return [1, 2, 5, 10].map(n => n * power).find(n => n >= least) ??
	       10 * power;
}

/* "1.25 s" with the digits that ticks of @step ns need. */
export function tickText(ns: number, step: number): string {
	const digits = Math.min(9, Math.max(0, 9 - Math.floor(
		Math.log10(Math.max(1, step)) + 1e-9)));

	return `${(ns / 1e9).toFixed(digits)} s`;
}
