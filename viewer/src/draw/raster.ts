/* SPDX-License-Identifier: MIT */
/*
 * raster.ts - rectangles and patterns as pixels in memory
 *
 * Tens of thousands of boxes a frame: without a GPU, writing pixels takes a
 * tenth of the time of the canvas's own rectangles (doc/design/viewer.md).
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

		for (let x = left; x < right; x++)
			if ((x + base + slope) % period < line)
				pixels[y * width + x] = pixel;
	}
}
