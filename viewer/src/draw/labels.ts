/* SPDX-License-Identifier: MIT */
/*
 * labels.ts - names cut in the middle to the pixels that they have
 *
 * The ends of a name tell more than its middle: "std::map<…>::insert".  The
 * width of plain text is the sum of its characters, which are measured once;
 * other scripts join characters, so their texts are measured as a whole.
 */
import { visible } from "../text";

export type Width = (text: string) => number;

const ELLIPSIS = "\u2026";
const PLAIN = /^[\x20-\x7e]*$/;

/* @n characters of @chars without their middle. */
function without(chars: readonly string[], n: number): string {
	const head = Math.ceil(n / 2);

	return chars.slice(0, head).join("") + ELLIPSIS +
	       chars.slice(chars.length - (n - head)).join("");
}

/*
 * @text, or as many characters of its beginning and its end as fit in @room
 * with an ellipsis between; "" where not three fit.
 */
export function cutMiddle(text: string, room: number, width: Width): string {
	if (width(text) <= room)
		return text;
	const chars = [...text];
	let fits = 2, more = chars.length;

	while (more - fits > 1) {
		const n = (fits + more) >>> 1;

		if (width(without(chars, n)) <= room)
			fits = n;
		else
			more = n;
	}
	return fits < 3 ? "" : without(chars, fits);
}

/* The width of texts in the font of @context, which must not change. */
export function widthIn(context: CanvasRenderingContext2D): Width {
	const known = new Float64Array(128).fill(-1);
	const of = (code: number) => {
		if (known[code]! < 0)
			known[code] = context.measureText(
				String.fromCharCode(code)).width;
		return known[code]!;
	};
	let ellipsis = -1;

	return text => {
		const plain = text.replace(ELLIPSIS, "");
		let sum = 0;

		if (!PLAIN.test(plain))
			return context.measureText(text).width;
		for (let i = 0; i < plain.length; i++)
			sum += of(plain.charCodeAt(i));
		if (plain.length === text.length)
			return sum;
		if (ellipsis < 0)
			ellipsis = context.measureText(ELLIPSIS).width;
		return sum + ellipsis;
	};
}

const MAX_KEPT = 20000;		/* texts */
const MAX_SHOWN = 400;		/* characters of a name that are measured */

/*
 * Names of rows, cut for widths in whole pixels.  Cuts are kept: a picture that
 * moves has the same names in the same widths.
 */
export interface Labels {
	fit: (id: number, room: number) => string;
}

export function labelsOf(nameOf: (id: number) => string, width: Width):
		Labels {
	const cuts = new Map<number, string>(), names = new Map<number, string>();

	return {
		fit(id, room) {
			const pixels = Math.min(Math.floor(room), 4095);
			const key = id * 4096 + pixels;
			let cut = cuts.get(key);

			if (pixels < 12)
				return "";
			if (cut !== undefined)
				return cut;
			let name = names.get(id);

			if (name === undefined) {
				name = shown(nameOf(id));
				names.set(id, name);
			}
			cut = cutMiddle(name, pixels, width);
			if (cuts.size >= MAX_KEPT)
				cuts.clear();
			cuts.set(key, cut);
			return cut;
		},
	};
}

/* Names are hostile: escapes in place of controls, and not 64 KiB of them. */
export function shown(name: string): string {
	const text = visible(name.length > 2 * MAX_SHOWN ?
		name.slice(0, MAX_SHOWN) + ELLIPSIS + name.slice(-MAX_SHOWN) :
		name);

	return text.length <= 2 * MAX_SHOWN ? text :
	       text.slice(0, MAX_SHOWN) + ELLIPSIS + text.slice(-MAX_SHOWN);
}
