/* SPDX-License-Identifier: MIT */
/*
 * flame_graph.tsx - a tree of frames by their width: the component
 *
 * Callers on top (an icicle) or at the bottom (a flame graph).  Beside the
 * canvas is a tree for keyboards and readers of screens: of the tree's frames
 * it has the current one, its callers and its neighbours.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState }
	from "preact/hooks";
import { LAYERS, NONE, type Profile } from "../profile";
import type { Selection } from "../select";
import { cut, formatPercent, formatWeight, plural, visible } from "../text";
import type { Tree } from "../tree";
import "./draw.css";
import {
	carried, focusChange, pointerClick, pointerLeave, pointerMove, pressKey,
	reveal, settle, topOf, zoomBack, zoomReset, type FlameControl, type Zoom,
} from "./flame_control";
import { drawFlame, fontOf, labelOf, ROW } from "./flame_draw";
import { foundIn, layOut, rowsIn, siblings, type Layout }
	from "./flame_layout";
import { frameText, nodeName, stackText } from "./flame_text";
import { foundFunctions } from "../engine/search";
import { labelsOf, widthIn, type Labels } from "./labels";
import { useSurface, type Surface } from "./surface";
import { hideTip } from "./tip_box";

export interface FlameGraphProps {
	profile: Profile;
	tree: Tree;
	selection: Selection;
	select: (next: Selection) => void;
	icicle: boolean;
	onFunction: (func: number) => void;
}

/* -- state -------------------------------------------------------------- */

function useZoom(tree: Tree): [Zoom, (next: Partial<Zoom>) => void] {
	const [kept, setKept] = useState<Zoom>({ tree, tops: [0], current: 0 });
	const zoom = useMemo(() => kept.tree === tree ? kept :
			     carried(kept, tree), [kept, tree]);

	return [zoom, next => setKept({ ...zoom, ...next })];
}

/* Copies a text; and for some seconds, what became of that. */
function useCopy(): [string, (text: string) => void] {
	const [said, setSaid] = useState("");

	useEffect(() => {
		const timer = said && setTimeout(() => setSaid(""), 4000);

		return () => clearTimeout(timer || undefined);
	}, [said]);
	return [said, async text => {
		try {
			await navigator.clipboard.writeText(text);
			setSaid(`Copied ${plural(text.split("\n").length,
						 "frame")}.`);
		} catch {
			setSaid("The browser does not allow copying.");
		}
	}];
}

/* The width in CSS pixels, which decides how many frames are seen. */
function useWidth(element: { current: HTMLElement | null }): number {
	const [width, setWidth] = useState(0);

	useLayoutEffect(() => {
		const measure = () => setWidth(element.current!.clientWidth);
		const observer = new ResizeObserver(measure);

		observer.observe(element.current!);
		measure();
		return () => observer.disconnect();
	}, []);
	return width;
}

type Ref<T> = { current: T | null };

interface Elements {
	scroller: Ref<HTMLDivElement>;
	tip: Ref<HTMLDivElement>;
	twin: Ref<HTMLDivElement>;
}

/* What handlers change, kept over renderings; elements are there by then. */
function useControl(props: FlameGraphProps, layout: Layout, scale: number,
		    zoom: Zoom, acts: Pick<FlameControl, "setZoom" | "copy">,
		    elements: Elements): FlameControl {
	const { profile, selection, icicle, onFunction } = props;
	const found = useMemo(() => foundFunctions(profile,
		selection.search), [profile, selection.search]);
	const ref = useRef<FlameControl | null>(null);

	ref.current ??= {
		scene: { profile, layout, icicle, found, scrollTop: 0,
			 current: 0, hasFocus: false, hover: -1 },
		scale, zoom, ...acts, onFunction, invalidate: () => undefined,
		pressed: NONE, pending: "",
		get scroller() { return elements.scroller.current!; },
		get tip() { return elements.tip.current!; },
		get twin() { return elements.twin.current!; },
	};
	const { scene } = ref.current;

	Object.assign(ref.current, { scale, zoom, ...acts, onFunction });
	if (scene.layout !== layout)
		scene.hover = -1;
	Object.assign(scene, { profile, layout, icicle, found,
			       current: zoom.current });
	return ref.current;
}

/* -- the canvas --------------------------------------------------------- */

function labelsFor({ context, scale }: Surface, profile: Profile, tree: Tree):
		Labels {
	const threads = profile.functions.n, rest = threads +
		profile.threads.length;
	const ofThread = new Map<number, number>();

	for (let c = tree.firstChild[0] ?? NONE; c !== NONE;
	     c = tree.nextSibling[c]!)
		ofThread.set(labelOf(profile, tree, c), c);
	context.font = fontOf(scale);
	return labelsOf(id => id < threads ? profile.functions.name[id]! :
		id === rest ? "all" : id > rest ? "[no stack]" :
		nodeName(profile, tree, ofThread.get(id) ?? 0),
		widthIn(context));
}

/* The names again while they are of the same tree, in the same font. */
function useLabels(profile: Profile, tree: Tree):
		(surface: Surface) => Labels {
	const kept = useRef<{ tree: Tree; scale: number; labels: Labels } |
			    null>(null);

	return surface => {
		const { scale } = surface;

		if (kept.current?.tree !== tree || kept.current.scale !== scale)
			kept.current = { tree, scale, labels: labelsFor(surface,
				profile, tree) };
		return kept.current.labels;
	};
}

const MOST = 0.72;		/* of the window's height */
const LEAST = 240;

export function FlameGraph(props: FlameGraphProps) {
	const { profile, tree, icicle } = props;
	const [zoom, setZoom] = useZoom(tree), top = topOf(zoom);
	const canvas = useRef<HTMLCanvasElement>(null);
	const scroller = useRef<HTMLDivElement>(null);
	const tip = useRef<HTMLDivElement>(null);
	const twin = useRef<HTMLDivElement>(null);
	const width = useWidth(scroller);
	const scale = Math.min(3, devicePixelRatio || 1);
	const layout = useMemo(() => layOut(tree, top, Math.max(1,
		Math.round(width * scale))), [tree, top, width, scale]);
	const [copied, copy] = useCopy();
	const control = useControl(props, layout, scale, zoom, { setZoom,
		copy: node => copy(stackText(profile, tree, node)),
	}, { scroller, tip, twin });
	const labels = useLabels(profile, tree);
	const height = ROW * rowsIn(layout);
	const shown = Math.min(height, Math.max(LEAST, Math.round(MOST *
		innerHeight)));

	control.invalidate = useSurface(canvas, surface => drawFlame(surface,
		control.scene, labels(surface)));
	useLayoutEffect(() => {
		reveal(control, top);
		hideTip(tip.current);
	}, [layout, icicle]);
	useLayoutEffect(() => settle(control));
	useEffect(control.invalidate);
	return <div class="drawing flame">
		<div class="buttons" role="group" aria-label="Zoom">
			<button disabled={top === 0}
				onClick={() => zoomReset(control)}>
				Whole graph</button>
			<button disabled={zoom.tops.length < 2}
				onClick={() => zoomBack(control)}>
				Zoom back</button>
			<button disabled={zoom.current === 0}
				title="of the current frame, as text"
				onClick={() => control.copy(zoom.current)}>
				Copy stack</button>
			<Shown {...props} top={top} copied={copied}
				found={control.scene.found} />
		</div>
		<div class="scroll" ref={scroller}
			style={{ height: `${shown + 2}px` }}
			onScroll={() => {
				control.scene.scrollTop =
					scroller.current!.scrollTop;
				control.invalidate();
			}}>
			<canvas ref={canvas} aria-hidden="true"
				style={{ height: `${shown}px` }}
				onClick={e => pointerClick(control, e)}
				onPointerMove={e => pointerMove(control, e)}
				onPointerLeave={() => pointerLeave(control)} />
			<div style={{ height: `${height - shown}px` }} />
			<div ref={twin} onKeyDown={e => pressKey(control, e)}
				onFocusIn={() => focusChange(control, true)}
				onFocusOut={() => focusChange(control, false)}>
				<Twin profile={profile} layout={layout}
					current={zoom.current} />
			</div>
		</div>
		<div class="tip" ref={tip} hidden aria-hidden="true" />
		<Legend profile={profile} tree={tree} layout={layout}
			found={control.scene.found} />
		<Keys icicle={icicle} isInverted={tree.isInverted} />
	</div>;
}

/* -- beside it ---------------------------------------------------------- */

const MAX_SIBLINGS = 20;	/* to each side, in the document */

function Twin({ profile, layout, current }: { profile: Profile;
		layout: Layout; current: number }) {
	const { tree, top } = layout;
	const all = siblings(layout, current), at = all.indexOf(current);
	const from = Math.max(0, at - MAX_SIBLINGS);
	const path: number[] = [];

	for (let n = tree.parent[current]!; n !== NONE; n = tree.parent[n]!)
		path.unshift(n);
	const item = (node: number, place: number, size: number) => {
		const { title, lines } = frameText(profile, tree, node, top);

		return <div role="treeitem" key={node} data-node={node}
			tabIndex={node === current ? 0 : -1}
			aria-level={tree.depth[node]! + 1}
			aria-posinset={place} aria-setsize={size}
			aria-selected={node === top}
			aria-expanded={tree.firstChild[node] === NONE ?
				undefined : node !== current}>
			{cut(title, 300)}; {lines.join("; ")}
		</div>;
	};

	return <div role="tree" class="unseen" aria-label="Flame graph"
		aria-orientation="horizontal"
		aria-describedby="flame-keys">
		{path.map(node => item(node, 1, 1))}
		{all.slice(from, at + MAX_SIBLINGS + 1).map((node, i) =>
			item(node, from + i + 1, all.length))}
		{at < 0 && item(current, 1, 1)}
	</div>;
}

/* What has all of the width, and what the search finds. */
function Shown({ profile, tree, selection, top, found, copied }:
	       FlameGraphProps & { top: number; found: Uint8Array | null;
				   copied: string }) {
	const hits = useMemo(() => found && foundIn(tree, found),
			     [tree, found]);

	return <span role="status">
		{top > 0 && `${cut(visible(nodeName(profile, tree, top)), 80)}: ${
			formatPercent(tree.total[top]!, tree.total[0]!)
			} of all. `}
		{hits && `“${cut(visible(selection.search), 40)}” is in ${
			formatPercent(hits.total, tree.total[0]!)} of all (${
			plural(hits.frames, "frame")}). `}
		{copied}
	</span>;
}

function Legend({ profile, tree, layout, found }: { profile: Profile;
		tree: Tree; layout: Layout; found: Uint8Array | null }) {
	const seen = useMemo(() => {
		const layers = new Set<number>();
		let inlined = false;

		for (const [i, node] of layout.node.entries()) {
			const func = tree.func[node]!;

			if (func === NONE || layout.rest[i])
				continue;
			if (tree.inlined[node])
				inlined = true;
			else
				layers.add(profile.functions.layer[func]!);
		}
		return { layers, inlined, rest: layout.rest.some(n => n > 0) };
	}, [layout, profile]);

	return <ul class="legend">
		{tree.change ? <>
			<li><i class="less" />less than A</li>
			<li><i class="same" />no change, or few samples</li>
			<li><i class="more" />more than A</li>
		</> : LAYERS.map((layer, i) => seen.layers.has(i) &&
			<li key={layer}><i class={layer} />{layer}</li>)}
		{!tree.change && seen.inlined &&
			<li><i class="inlined" />native, inlined</li>}
		{tree.waiting[0]! > 0 &&
			<li><i class="blocked" />share that waited, of {
				formatWeight(tree.waiting[0]!, tree.unit)}</li>}
		{seen.rest && <li><i class="rest" />smaller frames</li>}
		{found && <li><i class="hit" />marked</li>}
	</ul>;
}

function Keys({ icicle, isInverted }: { icicle: boolean;
		isInverted: boolean | undefined }) {
	const [inner, outer] = isInverted ? ["caller", "callee"] :
			       ["callee", "caller"];

	return <details>
		<summary>Keys and mouse</summary>
		<p class="keys" id="flame-keys">
			click, <kbd>Enter</kbd>: give a frame all of the width ·{" "}
			<kbd>Escape</kbd> whole graph · <kbd>Backspace</kbd>{" "}
			zoom back · <kbd>←</kbd> <kbd>→</kbd> neighbours ·{" "}
			<kbd>{icicle ? "↓" : "↑"}</kbd> widest {inner} ·{" "}
			<kbd>{icicle ? "↑" : "↓"}</kbd> {outer} ·{" "}
			<kbd>Home</kbd> all · double click, <kbd>s</kbd>{" "}
			callers and callees of the function · <kbd>c</kbd> copy
			the stack
		</p>
	</details>;
}
