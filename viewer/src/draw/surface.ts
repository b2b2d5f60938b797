/* SPDX-License-Identifier: MIT */
/*
 * surface.ts - a canvas that follows its element's size, the screen's density
 * and the theme, and is drawn at most once a frame
 */
import { useEffect, useRef } from "preact/hooks";
import { readPalette, type Palette } from "./palette";

export interface Surface {
	canvas: HTMLCanvasElement;
	context: CanvasRenderingContext2D;
	scale: number;		/* device pixels a CSS pixel */
	width: number;		/* of the canvas, in device pixels */
	height: number;
	palette: Palette;
}

/* A canvas larger than this is not drawn by every browser. */
const MAX_SIDE = 8192;

function measure(canvas: HTMLCanvasElement, palette: Palette): Surface | null {
	const context = canvas.getContext("2d", { alpha: false });
	const scale = Math.min(3, devicePixelRatio || 1);
	const box = canvas.getBoundingClientRect();
	const side = (css: number) => Math.min(MAX_SIDE,
		Math.max(1, Math.round(css * scale)));
	const width = side(box.width), height = side(box.height);

	if (!context || box.width < 1 || box.height < 1)
		return null;
	/* setting a size clears the canvas, the same one too */
	if (canvas.width !== width)
		canvas.width = width;
	if (canvas.height !== height)
		canvas.height = height;
	return { canvas, context, scale, width, height, palette };
}

/*
 * Draws by @draw, of the last rendering, when the returned function was called,
 * and when size, density or theme change.
 */
export function useSurface(canvas: { current: HTMLCanvasElement | null },
			   draw: (surface: Surface) => void): () => void {
	const latest = useRef(draw), frame = useRef(0);
	const palette = useRef<Palette | null>(null);
	const invalidate = useRef(() => {
		if (frame.current)
			return;
		frame.current = requestAnimationFrame(() => {
			frame.current = 0;
			if (!canvas.current)
				return;
			palette.current ??= readPalette();
			const surface = measure(canvas.current,
						palette.current);

			if (surface)
				latest.current(surface);
		});
	}).current;

	latest.current = draw;
	useEffect(() => {
		const observer = new ResizeObserver(invalidate);
		const onTheme = () => {
			palette.current = null;
			invalidate();
		};

		if (canvas.current)
			observer.observe(canvas.current);
		addEventListener("themechange", onTheme);
		addEventListener("resize", invalidate);
		invalidate();
		return () => {
			observer.disconnect();
			removeEventListener("themechange", onTheme);
			removeEventListener("resize", invalidate);
			cancelAnimationFrame(frame.current);
			frame.current = 0;
		};
	}, []);
	return invalidate;
}
