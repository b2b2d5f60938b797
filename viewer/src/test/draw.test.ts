/* SPDX-License-Identifier: MIT */
/* draw.test.ts - what the time line shows, against sums made one by one */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
	bandPixels, buildBands, N_LAYERS, sampleAt, spreadPixels, weightIn,
} from "../draw/bands";
import { cutMiddle, shown } from "../draw/labels";
import { fillPattern, mix, pixelOf } from "../draw/raster";
import { runAtOnce } from "../slices";
import { buildSpans, spanAt, timeIn, walkSpans, type Spans }
	from "../draw/spans";
import { timeIndex } from "../draw/time_index";
import { clampRange, firstRange, niceStep, tickText, zoomRange }
	from "../draw/time_scene";
import { layOutTracks, trackAt } from "../draw/tracks";
import { NONE, type Profile } from "../profile";
import { ALL } from "../select";
import { smallProfile } from "./small";
import { randomOf, SMALL, synthetic, type Random } from "./synthetic";

const close = (a: number, b: number, text: string) =>
	assert.ok(Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(b)),
		  `${text}: ${a} is not ${b}`);

/* -- spans -------------------------------------------------------------- */

interface Lanes {
	spans: Spans;
	lists: { begin: number; end: number }[][];
}

/* Spans of some ns to some ms, a part of them next to each other. */
function randomLanes(random: Random, n: number, nLanes: number): Lanes {
	const lane = new Uint32Array(n), begin = new Float64Array(n);
	const duration = new Float64Array(n);
	const at = new Float64Array(nLanes);
	const lists: Lanes["lists"] = Array.from({ length: nLanes }, () => []);

	for (let i = 0; i < n; i++) {
		const k = Math.floor(random() * (nLanes + 1));

		lane[i] = k === nLanes ? NONE : k;
		if (k === nLanes)
			continue;
		at[k]! += random() < 0.4 ? 0 : Math.floor(1e4 * random() ** 6);
		begin[i] = at[k]!;
		duration[i] = Math.floor(1e5 * random() ** 8);
		at[k]! += duration[i]!;
		lists[k]!.push({ begin: begin[i]!, end: at[k]! });
	}
	return { lists, spans: runAtOnce(buildSpans({ n, nLanes, lane, begin,
						      duration })) };
}

const overlap = (list: { begin: number; end: number }[], from: number,
		 to: number) => list.reduce((sum, s) => sum + Math.max(0,
	Math.min(s.end, to) - Math.max(s.begin, from)), 0);

test("time in a range equals the sum of all spans", () => {
	const random = randomOf(3);

	for (const n of [0, 1, 3, 4, 5, 70, 4000]) {
		const { spans, lists } = randomLanes(random, n, 5);

		for (let k = 0; k < 200; k++) {
			const lane = Math.floor(5 * random());
			const last = lists[lane]!.at(-1)?.end ?? 10;
			const edge = () => random() < 0.3 && lists[lane]!.length ?
				lists[lane]![Math.floor(random() *
					lists[lane]!.length)]![random() < 0.5 ?
					"begin" : "end"] :
				Math.floor(random() * last * 1.1);
			const [a, b] = [edge(), edge()].sort((x, y) => x - y);

			close(timeIn(spans, lane, a!, b!),
			      overlap(lists[lane]!, a!, b!), `${n} spans`);
		}
	}
});

test("a picture has each wide span, and all time of narrow ones", () => {
	const random = randomOf(4);
	const { spans, lists } = randomLanes(random, 6000, 3);

	for (let k = 0; k < 60; k++) {
		const lane = k % 3, list = lists[lane]!;
		const end = list.at(-1)!.end, grain = 10 ** (6 * random());
		const from = Math.floor(random() * end);
		const to = from + 800 * grain, boxes: number[] = [];
		let sum = 0, last = -Infinity;

		walkSpans(spans, lane, from, to, grain, {
			box(span) {
				assert.ok(spans.begin[span]! >= last);
				last = spans.end[span]!;
				boxes.push(spans.begin[span]!);
			},
			merged(begin, until, ns) {
				assert.ok(begin >= last && until >= begin);
				assert.ok(ns <= until - begin + 1e-6);
				assert.ok(until - begin <= 3 * grain,
					  "a gap is in no box");
				last = until;
				sum += ns;
			},
		});
		const isSeen = (s: { begin: number; end: number }) =>
			s.begin < to && (s.end > from || s.end === from &&
					 s.begin === from);
		const wide = list.filter(s => isSeen(s) &&
					 s.end - s.begin >= grain);

		assert.deepEqual(boxes, wide.map(s => s.begin));
		close(sum, list.filter(s => isSeen(s) && s.end - s.begin <
			grain).reduce((n, s) => n + s.end - s.begin, 0),
		      "time of narrow spans");
	}
});

test("a picture costs pixels, not spans", () => {
	const n = 200_000, begin = new Float64Array(n), random = randomOf(6);
	const duration = begin.map(() => 1 + Math.floor(9 * random()));
	let boxes = 0;

	for (let i = 1; i < n; i++)
		begin[i] = begin[i - 1]! + duration[i - 1]! +
			   Math.floor(3 * random());
	const spans = runAtOnce(buildSpans({ n, nLanes: 1, begin, duration,
					     lane: new Uint32Array(n) }));
	const count = () => { boxes++; };

	walkSpans(spans, 0, 0, begin[n - 1]!, begin[n - 1]! / 1000,
		  { box: count, merged: count });
	assert.ok(boxes > 300 && boxes <= 2000, String(boxes));
});

test("spans that overlap by a clock's jitter are cut", () => {
	const spans = runAtOnce(buildSpans({ n: 3, nLanes: 1,
		lane: new Uint32Array(3), begin: Float64Array.of(0, 8, 12),
		duration: Float64Array.of(10, 2, 5) }));

	assert.deepEqual([...spans.begin], [0, 10, 12]);
	assert.deepEqual([...spans.end], [10, 10, 17]);
});

test("the span under the pointer is the nearest one", () => {
	const spans = runAtOnce(buildSpans({ n: 3, nLanes: 1,
		lane: new Uint32Array(3), begin: Float64Array.of(10, 30, 60),
		duration: Float64Array.of(10, 10, 10) }));

	for (const [time, slack, span] of [[15, 0, 0], [24, 5, 0], [26, 5, 1],
					   [50, 5, -1], [5, 4, -1], [6, 4, 0],
					   [72, 3, 2]] as const)
		assert.equal(spanAt(spans, 0, time, slack), span, String(time));
});

/* -- bands -------------------------------------------------------------- */

test("bands of each pixel equal the sum of its samples", () => {
	const random = randomOf(5), n = 5000, nTracks = 3;
	const track = Uint32Array.from({ length: n }, () =>
		Math.floor(4 * random()));	/* 3: left out */
	const time = Float64Array.from({ length: n }, () =>
		Math.floor(1e6 * random())).sort();
	const weight = time.map(() => Math.floor(1000 * random()));
	const layer = Uint8Array.from(time, () => Math.floor(4 * random()));
	const bands = runAtOnce(buildBands({ n, nTracks, track, time, weight,
					     layer }));

	for (let k = 0; k < 30; k++) {
		const t = k % nTracks, from = 1e6 * random() - 1e5;
		const grain = 10 ** (1 + 3 * random());
		const window = grain * (1 + 3 * random()), pixels = 300;
		const out = new Float64Array(N_LAYERS * pixels);
		const brute = new Float64Array(N_LAYERS * pixels);

		bandPixels(bands, t, from, grain, pixels, window, out);
		for (let i = 0; i < n; i++)
			for (let x = 0; track[i] === t && x < pixels; x++) {
				const at = from + (x + 0.5) * grain - window / 2;

				if (time[i]! >= at && time[i]! < at + window)
					brute[N_LAYERS * x + layer[i]!]! +=
						weight[i]!;
			}
		brute.forEach((sum, x) => close(out[x]!, sum, `pixel ${x}`));
		close(weightIn(bands, t, from, from + 5e4), time.reduce((sum,
			at, i) => sum + (track[i] === t && at >= from &&
			at < from + 5e4 ? weight[i]! : 0), 0), "range");
	}
});

test("a sample of a time fills the time that it stands for", () => {
	const random = randomOf(9), n = 3000;
	const track = Uint32Array.from({ length: n }, () =>
		Math.floor(2 * random()));
	const time = Float64Array.from({ length: n }, () =>
		Math.floor(1e6 * random())).sort();
	const weight = time.map(() => Math.floor(1500 * random()));
	const layer = Uint8Array.from(time, () => Math.floor(4 * random()));
	const bands = runAtOnce(buildBands({ n, nTracks: 2, track, time, weight,
					     layer }));

	for (let k = 0; k < 30; k++) {
		const t = k % 2, from = 1e6 * random() - 1e5, pixels = 200;
		const grain = 10 ** (0.5 + 3.5 * random());
		const out = new Float64Array(N_LAYERS * pixels);
		const brute = new Float64Array(N_LAYERS * pixels);
		let last = -Infinity;

		spreadPixels(bands, t, from, grain, pixels, out);
		for (let i = 0; i < n; i++) {
			if (track[i] !== t)
				continue;
			const end = time[i]!, length = Math.min(weight[i]!,
								end - last);

			last = end;
			for (let x = 0; x < pixels && length > 0; x++) {
				const at = from + x * grain;
				const part = Math.min(end, at + grain) -
					     Math.max(end - length, at);

				if (part > 0)
					brute[N_LAYERS * x + layer[i]!]! +=
						weight[i]! * part / length;
			}
			/* without a time before it, all is at its end */
			const x = Math.floor((end - from) / grain);

			if (length <= 0 && x >= 0 && x < pixels)
				brute[N_LAYERS * x + layer[i]!]! += weight[i]!;
		}
		brute.forEach((sum, x) => assert.ok(Math.abs(out[x]! - sum) <
			1e-3, `${k} ${x}: ${out[x]} is not ${sum}`));
	}
});

test("the nearest sample is found within the slack", () => {
	const bands = runAtOnce(buildBands({ n: 2, nTracks: 1,
		track: new Uint32Array(2), time: Float64Array.of(10, 20),
		weight: Float64Array.of(1, 1), layer: new Uint8Array(2) }));

	assert.deepEqual([8, 14, 16, 40].map(t => sampleAt(bands, 0, t, 5)),
			 [0, 0, 1, -1]);
});

/* -- the time line's tracks --------------------------------------------- */

const indexOf = (profile: Profile, layers: number[] | null = null,
		 module: number | null = null) =>
	runAtOnce(timeIndex(profile, 0, { layers, module }));

test("tracks have every placed row of the profile once", () => {
	const profile = synthetic(SMALL), { samples, calls } = profile;
	const { base, bands } = indexOf(profile);
	let waits = 0, sampled = 0;

	for (let i = 0; i < samples.n; i++)
		if (samples.event[i])
			waits++;
		else
			sampled++;
	assert.equal(base.waits.n, waits);
	assert.equal(base.calls.n, calls.n);
	assert.equal(bands.byThread.row.length, sampled);
	assert.equal(bands.byCpu.row.length, sampled);
	assert.equal(base.marks.rows.length, profile.marks.n);
	assert.equal(base.intervals.n, profile.intervals.n);
	assert.ok(waits > 300 && sampled > 10_000);
});

test("short waits without a place, and sums of calls, are on no track", () => {
	const profile = smallProfile({ samples: [
		{ time: 0, stack: "main" },
		{ time: 5, stack: "main;k:futex", event: 1, placed: 0 },
		{ time: 9, stack: "main;k:futex", event: 1, weight: 20 },
	], calls: [{ name: "f", begin: 1, end: 3 }] });
	const { base, bands } = indexOf(profile);

	assert.equal(base.waits.n, 1);
	assert.equal(base.calls.n, 1);
	assert.equal(bands.byThread.row.length, 1);
});

test("a layer that is left out gives its time to the caller's", () => {
	const profile = smallProfile({ samples: [
		{ time: 0, stack: "main;k:read" }, { time: 10, stack: "k:idle" },
		{ time: 20, stack: "main;g:loop" } ] });
	const { bands } = indexOf(profile, [1, 3]);
	const sums = bands.all.sums.slice(-N_LAYERS);

	assert.deepEqual([...sums], [0, 10, 0, 10]);
});

test("bands of a module have the stacks through it alone", () => {
	const profile = smallProfile({ samples: [
		{ time: 0, stack: "main;k:read" }, { time: 10, stack: "k:idle" },
		{ time: 20, stack: "main;g:loop" } ], modules: { loop: "lua" } });
	const { bands } = indexOf(profile, null,
				  profile.modules.path.indexOf("lua"));

	assert.deepEqual([...bands.all.sums.slice(-N_LAYERS)], [0, 0, 0, 10]);
});

test("marked intervals that overlap are in lanes of their own", () => {
	const profile = smallProfile({ threads: ["a", "b"], marks: [
		{ name: "x", begin: 0, end: 10 }, { name: "y", begin: 5, end: 20 },
		{ name: "x", begin: 10, end: 12 },
		{ name: "x", begin: 3, end: 4, thread: 1 } ] });
	const { base } = indexOf(profile), { start, row } = base.intervals;

	assert.deepEqual([...base.intervalLane], [0, 2, 3]);
	assert.deepEqual([...start], [0, 2, 3, 4]);
	assert.deepEqual([...row], [0, 2, 1, 3]);
});

test("tracks follow each other, and the busiest is first", () => {
	const profile = synthetic(SMALL), { base, bands } = indexOf(profile);
	const tracks = layOutTracks(profile, base, bands, new Set([0]));
	const threads = tracks.filter(t => t.kind === "thread");
	let y = 0;

	for (const [i, track] of tracks.entries()) {
		assert.equal(track.y, y);
		assert.equal(trackAt(tracks, y), i);
		assert.equal(trackAt(tracks, y + track.height - 0.5), i);
		y += track.height;
	}
	assert.equal(trackAt(tracks, y), -1);
	assert.equal(threads.length, SMALL.threads);
	assert.ok(threads[0]!.rows > 5, "an open track has all depths");
	assert.ok(threads.filter(t => profile.threads[t.id]!.process === 0)
		.every((t, i, all) => !i || base.busy[t.id]! <=
		       base.busy[all[i - 1]!.id]!));
});

test("the time line opens at a trigger's moment, or at the selection", () => {
	const profile = smallProfile({ durationNs: 10e9 });

	assert.deepEqual(firstRange(profile, ALL), { from: 0, to: 10e9 });
	profile.meta.openAtNs = 4e9;
	assert.deepEqual(firstRange(profile, ALL), { from: 3.95e9, to: 4.05e9 });
	profile.meta.openForNs = 0.5e9;
	assert.deepEqual(firstRange(profile, ALL), { from: 3.4e9, to: 4.05e9 });
	profile.meta.openForNs = 0.02e9;
	assert.deepEqual(firstRange(profile, { ...ALL, from: 1e9, to: 2e9 }),
			 { from: 0.85e9, to: 2.15e9 });
	profile.meta.openAtNs = 10e9;
	assert.deepEqual(firstRange(profile, ALL), { from: 9.9e9, to: 10e9 });
});

test("zooms keep the time under the pointer and stay in the recording", () => {
	const profile = smallProfile({ durationNs: 1e9 });
	const all = { from: 0, to: 1e9 };
	const near = zoomRange(profile, all, 3e8, 0.1);

	close((3e8 - near.from) / (near.to - near.from), 0.3, "share");
	assert.deepEqual(zoomRange(profile, near, 3e8, 1e9), all);
	assert.deepEqual(clampRange(profile, { from: -50, to: 450 }),
			 { from: 0, to: 500 });
	assert.ok(zoomRange(profile, all, 0, 0).to > 0);
});

test("ticks are at 1, 2 and 5, with the digits that tell them apart", () => {
	assert.deepEqual([1, 1.1, 3, 60, 4e8].map(niceStep),
			 [1, 2, 5, 100, 5e8]);
	assert.equal(tickText(1.25e9, 5e7), "1.25 s");
	assert.equal(tickText(3e9, 1e9), "3 s");
	assert.equal(tickText(1, 1), "0.000000001 s");
});

/* -- names and pixels --------------------------------------------------- */

test("a cut name fits, and one character more would not", () => {
	/* as in a proportional font */
	const width = (text: string) => [...text].reduce((sum, c) => sum +
		(c === "i" ? 3 : c === "…" ? 9 : c > "\u{ffff}" ? 14 : 7), 0);
	const names = ["std::map<int, std::string>::insert(iiiiiiiiiiiiii)",
		       "f", "id", "\u{1f600}\u{1f600}\u{1f600}\u{1f600}ab"];

	for (const name of names)
		for (let room = 0; room < 400; room += 3) {
			const cut = cutMiddle(name, room, width);

			assert.ok(width(cut) <= room);
			if (cut === name || cut === "")
				continue;
			const [head, tail] = cut.split("…");

			assert.ok(name.startsWith(head!) && name.endsWith(tail!));
			assert.ok(![...cut].some(c => c >= "\ud800" &&
				c <= "\udfff" && c.length === 1));
			const chars = [...name], n = [...head! + tail!].length;
			const up = Math.ceil((n + 1) / 2);

			assert.ok(n + 1 === chars.length || width(chars.slice(0,
				up).join("") + "…" + chars.slice(chars.length -
				(n + 1 - up)).join("")) > room);
		}
});

test("names that act on text are shown as escapes, long ones cut", () => {
	assert.equal(shown("a\u202eb\x1b[1m"), "a\\u202eb\\x1b[1m");
	assert.ok(shown("x".repeat(65536)).length < 1000);
	assert.ok(shown("\u202e".repeat(65536)).length < 1000);
});

test("patterns move with what they fill", () => {
	const draw = (x: number, shift: number) => {
		const r = { width: 60, height: 12,
			    pixels: new Uint32Array(720) };

		fillPattern(r, x, 0, x + 30, 12, 1, "hatch", 1, shift);
		return [...r.pixels].filter((_, i) => i % 60 >= x &&
					    i % 60 < x + 30).join("");
	};

	assert.equal(draw(20, 0), draw(13, 7));
	assert.ok(draw(20, 0).includes("1"));
});

test("colours keep their channels", () => {
	assert.equal(pixelOf("#112233"), 0xff332211);
	assert.equal(mix(0xff0000ff, 0xffff0000, 0.5), 0xff800080);
});
