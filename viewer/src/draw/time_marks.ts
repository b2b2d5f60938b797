/* SPDX-License-Identifier: MIT */
/* time_marks.ts - instants on the tracks, and arrows from wakers */
import { lowerBound, memo } from "../engine/arrays";
import { MARK_KINDS, type Profile } from "../profile";
import { fillBox, mix } from "./raster";
import { walkSpans } from "./spans";
import { xOf, type Pen } from "./time_draw";
import { TOP, type Scene } from "./time_scene";
import { trackOf } from "./time_tip";

/*
 * Kinds differ in place and shape, not only in colour: loss and trigger have
 * the height of the band, the others a third of it.
 */
function tick(pen: Pen, kind: number, x: number, y: number,
	      height: number): void {
	const { raster, surface } = pen, { scale, palette } = surface;
	const { pixel } = palette, side = Math.round(4 * scale);
	const thin = Math.max(1, Math.round(scale));

	switch (MARK_KINDS[kind]) {
	case "loss":
		fillBox(raster, x, y, x + thin, y + height, pixel.warn);
		fillBox(raster, x - side / 2 | 0, y, (x + side / 2 | 0) + 1,
			y + side, pixel.warn);
		break;
	case "trigger":
		fillBox(raster, x, y, x + 2 * thin, y + height, pixel.accent);
		fillBox(raster, x, y, x + 2 * side, y + side, pixel.accent);
		break;
	case "jit":
		fillBox(raster, x, y + height - side, x + side, y + height,
			mix(pixel.jit, pixel.text, 0.6));
		break;
	default:
		/* a wedge */
		for (let row = 0; row < side; row++)
			fillBox(raster, x - side + row, y + row,
				x + side - row + 1, y + row + 1, pixel.text);
		fillBox(raster, x, y + side, x + thin, y + (height / 2 | 0),
			pixel.text);
	}
}

/* One mark a pixel: where there are more, the first one. */
export function drawMarks(pen: Pen, key: number, y: number,
			  height: number): void {
	const { base, profile, view } = pen.scene, { time } = profile.marks;
	const { marks } = profile, end = base.marks.start[key + 1]!;
	const rows = base.marks.rows.subarray(base.marks.start[key]!, end);
	const times = timesOf(profile, base, key);
	let i = firstMark(profile, times, rows, view.from);

	while (i < rows.length && time[rows[i]!]! < view.to) {
		const row = rows[i]!, x = xOf(pen, time[row]!);

		if (marks.duration[row]! > 0)
			fillBox(pen.raster, Math.max(pen.left, x),
				y + (height * 0.75 | 0), xOf(pen, time[row]! +
				marks.duration[row]!), y + height,
				mix(pen.surface.palette.pixel.text,
				    pen.surface.palette.pixel.page, 0.5));
		if (x >= pen.left)
			tick(pen, marks.kind[row]!, x, y, height);
		i = Math.max(i + 1, lowerBound(times, time[row]! + pen.grain,
					       i, rows.length));
	}
}

/* Times of one track's marks: sorted, for searches. */
const keptTimes = memo((_base: object) => new Map<number, Float64Array>());

export function timesOf(profile: Profile, base: Scene["base"],
			key: number): Float64Array {
	const kept = keptTimes(base);
	let times = kept.get(key);

	if (!times) {
		times = Float64Array.from(base.marks.rows.subarray(
			base.marks.start[key]!, base.marks.start[key + 1]!),
			row => profile.marks.time[row]!);
		kept.set(key, times);
	}
	return times;
}

/* The first mark that may reach @from: intervals begin before it. */
function firstMark(profile: Profile, times: Float64Array, rows: Uint32Array,
		   from: number): number {
	let i = lowerBound(times, from);
	const least = Math.max(0, i - 64);

	while (i > least && profile.marks.time[rows[i - 1]!]! +
	       profile.marks.duration[rows[i - 1]!]! > from)
		i--;
	return i;
}

/* -- wakers ------------------------------------------------------------- */

/* By word the thread that it names, as "NAME TID"; -1: none. */
export const wakerThreads = memo((profile: Profile): Int32Array => {
	const byTid = new Map(profile.threads.map((t, i) =>
		[String(t.tid), i]));

	return Int32Array.from(profile.words, word =>
		byTid.get(word.slice(word.lastIndexOf(" ") + 1)) ?? -1);
});

const MAX_ARROWS = 300;

/* From the waker's track to the end of each wait that is wide enough. */
export function drawWakers(pen: Pen): void {
	const { scene, surface } = pen, { base, profile } = scene;
	const { context, scale, palette } = surface;
	const threads = wakerThreads(profile);
	const middle = (index: number) => {
		const track = scene.tracks[index]!;

		return (TOP + track.y + track.band / 2 - scene.scrollTop) *
		       scale;
	};
	let left = MAX_ARROWS;

	context.strokeStyle = context.fillStyle = palette.css.accent;
	context.lineWidth = 1.25 * scale;
	context.save();
	context.beginPath();
	context.rect(pen.left, TOP * scale, surface.width, surface.height);
	context.clip();
	scene.tracks.forEach((track, index) => {
		const y = middle(index);

		if (track.kind !== "thread" || y < 0 || y > surface.height)
			return;
		walkSpans(base.waits, 2 * track.id, scene.view.from,
			  scene.view.to, 3 * scale * pen.grain, {
			box(span) {
				const row = base.waits.row[span]!;
				const waker = threads[
					profile.samples.waker[row]!]!;
				const other = waker < 0 ? -1 :
					      trackOf(scene.tracks, waker);

				if (other < 0 || other === index || left-- <= 0)
					return;
				arrow(pen, xOf(pen, base.waits.end[span]!),
				      middle(other), y);
			},
			merged: () => undefined,
		});
	});
	context.restore();
}

function arrow(pen: Pen, x: number, from: number, to: number): void {
	const { context, scale } = pen.surface;
	const head = 4 * scale, back = from < to ? -head : head;

	context.beginPath();
	context.moveTo(x, from);
	context.lineTo(x, to);
	context.stroke();
	context.beginPath();
	context.arc(x, from, 2.5 * scale, 0, 7);
	context.fill();
	context.beginPath();
	context.moveTo(x, to);
	context.lineTo(x - head * 0.8, to + back);
	context.lineTo(x + head * 0.8, to + back);
	context.fill();
}

export const hasWakers = memo((profile: Profile): boolean => {
	const { waker, placed, n } = profile.samples;
	const threads = wakerThreads(profile);

	for (let i = 0; i < n; i++)
		if (waker[i] && placed[i] && threads[waker[i]!]! >= 0)
			return true;
	return false;
});
