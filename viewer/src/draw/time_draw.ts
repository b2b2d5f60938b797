/* SPDX-License-Identifier: MIT */
/*
 * time_draw.ts - a picture of the time line
 *
 * Boxes and patterns go into an array of pixels, which is put on the canvas at
 * once; text and arrows are drawn over it.  All coordinates here are pixels of
 * the device.
 */
import { NONE } from "../profile";
import { bandPixels, N_LAYERS, spreadPixels } from "./bands";
import { drawMarks, drawWakers } from "./time_marks";
import { shadeOf } from "./palette";
import {
	fillBox, fillPattern, mix, MIXES, mixesOf, repeatRow, type Raster,
} from "./raster";
import { walkSpans, type Spans } from "./spans";
import type { Surface } from "./surface";
import {
	AXIS, durationOf, gutterOf, niceStep, OVERVIEW, tickText, TOP,
	type Range, type Scene, type TimeLabels,
} from "./time_scene";
import { CALL_ROW, type Track } from "./tracks";

/* A text that is drawn after the pixels. */
interface Text {
	x: number;
	y: number;
	text: string;
	colour: string;
	/* over a pattern: on a box of its own */
	backed: boolean;
}

export interface Pen {
	surface: Surface;
	raster: Raster;
	scene: Scene;
	labels: TimeLabels;
	left: number;		/* of the time range, in pixels */
	grain: number;		/* ns a pixel */
	side: number;		/* of a CSS pixel: no finer detail is drawn */
	texts: Text[];
}

const FONT = "ui-monospace, 'SF Mono', 'Cascadia Mono', Menlo, Consolas, " +
	     "'DejaVu Sans Mono', monospace";
const MAX_TEXTS = 900;		/* a picture: each takes some 3 us */

export const fontOf = (scale: number): string =>
	`${Math.round(11 * scale)}px ${FONT}`;

export const xOf = (pen: Pen, ns: number): number =>
	pen.left + Math.round((ns - pen.scene.view.from) / pen.grain);

/* The range that a canvas of @width CSS pixels shows, by its pixels. */
export function nsAt(range: Range, width: number, x: number): number {
	const left = gutterOf(width);

	return range.from + (x - left) / Math.max(1, width - left) *
	       (range.to - range.from);
}

function addText(pen: Pen, text: Text): void {
	if (text.text && pen.texts.length < MAX_TEXTS)
		pen.texts.push(text);
}

/* -- bands -------------------------------------------------------------- */

let sums = new Float64Array(0);

/*
 * Layers upwards from the lower edge, as shares of the time of each pixel, or
 * of its weight where the event counts no time.
 */
function drawBand(pen: Pen, bands: Scene["bands"]["all"], track: number,
		  y: number, height: number, colours: number[]): void {
	const { raster, scene, side } = pen, { period } = scene.bands;
	const grain = pen.grain * side;
	const n = Math.ceil((raster.width - pen.left) / side);
	/* whole pixels from 0: the same pixels while the picture moves */
	const from = Math.round(scene.view.from / grain) * grain;

	if (n <= 0)
		return;
	if (sums.length < N_LAYERS * n)
		sums = new Float64Array(N_LAYERS * n);
	if (!(period ? spreadPixels(bands, track, from, grain, n, sums) :
	      bandPixels(bands, track, from, grain, n, grain, sums)))
		return;
	for (let x = 0; x < n; x++) {
		const all = total(x);

		for (let k = 0; all > 0 && k < side; k++)
			drawColumn(raster, pen.left + x * side + k, y, height,
				   N_LAYERS * x, period ?
				   Math.max(all, grain) : all, colours);
	}
}

function drawColumn(raster: Raster, x: number, y: number, height: number,
		    at: number, whole: number, colours: number[]): void {
	const { pixels, width } = raster;
	let sum = 0, bottom = y + height;

	if (x >= width)
		return;
	for (let l = N_LAYERS - 1; l >= 0; l--) {
		/* differences of sums leave a rest of 1e-16 */
		if (sums[at + l]! <= 1e-6 * whole)
			continue;
		sum += sums[at + l]!;
		/* a layer that is there has a pixel */
		const top = Math.max(y, Math.min(bottom - 1, y + height -
				     Math.round(height * sum / whole)));

		for (let row = Math.max(0, top);
		     row < Math.min(raster.height, bottom); row++)
			pixels[row * width + x] = colours[l]!;
		bottom = top;
	}
}

/* -- waits -------------------------------------------------------------- */

/*
 * Waits fill the band, hatched where blocked, dotted where preempted; narrow
 * ones from the upper edge on, as the layers do from the lower one.
 */
function drawWaits(pen: Pen, thread: number, y: number, height: number): void {
	const { scene, raster, surface } = pen;
	const { waits } = scene.base, { palette, scale } = surface;
	const grain = pen.grain * pen.side, shift = scene.view.from / pen.grain;

	for (const preempted of [0, 1]) {
		const colour = preempted ? palette.pixel.preempted :
			       palette.pixel.blocked;
		const pattern = preempted ? "dots" : "hatch";
		const box = (begin: number, end: number, share: number) => {
			const x0 = Math.max(pen.left, xOf(pen, begin));
			const x1 = Math.max(x0 + 1, xOf(pen, end));
			/* narrow ones are as high as their share */
			const bottom = y + Math.round(height * share);

			fillBox(raster, x0, y, x1, bottom, palette.pixel.page);
			fillPattern(raster, x0, y, x1, bottom, colour, pattern,
				    scale, shift - pen.left);
			return { x0, x1: Math.min(x1, raster.width) };
		};

		walkSpans(waits, 2 * thread + preempted, scene.view.from,
			  scene.view.to, grain, {
			box(span) {
				const { x0, x1 } = box(waits.begin[span]!,
						       waits.end[span]!, 1);

				fillBox(raster, x0, y + height - 1, x1,
					y + height, palette.pixel.edge);
				nameWait(pen, waits.row[span]!, x0, x1, y,
					 height);
			},
			merged: (begin, end, sum) => box(begin, end, Math.min(1,
				sum / Math.max(grain, end - begin))),
		});
	}
}

function nameWait(pen: Pen, row: number, x0: number, x1: number, y: number,
		  height: number): void {
	const { scale, palette } = pen.surface;
	const reason = pen.scene.profile.samples.reason[row]!;

	if (x1 - x0 < 40 * scale || !reason)
		return;
	addText(pen, {
		x: x0 + 5 * scale, y: y + height / 2 + 4 * scale,
		text: pen.labels.word.fit(reason, x1 - x0 - 12 * scale),
		colour: palette.css.text, backed: true,
	});
}

/* -- calls -------------------------------------------------------------- */

/* By function the colours of its calls, from a part of a pixel to all of it. */
const kept = new WeakMap<object, Map<number, Uint32Array>>();

function callColours(pen: Pen, func: number): Uint32Array {
	const { scene, surface: { palette } } = pen, { found } = scene;
	const known = kept.get(palette) ?? new Map<number, Uint32Array>();
	const isFound = func !== NONE && found !== null && found[func] === 1;
	const layer = func === NONE ? 0 : scene.profile.functions.layer[func]!;
	const key = func === NONE || found && !isFound ? -1 : isFound ? -2 :
		    3 * layer + shadeOf(func);
	let colours = known.get(key);

	if (!colours) {
		const { page, edge, group, hit } = palette.pixel;

		colours = mixesOf(key === -1 ? mix(group, page, 0.6) :
				  key === -2 ? hit :
				  palette.layers[layer]![shadeOf(func)]!,
				  mix(edge, page, 0.15));
		kept.set(palette, known.set(key, colours));
	}
	return colours;
}

/*
 * A lane of calls or of marked intervals.  The boxes of a row are drawn one
 * pixel high, then the row is repeated.
 */
function drawRow(pen: Pen, calls: Spans, func: Uint32Array, lane: number,
		 y: number, height: number): void {
	const { scene, raster, surface, left } = pen;
	const grain = pen.grain * pen.side;
	const { palette, scale } = surface, line = Math.max(y, 0);
	const { pixels, width } = raster, at = line * width;
	const fill = (x0: number, x1: number, pixel: number) => {
		for (let x = x0; x < x1; x++)
			pixels[at + x] = pixel;
	};

	if (line >= Math.min(raster.height, y + height - 1))
		return;
	walkSpans(calls, lane, scene.view.from, scene.view.to, grain, {
		box(span) {
			const row = calls.row[span]!;
			const x0 = Math.max(left, xOf(pen, calls.begin[span]!));
			const x1 = Math.min(width, Math.max(x0 + 1,
					    xOf(pen, calls.end[span]!)));

			fill(x0, x1, callColours(pen, func[row]!)[MIXES]!);
			if (x1 - x0 > 3 * scale)
				fill(x1 - 1, x1, palette.pixel.page);
			if (x1 - x0 > 34 * scale)
				nameCall(pen, func[row]!, x0, x1, y, height);
		},
		merged(begin, end, sum, first) {
			const share = sum / Math.max(grain, end - begin);
			const x0 = Math.max(left, xOf(pen, begin));

			fill(x0, Math.min(width, Math.max(x0 + 1,
				xOf(pen, end))), callColours(pen,
				func[calls.row[first]!]!)[Math.round(MIXES *
				Math.min(1, 0.35 + 0.65 * share))]!);
		},
	});
	repeatRow(raster, line, y + height - 1, left);
}

function nameCall(pen: Pen, func: number, x0: number, x1: number, y: number,
		  height: number): void {
	const { scale, palette } = pen.surface;

	addText(pen, {
		x: x0 + 3 * scale, y: y + height - 4.5 * scale,
		text: func === NONE ? "" :
		      pen.labels.func.fit(func, x1 - x0 - 7 * scale),
		colour: palette.css.text, backed: false,
	});
}

/* -- tracks ------------------------------------------------------------- */

function drawRows(pen: Pen, track: Track, top: number): void {
	const { base, profile } = pen.scene, { scale } = pen.surface;
	const y = (row: number) => Math.round(top + row * CALL_ROW * scale);
	const height = Math.round(CALL_ROW * scale);

	for (let i = 0; i < track.marked; i++)
		drawRow(pen, base.intervals, profile.intervals.func,
			base.intervalLane[track.id]! + i, y(i), height);
	for (let d = 0; d < track.rows; d++)
		drawRow(pen, base.calls, profile.calls.func,
			base.callLane[track.id]! + d, y(track.marked + d),
			height);
}

/* Where the calls are that the selection is inside of: a bar over the band. */
function drawInside(pen: Pen, thread: number, y: number): void {
	const { raster, scene, surface: { palette, scale } } = pen;
	const height = Math.max(2, Math.round(3 * scale));
	const bar = (begin: number, end: number) => {
		const x = Math.max(pen.left, xOf(pen, begin));

		fillBox(raster, x, y, Math.max(x + 1, xOf(pen, end)),
			y + height, palette.pixel.accent);
	};

	if (scene.inside)
		walkSpans(scene.inside, thread, scene.view.from, scene.view.to,
			  pen.grain * pen.side, {
			box: span => bar(scene.inside!.begin[span]!,
					 scene.inside!.end[span]!),
			merged: bar,
		});
}

function drawTrack(pen: Pen, track: Track, y: number): void {
	const { scene, surface } = pen, { scale, palette } = surface;
	const { selection, profile } = scene, height = track.band * scale;
	const isOut = track.kind === "thread" && selection.threads !== null &&
		      !selection.threads.includes(track.id);
	const faded = (pixel: number) => isOut ?
		mix(pixel, palette.pixel.page, 0.3) : pixel;
	const colours = palette.layers.map(shades => faded(shades[0]!));

	if (track.kind === "thread") {
		fillBox(pen.raster, pen.left, y + height - 1,
			pen.raster.width, y + height, palette.pixel.rule);
		drawBand(pen, scene.bands.byThread, track.id, y, height,
			 colours);
		drawWaits(pen, track.id, y, height);
		drawInside(pen, track.id, y);
		drawRows(pen, track, y + height);
	} else if (track.kind === "cpu") {
		drawBand(pen, scene.bands.byCpu, track.id, y, height, colours);
	}
	if (track.kind === "thread" || track.kind === "marks")
		drawMarks(pen, track.kind === "thread" ? track.id :
			  profile.threads.length, y, height);
}

/* The name at the left, over a ground of its own. */
function nameTrack(pen: Pen, track: Track, y: number, isCurrent: boolean): void {
	const { scale, palette } = pen.surface, { raster, left } = pen;
	const isHeading = track.kind === "heading";
	const bottom = y + Math.round(track.height * scale);
	const { threads } = pen.scene.selection;
	const isChosen = track.kind === "thread" && threads?.includes(track.id);
	const index = pen.scene.tracks.indexOf(track);

	fillBox(raster, 0, y, isHeading ? raster.width : left, bottom,
		isHeading ? palette.pixel.raised : palette.pixel.page);
	if (isChosen || isCurrent)
		fillBox(raster, 0, y, Math.round(3 * scale), bottom,
			isCurrent ? palette.pixel.accent : palette.pixel.edge);
	addText(pen, {
		x: (isHeading ? 6 : 10) * scale, y: y + 15 * scale,
		text: pen.labels.track.fit(index, (isHeading ? raster.width :
			left) - 16 * scale),
		colour: isHeading ? palette.css.dim : palette.css.text,
		backed: false,
	});
	if (track.depth > track.rows)
		addText(pen, {
			x: 10 * scale, y: y + 30 * scale,
			text: `+${track.depth - track.rows} deeper`,
			colour: palette.css.dim, backed: false,
		});
}

function drawTracks(pen: Pen): void {
	const { scene, surface, raster } = pen, { scale } = surface;
	const top = Math.round(TOP * scale);

	scene.tracks.forEach((track, i) => {
		const y = Math.round((TOP + track.y - scene.scrollTop) * scale);

		if (y + track.height * scale < top || y > raster.height)
			return;
		if (track.kind !== "heading")
			drawTrack(pen, track, y);
		nameTrack(pen, track, y, i === scene.current && scene.hasFocus);
	});
}

/* -- axis, overview ----------------------------------------------------- */

function drawAxis(pen: Pen): void {
	const { scene, surface, raster } = pen, { scale, palette } = surface;
	const y = Math.round(OVERVIEW * scale), bottom = Math.round(TOP * scale);
	const step = niceStep(115 * scale * pen.grain);

	fillBox(raster, 0, y, raster.width, bottom, palette.pixel.page);
	fillBox(raster, 0, bottom - 1, raster.width, bottom, palette.pixel.rule);
	for (let t = Math.ceil(scene.view.from / step) * step;
	     t <= scene.view.to; t += step) {
		const x = xOf(pen, t);

		fillBox(raster, x, y + Math.round(AXIS * 0.6 * scale), x + 1,
			bottom, palette.pixel.edge);
		if (x + 100 * scale < raster.width || t === 0)
			addText(pen, { x: x + 3 * scale, y: bottom - 7 * scale,
				       text: tickText(t, step),
				       colour: palette.css.dim, backed: false });
	}
}

/* The strip does not change while the picture moves: its pixels are kept. */
let strip: { bands: object; palette: object; width: number; scale: number;
	     pixels: Uint32Array } | null = null;

function drawOverview(pen: Pen): void {
	const { surface: { palette, scale }, raster: { width, pixels } } = pen;
	const { bands } = pen.scene, n = width * Math.round(OVERVIEW * scale);

	if (strip?.bands !== bands || strip.palette !== palette ||
	    strip.width !== width || strip.scale !== scale) {
		makeOverview(pen);
		strip = { bands, palette, width, scale,
			  pixels: pixels.slice(0, n) };
	}
	pixels.set(strip.pixels);
}

/* All samples over the whole recording. */
function makeOverview(pen: Pen): void {
	const { scene, surface, raster, left } = pen;
	const { scale, palette } = surface, { profile, bands } = scene;
	const height = Math.round((OVERVIEW - 6) * scale);
	const n = raster.width - left, whole = durationOf(profile);

	fillBox(raster, 0, 0, raster.width, Math.round(OVERVIEW * scale),
		palette.pixel.raised);
	/* short recordings have few samples a pixel: means of two periods */
	if (n > 0 && bandPixels(bands.all, 0, 0, whole / n, n, Math.max(
			whole / n, 2 * bands.period), grown(n))) {
		let most = 0;

		for (let x = 0; x < n; x++)
			most = Math.max(most, total(x));
		for (let x = 0; x < n; x++)
			if (total(x) > 0)
				drawColumn(raster, left + x, 2, height,
					   N_LAYERS * x, most,
					   palette.layers.map(l => l[0]!));
	}
}

function grown(n: number): Float64Array {
	if (sums.length < N_LAYERS * n)
		sums = new Float64Array(N_LAYERS * n);
	return sums;
}

function total(x: number): number {
	let sum = 0;

	for (let l = 0; l < N_LAYERS; l++)
		sum += sums[N_LAYERS * x + l]!;
	return sum;
}

/* The visible part of the strip has a frame, the rest a veil. */
function drawWindow(pen: Pen): void {
	const { scene, surface, left } = pen, { view, profile } = scene;
	const { context, palette, scale, width } = surface;
	const perNs = (width - left) / durationOf(profile);
	const x0 = left + Math.round(view.from * perNs);
	const x1 = Math.max(left + Math.round(view.to * perNs),
			    x0 + Math.round(3 * scale));
	const height = Math.round((OVERVIEW - 2) * scale);

	context.globalAlpha = 0.6;
	context.fillStyle = palette.css.page;
	context.fillRect(left, 0, x0 - left, height);
	context.fillRect(x1, 0, width - x1, height);
	context.globalAlpha = 1;
	context.strokeStyle = palette.css.accent;
	context.lineWidth = Math.round(1.5 * scale);
	context.strokeRect(x0 + scale, scale, x1 - x0 - 2 * scale,
			   height - 2 * scale);
}

/* -- all ---------------------------------------------------------------- */

/* The selected time, or the part of it that is being dragged. */
function drawSelection(pen: Pen): void {
	const { scene, surface } = pen, { context, scale, palette } = surface;
	const { drag, selection, profile } = scene, whole = durationOf(profile);
	const range = drag ?? (selection.from > 0 || selection.to < whole ?
			       selection : null);
	const top = Math.round(OVERVIEW * scale), { left } = pen;
	const clip = (x: number) => Math.min(surface.width, Math.max(left, x));

	if (!range)
		return;
	const x0 = clip(xOf(pen, range.from));
	const x1 = clip(xOf(pen, Math.min(range.to, whole)));

	context.fillStyle = palette.css.page;
	context.globalAlpha = 0.55;
	context.fillRect(left, top, x0 - left, surface.height - top);
	context.fillRect(x1, top, surface.width - x1, surface.height - top);
	context.globalAlpha = 1;
	context.fillStyle = palette.css.accent;
	context.fillRect(x0, top, x1 - x0, Math.round(3 * scale));
	for (const x of [x0, x1])
		if (x > left && x < surface.width)
			context.fillRect(x, top, Math.max(1, Math.round(scale)),
					 surface.height - top);
}

/* The line at which [ and ] set the selection's edges, while keys are used. */
function drawMiddle(pen: Pen): void {
	const { context, scale, palette, width, height } = pen.surface;
	const x = pen.left + Math.round((width - pen.left) / 2);

	if (!pen.scene.hasFocus)
		return;
	context.strokeStyle = palette.css.accent;
	context.lineWidth = Math.max(1, Math.round(scale));
	context.setLineDash([4 * scale, 4 * scale]);
	context.beginPath();
	context.moveTo(x + 0.5, OVERVIEW * scale);
	context.lineTo(x + 0.5, height);
	context.stroke();
	context.setLineDash([]);
}

function drawTexts(pen: Pen): void {
	const { context, scale, palette } = pen.surface;

	context.font = fontOf(scale);
	context.textBaseline = "alphabetic";
	for (const { x, y, text, colour, backed } of pen.texts) {
		if (backed) {
			context.fillStyle = palette.css.page;
			context.fillRect(x - 2 * scale, y - 10 * scale,
				context.measureText(text).width + 4 * scale,
				13 * scale);
		}
		context.fillStyle = colour;
		context.fillText(text, x, y);
	}
}

let image: ImageData | null = null;

/* One array of pixels, kept: it is as large as the canvas. */
function rasterOf(surface: Surface): { image: ImageData; raster: Raster } {
	const { width, height, context } = surface;

	if (!image || image.width !== width || image.height !== height)
		image = context.createImageData(width, height);
	return { image, raster: { width, height, pixels: new Uint32Array(
		image.data.buffer) } };
}

export function drawTimeLine(surface: Surface, scene: Scene,
			     labels: TimeLabels): void {
	const { width, scale, context, palette } = surface;
	const left = Math.round(gutterOf(width / scale) * scale);
	const made = rasterOf(surface);
	const pen: Pen = {
		surface, raster: made.raster, scene, labels, left, texts: [],
		side: Math.max(1, Math.round(scale)),
		grain: (scene.view.to - scene.view.from) /
		       Math.max(1, width - left),
	};

	made.raster.pixels.fill(palette.pixel.page);
	drawTracks(pen);
	/* what scrolled under the axis is painted over, its texts are left out */
	pen.texts = pen.texts.filter(t => t.y > (TOP + 9) * scale);
	drawAxis(pen);
	drawOverview(pen);
	context.putImageData(made.image, 0, 0);
	drawWindow(pen);
	drawSelection(pen);
	drawTexts(pen);
	if (scene.showWakers)
		drawWakers(pen);
	drawMiddle(pen);
}
