/* SPDX-License-Identifier: MIT */
/*
 * palette.ts - the colours of the style sheet, for canvases
 *
 * Layers differ in hue and lightness, waits in pattern, changes in hue (blue
 * and orange), lightness and sign, so no view needs red and green.
 */
import { LAYERS } from "../profile";
import { mix, pixelOf } from "./raster";

const NAMES = [
	"page", "raised", "text", "dim", "rule", "edge", "accent", "mark",
	"kernel", "native", "jit", "guest", "interval", "blocked", "preempted", "inlined",
	"unknown", "group", "less0", "less1", "less2", "same", "more0", "more1",
	"more2", "hit", "warn",
] as const;

type Name = typeof NAMES[number];

export interface Palette {
	css: Record<Name, string>;
	pixel: Record<Name, number>;
	/* by layer, MARKED too, three shades each: neighbours differ */
	layers: number[][];
	layerCss: string[][];
	inlinedCss: string[];
	isDark: boolean;
}

export const SHADES = 3;

export const cssOf = (pixel: number): string => "#" + [0, 8, 16]
	.map(shift => (pixel >>> shift & 0xff).toString(16).padStart(2, "0"))
	.join("");

/* Towards the page and away from it, by so little that text stays readable. */
function shades(pixel: number, page: number, text: number): number[] {
	return [pixel, mix(pixel, page, 0.84), mix(pixel, text, 0.94)];
}

export function readPalette(): Palette {
	const style = getComputedStyle(document.documentElement);
	const css = {} as Record<Name, string>;
	const pixel = {} as Record<Name, number>;

	for (const name of NAMES) {
		css[name] = style.getPropertyValue(`--${name}`).trim() ||
			    "#808080";
		pixel[name] = pixelOf(css[name]);
	}
	const isDark = document.documentElement.dataset.theme === "dark";
	/* in the dark, text is light: away from it is towards the page */
	const away = isDark ? pixel.page : pixel.text;
	const of = (name: Name) => shades(pixel[name], pixel.page, away);
	const layers = [...LAYERS, "interval" as const].map(of);

	return {
		css, pixel, layers, isDark,
		layerCss: layers.map(all => all.map(cssOf)),
		inlinedCss: of("inlined").map(cssOf),
	};
}

/* A shade by function, the same in every view. */
export const shadeOf = (func: number): number =>
	(Math.imul(func + 1, 0x9e3779b1) >>> 16) % SHADES;
