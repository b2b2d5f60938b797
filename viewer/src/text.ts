/* SPDX-License-Identifier: MIT */
/*
 * text.ts - numbers and names as people read them
 *
 * Numbers are those of the program's tables (src/report/view.c).  Names come
 * from the recorded program: characters that act on a terminal or turn the
 * direction of text become visible escapes, and no name is longer than a line.
 */
import { MARKED, type Profile } from "./profile";

type Scale = readonly [factor: number, unit: string];

const TIMES: Scale[] = [[1e9, " s"], [1e6, " ms"], [1e3, " us"], [1, " ns"]];
const COUNTS: Scale[] = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1, ""]];

/* Three significant digits, in the largest scale that is not above @value. */
function scaled(value: number, scales: Scale[]): string {
	const [factor, unit] = scales.find(([f]) => Math.abs(value) >= f) ??
			       scales[scales.length - 1]!;
	const shown = value / factor, size = Math.abs(shown);
	const digits = factor <= 1 || size >= 100 ? 0 : size >= 10 ? 1 : 2;

	return shown.toFixed(digits) + unit;
}

export const formatNs = (ns: number): string => scaled(ns, TIMES);

export const formatCount = (n: number): string =>
	Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");

export function formatWeight(weight: number, unit: "ns" | "count"): string {
	return unit === "ns" ? formatNs(weight) : Math.abs(weight) < 1e6 ?
	       formatCount(weight) : scaled(weight, COUNTS);
}

/* A mean, which may be a fraction of the unit. */
export function formatMean(value: number, unit: "ns" | "count"): string {
	return value === 0 || Math.abs(value) >= 100 || unit === "ns" &&
	       Math.abs(value) >= 1e3 ? formatWeight(value, unit) :
	       value.toPrecision(3) + (unit === "ns" ? " ns" : "");
}

export function formatPercent(part: number, whole: number): string {
	return (whole ? 100 * part / whole : 0).toFixed(2) + "%";
}

/* "+5.1%", "x 12" from tenfold on, "new", "gone" */
export function formatChange(change: number): string {
	return change === Infinity ? "new" : change === -1 ? "gone" :
	       change >= 9 ? `x ${(change + 1).toPrecision(3)}` :
	       `${change < 0 ? "\u2212" : "+"}${Math.abs(100 * change)
			.toFixed(1)}%`;
}

export function formatDifference(value: number, unit: "ns" | "count"): string {
	return (value < 0 ? "\u2212" : "+") + formatMean(Math.abs(value), unit);
}

/* Seconds since the start, with the digits that a range of @span ns needs. */
export function formatTime(ns: number, span: number): string {
	const digits = Math.min(9, Math.max(0,
		11 - Math.ceil(Math.log10(Math.max(span, 1)))));

	return (ns / 1e9).toFixed(digits) + " s";
}

const HOSTILE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const MAX_NAME = 4096;

/* @name with visible escapes: "\x1b", "\u202e". */
export function visible(name: string): string {
	const short = name.length > MAX_NAME ? cut(name, MAX_NAME) : name;

	return short.replace(HOSTILE, c => {
		const code = c.codePointAt(0)!, hex = code.toString(16);

		return code < 0x100 ? `\\x${hex.padStart(2, "0")}` :
		       code < 0x10000 ? `\\u${hex.padStart(4, "0")}` :
		       `\\u{${hex}}`;
	});
}

/* The beginning and the end of @name, at most @max characters. */
export function cut(name: string, max: number): string {
	if (name.length <= max)
		return name;
	const head = Math.ceil((max - 1) / 2), tail = max - 1 - head;

	return name.slice(0, head) + "\u2026" +
	       (tail ? name.slice(-tail) : "");
}

/* What to show where room is short; the title has the whole. */
export const shortName = (name: string): string => cut(visible(name), 120);

export function functionName(profile: Profile, func: number): string {
	return visible(profile.functions.name[func] ?? "[no stack]");
}

export const isMarked = (profile: Profile, func: number): boolean =>
	profile.functions.layer[func] === MARKED;

/* What is counted under the name of @func. */
export const nounOf = (profile: Profile, func: number): string =>
	isMarked(profile, func) ? "interval" : "call";

export function moduleOf(profile: Profile, func: number): string {
	const path = profile.modules.path[profile.functions.module[func] ?? 0];

	return visible((path ?? "").replace(/^.*\/(?=.)/s, ""));
}

export function plural(n: number, noun: string): string {
	return `${formatCount(n)} ${noun}${n === 1 ? "" : "s"}`;
}
