/* SPDX-License-Identifier: MIT */
/* command.ts - a selection as options of the program's commands */
import { LAYERS, type Profile } from "../profile";
import type { Selection } from "../select";

const quote = (text: string) => /^[\w@%+=:,./-]+$/.test(text) ? text :
	`'${text.replace(/'/g, `'\\''`)}'`;

/* "@12.000000345": a time of the recording's clock. */
function clock(profile: Profile, ns: number): string {
	const time = BigInt(profile.meta.startNs) + BigInt(Math.round(ns));
	const digits = time.toString().padStart(10, "0");

	return `@${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

/*
 * The options with the same meaning; null: no command has it, as of conditions
 * on calls, and of several threads.
 */
export function optionsOf(profile: Profile, s: Selection): string[] | null {
	const out: string[] = [];

	if (s.calls || (s.threads && s.threads.length !== 1) ||
	    s.module !== null)
		return null;
	if (s.from > 0 || s.to < Infinity)
		out.push(`--time=${clock(profile, s.from)},` +
			 (s.to < Infinity ? clock(profile, s.to) : ""));
	if (s.threads)
		out.push(`--thread=${profile.threads[s.threads[0]!]!.tid}`);
	if (s.layers)
		out.push(`--layer=${s.layers.map(i => LAYERS[i]).join(",")}`);
	if (s.events)
		out.push(`--event=${quote(s.events.map(i =>
			profile.events[i]!.name).join(","))}`);
	return out;
}

export function commandOf(profile: Profile, s: Selection, command: string):
		string | null {
	const options = optionsOf(profile, s);

	return options && ["seam", command, ...options,
			   quote(profile.meta.file)].join(" ");
}
