/* SPDX-License-Identifier: MIT */
/*
 * time_line.tsx - threads and CPUs over time: the component
 *
 * A canvas with a table beside it: tracks with their times, for readers of
 * tables and of screens.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { tableOf } from "../engine/call_index";
import { intervalsOf, matchingCalls } from "../engine/chosen";
import { LAYERS, type Profile } from "../profile";
import type { Selection } from "../select";
import { runAtOnce, runInSlices } from "../slices";
import { formatNs, formatWeight, visible } from "../text";
import { N_LAYERS, weightIn } from "./bands";
import "./draw.css";
import { foundFunctions } from "../engine/search";
import { labelsOf, widthIn } from "./labels";
import { buildSpans, timeIn, type Spans } from "./spans";
import { useSurface, type Surface } from "./surface";
import {
	cancelGesture, KEYS, onKey, pointerDown, pointerDrag, pointerUp, tipOf,
	wheel, wholeView, type Control, type Point,
} from "./time_control";
import { drawTimeLine, fontOf } from "./time_draw";
import { bandEvent, timeIndex, type TimeBands, type TimeBase }
	from "./time_index";
import { hasWakers } from "./time_marks";
import { clampRange, firstRange, TOP, tickText, type Range, type Scene,
	 type TimeLabels } from "./time_scene";
import { hideTip, showTip } from "./tip_box";
import { heightOf, layOutTracks, type Track } from "./tracks";

export interface TimeLineProps {
	profile: Profile;
	selection: Selection;
	select: (next: Selection) => void;
}

interface Index {
	base: TimeBase;
	bands: TimeBands;
}

/* Made in slices; null until then. */
function useIndex(profile: Profile, selection: Selection): Index | null {
	const event = bandEvent(profile, selection);
	const layers = selection.layers?.join(",") ?? "";
	const [index, setIndex] = useState<Index | null>(null);

	useEffect(() => runInSlices(timeIndex(profile, event, selection),
				    setIndex),
		  [profile, event, layers, selection.module]);
	return index;
}

export function TimeLine(props: TimeLineProps) {
	const index = useIndex(props.profile, props.selection);

	return index ? <Tracks {...props} index={index} /> :
	       <p role="status">Adding up samples and calls …</p>;
}

/* -- the canvas --------------------------------------------------------- */

function labelsFor(surface: Surface, profile: Profile, tracks: Track[]):
		TimeLabels {
	surface.context.font = fontOf(surface.scale);
	const width = widthIn(surface.context);

	return {
		track: labelsOf(i => tracks[i]?.name ?? "", width),
		func: labelsOf(f => profile.functions.name[f] ?? "", width),
		word: labelsOf(w => profile.words[w] ?? "", width),
	};
}

const MOST = 0.72;		/* of the window's height */

function usePointer(control: Control, canvas: { current: HTMLCanvasElement |
		null }, tipBox: { current: HTMLDivElement | null },
		line: { current: HTMLDivElement | null }) {
	const at = (event: MouseEvent): Point => {
		const box = canvas.current!.getBoundingClientRect();

		return { x: event.clientX - box.left,
			 y: event.clientY - box.top };
	};
	const hide = () => {
		hideTip(tipBox.current);
		hideTip(line.current);
	};
	const hover = (event: PointerEvent) => {
		const point = at(event), tip = tipOf(control, point);
		const element = line.current!;

		element.hidden = false;
		element.style.transform = `translateX(${Math.round(point.x)}px)`;
		if (tip)
			showTip(tipBox.current!, tip.title, tip.lines, point.x,
				point.y);
		else
			hideTip(tipBox.current);
	};

	useEffect(() => {
		const element = canvas.current!;
		const onWheel = (event: WheelEvent) => {
			const unit = event.deltaMode ? 30 : 1;

			if (!wheel(control, at(event), event.deltaX * unit,
				   event.deltaY * unit, event.shiftKey))
				return;
			event.preventDefault();
			hide();
		};

		/* a listener that is not passive can keep the page in place */
		element.addEventListener("wheel", onWheel, { passive: false });
		return () => element.removeEventListener("wheel", onWheel);
	}, []);
	return {
		onPointerDown: (event: PointerEvent) => {
			if (event.button > 1)
				return;
			canvas.current!.setPointerCapture(event.pointerId);
			pointerDown(control, at(event), event.shiftKey ||
				    event.button === 1);
			hide();
		},
		onPointerMove: (event: PointerEvent) => control.gesture ?
			pointerDrag(control, at(event)) : hover(event),
		onPointerUp: (event: PointerEvent) => pointerUp(control,
			at(event), event.ctrlKey || event.metaKey),
		onPointerCancel: () => cancelGesture(control),
		onPointerLeave: hide,
		onDblClick: (event: MouseEvent) => at(event).y > TOP &&
			wholeView(control),
	};
}

/* By thread the calls that the selection is inside of. */
function insideOf(profile: Profile, selection: Selection): Spans | null {
	if (!selection.calls)
		return null;
	const { start, begin, end, n } = intervalsOf(profile,
		tableOf(profile, selection.calls.func),
		matchingCalls(profile, selection, selection.calls));
	const nLanes = profile.threads.length, lane = new Uint32Array(n);

	for (let t = 0; t < nLanes; t++)
		lane.fill(t, start[t], start[t + 1]);
	return runAtOnce(buildSpans({ n, nLanes, lane, begin,
				      duration: end.map((at, i) =>
					at - begin[i]!) }));
}

/* What handlers change, kept over renderings. */
function useControl(props: TimeLineProps, index: Index, tracks: Track[]):
		Control {
	const { profile, selection } = props;
	const ref = useRef<Control | null>(null);

	ref.current ??= {
		scene: {
			profile, ...index, tracks, selection, drag: null,
			view: firstRange(profile, selection), scrollTop: 0,
			current: -1, hasFocus: false, showWakers: false,
			found: null, inside: null,
		},
		width: 1, gesture: null, select: props.select,
		changed: () => undefined, scrollTo: () => undefined,
		visibleHeight: () => 0, toggleOpen: () => undefined,
		announce: () => undefined,
	};
	Object.assign(ref.current.scene, { profile, ...index, tracks, selection });
	ref.current.select = props.select;
	return ref.current;
}

/* A selection from elsewhere that is out of sight is brought into view. */
function follow(control: Control, { from, to }: Selection): void {
	const { view, profile } = control.scene;

	if ((from > 0 || to < Infinity) && (to <= view.from || from >= view.to))
		control.scene.view = firstRange(profile,
						control.scene.selection);
	control.scene.view = clampRange(profile, control.scene.view);
}

function Tracks(props: TimeLineProps & { index: Index }) {
	const { profile, selection, index } = props;
	const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
	const [status, setStatus] = useState("");
	const [wakers, setWakers] = useState(false);
	const tracks = useMemo(() => layOutTracks(profile, index.base,
		index.bands, open), [profile, index, open]);
	const control = useControl(props, index, tracks);
	const canvas = useRef<HTMLCanvasElement>(null);
	const scroller = useRef<HTMLDivElement>(null);
	const tipBox = useRef<HTMLDivElement>(null);
	const line = useRef<HTMLDivElement>(null);
	const labels = useRef<{ scale: number; tracks: Track[];
				labels: TimeLabels } | null>(null);
	const invalidate = useSurface(canvas, surface => {
		const kept = labels.current;

		control.width = surface.width / surface.scale;
		if (kept?.scale !== surface.scale || kept.tracks !== tracks)
			labels.current = { scale: surface.scale, tracks,
				labels: labelsFor(surface, profile, tracks) };
		drawTimeLine(surface, control.scene, labels.current!.labels);
	});
	const pointer = usePointer(control, canvas, tipBox, line);
	const height = TOP + heightOf(tracks);
	const shown = Math.min(height + 2, Math.max(260, MOST * innerHeight));

	control.scene.found = useMemo(() => foundFunctions(profile,
		selection.search), [profile, selection.search]);
	control.scene.inside = useMemo(() => insideOf(profile, selection),
				       [profile, selection]);
	control.changed = () => {
		hideTip(tipBox.current);
		setWakers(control.scene.showWakers);
		invalidate();
	};
	control.scrollTo = top => scroller.current!.scrollTo({ top });
	control.visibleHeight = () => scroller.current!.clientHeight;
	control.announce = setStatus;
	control.toggleOpen = thread => setOpen(old => {
		const next = new Set(old);

		if (!next.delete(thread))
			next.add(thread);
		return next;
	});
	useEffect(() => follow(control, selection),
		  [selection.from, selection.to]);
	useEffect(invalidate);
	return <div class="drawing timeline">
		<div class="buttons" role="group" aria-label="Time line">
			<button onClick={() => wholeView(control)}>
				Whole recording</button>
			{hasWakers(profile) && <button aria-pressed={wakers}
				onClick={() => {
					control.scene.showWakers = !wakers;
					control.changed();
				}}>Wakers</button>}
			<button onClick={() => setOpen(open.size ? new Set() :
				new Set(tracks.filter(t => t.kind === "thread")
					.map(t => t.id)))}
				aria-pressed={open.size > 0}>
				All depths of calls</button>
		</div>
		<div class="scroll" ref={scroller} tabIndex={0}
			role="application" aria-label="Time line"
			aria-describedby="timeline-keys"
			style={{ height: `${shown}px` }}
			onScroll={() => {
				control.scene.scrollTop =
					scroller.current!.scrollTop;
				invalidate();
			}}
			onFocus={() => {
				control.scene.hasFocus = scroller.current!
					.matches(":focus-visible");
				invalidate();
			}}
			onBlur={() => {
				control.scene.hasFocus = false;
				invalidate();
			}}
			onKeyDown={event => {
				control.scene.hasFocus = true;
				if (onKey(control, event))
					event.preventDefault();
				else if (event.key === "Escape")
					cancelGesture(control);
			}}>
			<canvas ref={canvas} aria-hidden="true" {...pointer}
				style={{ height: `${shown - 2}px` }} />
			<div style={{ height: `${Math.max(0,
				height - shown + 2)}px` }} />
		</div>
		<div class="pointer" ref={line} hidden />
		<div class="tip" ref={tipBox} hidden aria-hidden="true" />
		<p class="unseen" role="status">{status}</p>
		<Legend profile={profile} index={index} />
		<Keys />
		<TableTwin control={control} tracks={tracks} />
	</div>;
}

/* -- beside it ---------------------------------------------------------- */

function Legend({ profile, index }: { profile: Profile; index: Index }) {
	const { waits } = index.base, { sums } = index.bands.all;
	const has = (preempted: number) =>
		profile.threads.some((_, t) => waits.start[2 * t + preempted +
			1]! > waits.start[2 * t + preempted]!);
	const event = profile.events[index.bands.event];

	return <ul class="legend">
		{event && LAYERS.filter((_, l) => sums[sums.length - N_LAYERS +
			l]! > 0).map(layer => <li key={layer}>
			<i class={layer} />{layer}</li>)}
		{profile.intervals.n > 0 && <li><i class="interval" />marked by
			the program</li>}
		{has(0) && <li><i class="blocked" />blocked</li>}
		{has(1) && <li><i class="preempted" />preempted</li>}
		{event && <li>bands: {visible(event.name)}, {index.bands.period ?
			"share of the time" : "share of the events"}</li>}
	</ul>;
}

function Keys() {
	return <details>
		<summary>Keys and mouse</summary>
		<p class="keys" id="timeline-keys">
			{KEYS.map(({ shown, does }) => <>
				<kbd>{shown}</kbd> {does}{" · "}</>)}
			drag: select a time · Shift and drag, Shift and wheel:
			move · wheel: zoom · double click: all · click a name:
			only this thread (Ctrl: this one too) · the strip at the
			top: the whole recording
		</p>
	</details>;
}

const MAX_ROWS = 200;		/* of the table */

function twinRow(scene: Scene, track: Track, view: Range) {
	const { base, bands, profile } = scene;
	const of = track.kind === "cpu" ? bands.byCpu : bands.byThread;
	const unit = profile.events[bands.event]?.unit ?? "count";
	const wait = (preempted: number) => track.kind !== "thread" ? "–" :
		formatNs(timeIn(base.waits, 2 * track.id + preempted,
				view.from, view.to));

	return <tr key={`${track.kind} ${track.id}`}>
		<th scope="row" class="text">{visible(track.name)}</th>
		<td>{formatWeight(weightIn(of, track.id, view.from, view.to),
				  unit)}</td>
		<td>{wait(0)}</td>
		<td>{wait(1)}</td>
	</tr>;
}

/* The tracks in the visible range; made when it is opened, or asked for. */
function TableTwin({ control, tracks }: { control: Control; tracks: Track[] }) {
	const [view, setView] = useState<Range | null>(null);
	const rows = tracks.filter(t => t.kind === "thread" || t.kind === "cpu");
	const update = () => setView({ ...control.scene.view });

	return <details onToggle={event => (event.currentTarget as
			HTMLDetailsElement).open ? update() : setView(null)}>
		<summary>The tracks as a table</summary>
		{view && <>
			<button onClick={update}>For what is visible now</button>
			<div class="grid" tabIndex={0} role="region"
				aria-label="Tracks"><table>
				<caption>From {tickText(view.from, 1000)} to{" "}
					{tickText(view.to, 1000)}</caption>
				<thead><tr><th scope="col" class="text">Track</th>
					<th scope="col">Samples</th>
					<th scope="col">Blocked</th>
					<th scope="col">Preempted</th></tr></thead>
				<tbody>{rows.slice(0, MAX_ROWS).map(track =>
					twinRow(control.scene, track, view))}
				</tbody>
			</table></div>
			{rows.length > MAX_ROWS && <p>{rows.length - MAX_ROWS}
				{" "}more tracks are less busy.</p>}
		</>}
	</details>;
}
