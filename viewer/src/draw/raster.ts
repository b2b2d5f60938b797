/* SPDX-License-Identifier: MIT */
/*
 * raster.ts - rectangles and patterns as pixels in memory
 *
 * Tens of thousands of boxes a frame: without a GPU, writing pixels takes a
 * tenth of the time of the canvas's own rectangles.
 * Coordinates are pixels of the device; what is outside is cut off.
 */

export interface Raster {
	width: number;
	height: number;
	pixels: Uint32Array;	/* in the order of ImageData: ABGR in a word */
}

/* "#rrggbb" as a pixel. */
export function pixelOf(colour: string): number {
	const rgb = parseInt(colour.trim().slice(1, 7), 16) || 0;

	return (0xff000000 | (rgb & 0xff) << 16 | (rgb & 0xff00) |
		rgb >>> 16) >>> 0;
}

/* @share of @a and the rest of @b, a channel after the other. */
export function mix(a: number, b: number, share: number): number {
	const of = (shift: number) => Math.round(
		(a >>> shift & 0xff) * share +
		(b >>> shift & 0xff) * (1 - share)) << shift;

	return (0xff000000 | of(16) | of(8) | of(0)) >>> 0;
}

/* Shades from @b to @a: mixes for boxes, made once. */
export const MIXES = 32;

export function mixesOf(a: number, b: number): Uint32Array {
	return Uint32Array.from({ length: MIXES + 1 }, (_, i) =>
		mix(a, b, i / MIXES));
}

export function fillBox(r: Raster, x0: number, y0: number, x1: number,
			y1: number, pixel: number): void {
	const left = Math.max(0, x0), right = Math.min(r.width, x1);
	const top = Math.max(0, y0), bottom = Math.min(r.height, y1);
	const { pixels, width } = r;

	if (right <= left)
		return;
	if (right - left > 24) {
		for (let y = top; y < bottom; y++)
			pixels.fill(pixel, y * width + left, y * width + right);
		return;
	}
	for (let y = top; y < bottom; y++)
		for (let at = y * width + left, end = y * width + right;
		     at < end; at++)
			pixels[at] = pixel;
}

export type Pattern = "hatch" | "dots";

/*
 * A pattern of @pixel: lines from the lower left with the period of 6, or dots
 * in a grid of 4, times @scale.  It is fixed to x + @shift, so that it moves
 * with what it fills.
 */
export function fillPattern(r: Raster, x0: number, y0: number, x1: number,
			    y1: number, pixel: number, pattern: Pattern,
			    scale: number, shift: number): void {
	const left = Math.max(0, x0), right = Math.min(r.width, x1);
	const top = Math.max(0, y0), bottom = Math.min(r.height, y1);
	const period = Math.round((pattern === "hatch" ? 6 : 4) * scale);
	const line = Math.max(1, Math.round((pattern === "hatch" ? 2 : 1.5) *
					    scale));
	const { pixels, width } = r;
	const base = (Math.floor(shift) % period + period) % period;

	for (let y = top; y < bottom; y++) {
		const row = y - y0;

		if (pattern === "dots" && row % period >= line)
			continue;
		const slope = pattern === "hatch" ? row : 0;
		const end = y * width + right;
		let phase = (left + base + slope) % period;

		for (let at = y * width + left; at < end; at++) {
			if (phase < line)
				pixels[at] = pixel;
			if (++phase === period)
				phase = 0;
		}
	}
}

/*
 * Copy the row @y to the rows below it, down to @bottom, from column @left on:
 * rows of boxes are drawn once, and are as high as that.
 */
export function repeatRow(r: Raster, y: number, bottom: number,
			  left: number): void {
	const { pixels, width } = r, from = y * width;

	for (let row = y + 1; row < Math.min(bottom, r.height); row++)
		pixels.copyWithin(row * width + left, from + left,
				  from + width);
}
