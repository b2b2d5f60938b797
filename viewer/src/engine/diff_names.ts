/* SPDX-License-Identifier: MIT */
/*
 * diff_names.ts - what a function and a module are called in every build
 *
 * The rules, and their sources, are those of src/report/diff/diff_names.h: a
 * comparison in the page must match what 'seam diff' matches.
 */
import { LAYERS } from "../profile";

/* .isra.0, .part.0, .cold ...; several may follow each other. */
const CLONE = /\.(isra|constprop|part|cold|lto_priv|llvm|__uniq)(\.\d+)?$/;
const PART = /^(part|cold)$/;

interface Name {
	name: string;
	isPart: boolean;	/* the function is a part of another one */
}

function nativeName(name: string): Name {
	const at = name.indexOf("@");
	let isPart = false;

	if (at > 0 && !name.startsWith("@plt", at))
		name = name.slice(0, at);
	for (let m = CLONE.exec(name); m && m.index > 0; m = CLONE.exec(name)) {
		isPart ||= PART.test(m[1]!);
		name = name.slice(0, m.index);
	}
	if (name.length > 19)
		name = name.replace(/::h[0-9a-fA-F]{16}$/, "");
	return {
		name: name.replace(/#\d+\}/g, "}").replace(/\$_\d+/g, "$_"),
		isPart,
	};
}

/* "a/app.lua:12:3" to "app.lua" */
function cutPlace(place: string): string {
	for (let i = 0; i < 2; i++)
		place = place.replace(/(?<=.):\d+$/, "");
	return place.replace(/^.*\/(?=.)/s, "");
}

function jitName(name: string): string {
	const trace = /^TRACE \[\d*\](.*)$/s.exec(name);
	const started = " started at ";

	if (trace) {
		const rest = "TRACE" + trace[1], at = rest.indexOf(started);
		const end = at + started.length;

		return at < 0 ? cutPlace(rest) :
		       rest.slice(0, end) + cutPlace(rest.slice(end));
	}
	const kind = /^(JS:|LazyCompile:|Function:|Eval:|Script:)[*~^+]?/
		.exec(name);

	if (!kind)
		return name;
	const rest = name.slice(kind[0].length), space = rest.indexOf(" ");

	return kind[1] + (space < 0 ? cutPlace(rest) :
		rest.slice(0, space + 1) + cutPlace(rest.slice(space + 1)));
}

function guestName(name: string): string {
	const space = name.indexOf(" ");

	return name.slice(0, space + 1) + cutPlace(name.slice(space + 1));
}

export function buildName(name: string, layer: number): Name {
	if (name.length >= 4096)
		return { name, isPart: false };
	const kind = LAYERS[layer];
	const made = kind === "jit" ? { name: jitName(name), isPart: false } :
		kind === "guest" ? { name: guestName(name), isPart: false } :
		nativeName(name);

	return made.name ? made : { name, isPart: made.isPart };
}

/* libpython3.11.so.1.0 to libpython.so, libc-2.31.so to libc.so */
function cutLibraryVersion(name: string): string {
	const m = /^(.+?)\.so(\.|$)/s.exec(name);

	if (!m)
		return name;
	const base = m[1]!, version = /[\d.]+$/.exec(base)?.[0] ?? "";
	const before = base.slice(0, base.length - version.length);

	if (version && before.endsWith("-") && before.length > 1)
		return before.slice(0, -1) + ".so";
	return before.length > 1 && version.includes(".") ?
	       before + ".so" : base + ".so";
}

/* The file's name without folder and version; of JIT code "[jit]". */
export function moduleName(path: string, layer: number): string {
	if (LAYERS[layer] === "jit")
		return "[jit]";
	if (path.startsWith("["))
		return path;
	return cutLibraryVersion(path.slice(path.lastIndexOf("/") + 1));
}

/* Names that were made of an address: "[libc.so.6+0x1234]". */
export function isUnnamed(name: string): boolean {
	return /^\[.*\+0x[0-9a-f]+\]$/s.test(name);
}
