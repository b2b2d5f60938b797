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
import { matches } from "../views/table";
import "./draw.css";
import { drawFlame, fontOf, labelOf, ROW, rowAt, rowTop, type FlameScene }
	from "./flame_draw";
import {
	beside, boxAt, boxOf, foundIn, layOut, rowsIn, sameNode, siblings,
	widestCallee, type Layout,
} from "./flame_layout";
import { frameText, nodeName, restText } from "./flame_text";
import { labelsOf, widthIn, type Labels } from "./labels";
import { useSurface, type Surface } from "./surface";
import { hideTip, showTip } from "./tip_box";

export interface FlameGraphProps {
	profile: Profile;
	tree: Tree;
	selection: Selection;
	select: (next: Selection) => void;
	icicle: boolean;
	onFunction: (func: number) => void;
}

/* -- zoom --------------------------------------------------------------- */

/* Of one tree: what was shown, the last one now; and the current frame. */
interface Zoom {
	tree: Tree;
	tops: number[];
	current: number;
}

/* In another tree, as after a change of the selection, the same functions. */
function carried(zoom: Zoom, tree: Tree): Zoom {
	const same = (node: number) => sameNode(zoom.tree, node, tree);

	return {
		tree, current: same(zoom.current),
		tops: [0, ...zoom.tops.slice(1).map(same).filter(n => n > 0)],
	};
}

function useZoom(tree: Tree): [Zoom, (next: Partial<Zoom>) => void] {
	const [kept, setKept] = useState<Zoom>({ tree, tops: [0], current: 0 });
	const zoom = useMemo(() => kept.tree === tree ? kept :
			     carried(kept, tree), [kept, tree]);

	return [zoom, next => setKept({ ...zoom, ...next })];
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

interface Kept<T> {
	key: unknown[];
	value: T;
}

/* @make's value again while @key has the same items. */
function keep<T>(ref: { current: Kept<T> | null }, key: unknown[],
		 make: () => T): T {
	if (!ref.current || ref.current.key.some((k, i) => k !== key[i]))
		ref.current = { key, value: make() };
	return ref.current.value;
}

/* By function whether the search finds it; null: there is no search. */
function useFound(profile: Profile, search: string): Uint8Array | null {
	return useMemo(() => search === "" ? null :
		Uint8Array.from({ length: profile.functions.n }, (_, func) =>
			matches(profile, func, search) ? 1 : 0),
		[profile, search]);
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

const MOST = 0.72;		/* of the window's height */

export function FlameGraph(props: FlameGraphProps) {
	const { profile, tree, selection, icicle, onFunction } = props;
	const [zoom, setZoom] = useZoom(tree);
	const scroller = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const tipBox = useRef<HTMLDivElement>(null);
	const twin = useRef<HTMLDivElement>(null);
	const live = useRef({ scrollTop: 0, hover: -1, hasFocus: false });
	const labels = useRef<Kept<Labels> | null>(null);
	const pressed = useRef(NONE);
	const width = useWidth(scroller);
	const scale = Math.min(3, devicePixelRatio || 1);
	const top = zoom.tops[zoom.tops.length - 1]!;
	const layout = useMemo(() => layOut(tree, top, Math.max(1,
		Math.round(width * scale))), [tree, top, width, scale]);
	const found = useFound(profile, selection.search);
	const scene = (): FlameScene => ({ profile, layout, icicle, found,
		current: zoom.current, ...live.current });
	const invalidate = useSurface(canvas, surface => drawFlame(surface,
		scene(), keep(labels, [profile, tree, surface.scale],
			() => labelsFor(surface, profile, tree))));
	const height = ROW * rowsIn(layout);
	const shown = Math.min(height, Math.max(240, Math.round(MOST *
		innerHeight)));

	const zoomTo = (node: number) => {
		live.current.hover = -1;
		hideTip(tipBox.current);
		setZoom({ current: node, tops: node === top ? zoom.tops :
			[...zoom.tops, node].slice(-100) });
	};
	const back = () => zoom.tops.length > 1 && setZoom({
		tops: zoom.tops.slice(0, -1), current: top });
	const reset = () => setZoom({ tops: [0], current: zoom.current });
	const openFunction = (node: number) => node !== NONE &&
		tree.func[node] !== NONE && onFunction(tree.func[node]!);
	const showAt = (box: number, x: number, y: number) => {
		const node = layout.node[box]!, text = layout.rest[box] ?
			restText(profile, tree, node, layout.rest[box]!) :
			frameText(profile, tree, node, top);

		showTip(tipBox.current!, text.title, text.lines, x, y);
	};
	const reveal = (node: number) => {
		const element = scroller.current!;
		const y = rowTop(scene(), tree.depth[node]!);

		if (y < element.scrollTop)
			element.scrollTop = y;
		else if (y + ROW > element.scrollTop + element.clientHeight)
			element.scrollTop = y + ROW - element.clientHeight;
		live.current.scrollTop = element.scrollTop;
	};
	const moveTo = (node: number) => {
		if (node === NONE)
			return;
		setZoom({ current: node });
		reveal(node);
		const box = boxOf(layout, node);

		showAt(box, offsetLeft(canvas.current!) +
		       Math.max(0, layout.left[box]!) / scale,
		       offsetTop(scroller.current!) + rowTop(scene(),
			tree.depth[node]!) - live.current.scrollTop);
	};

	useLayoutEffect(() => {
		reveal(top);
		hideTip(tipBox.current);
	}, [layout, icicle]);
	useEffect(invalidate);
	/* focus is on the tree's one tab stop, wherever that is now */
	useLayoutEffect(() => {
		if (live.current.hasFocus)
			focusCurrent(twin.current!);
	}, [zoom.current, layout]);
	const boxUnder = (event: MouseEvent): number => {
		const box = canvas.current!.getBoundingClientRect();

		return boxAt(layout, rowAt(scene(), event.clientY - box.top),
			     (event.clientX - box.left) * scale);
	};
	const onClick = (event: MouseEvent) => {
		const box = boxUnder(event);

		focusCurrent(twin.current!);
		if (event.detail > 1) {
			/* the first click moved what is under the pointer */
			openFunction(pressed.current);
			return;
		}
		const node = layout.node[box] ?? NONE;

		pressed.current = layout.rest[box] ? NONE : node;
		if (box >= 0)
			zoomTo(layout.rest[box] ? tree.parent[node]! : node);
	};
	const onMove = (event: PointerEvent) => {
		const box = boxUnder(event);
		const at = tipBox.current!.parentElement!
			.getBoundingClientRect();

		if (box !== live.current.hover) {
			live.current.hover = box;
			invalidate();
		}
		if (box < 0)
			hideTip(tipBox.current);
		else
			showAt(box, event.clientX - at.left,
			       event.clientY - at.top);
	};
	const onKey = (event: KeyboardEvent) => {
		const node = zoom.current, key = !icicle && {
			ArrowUp: "ArrowDown", ArrowDown: "ArrowUp",
		}[event.key] || event.key;
		const act = {
			ArrowRight: () => moveTo(beside(layout, node, 1)),
			ArrowLeft: () => moveTo(beside(layout, node, -1)),
			ArrowDown: () => moveTo(widestCallee(layout, node)),
			ArrowUp: () => moveTo(tree.parent[node]!),
			Home: () => moveTo(0),
			Enter: () => zoomTo(node),
			" ": () => zoomTo(node),
			Backspace: back,
			s: () => openFunction(node),
		}[key];

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (act)
			act();
		else if (key === "Escape" && top)
			reset();
		else if (key === "Escape")
			hideTip(tipBox.current);
		else
			return;
		event.preventDefault();
	};
	const onFocus = (hasFocus: boolean) => {
		live.current.hasFocus = hasFocus;
		if (!hasFocus)
			hideTip(tipBox.current);
		else
			reveal(zoom.current);
		invalidate();
	};

	return <div class="drawing flame">
		<div class="buttons" role="group" aria-label="Zoom">
			<button disabled={top === 0} onClick={reset}>
				Whole graph</button>
			<button disabled={zoom.tops.length < 2} onClick={back}>
				Zoom back</button>
			<Shown {...props} top={top} found={found} />
		</div>
		<div class="scroll" ref={scroller}
			style={{ height: `${shown + 2}px` }}
			onScroll={() => {
				live.current.scrollTop =
					scroller.current!.scrollTop;
				live.current.hover = -1;
				hideTip(tipBox.current);
				invalidate();
			}}>
			<canvas ref={canvas} aria-hidden="true"
				style={{ height: `${shown}px` }}
				onClick={onClick} onPointerMove={onMove}
				onPointerLeave={() => {
					live.current.hover = -1;
					hideTip(tipBox.current);
					invalidate();
				}} />
			<div style={{ height: `${height - shown}px` }} />
			<div ref={twin} onKeyDown={onKey}
				onFocusIn={() => onFocus(true)}
				onFocusOut={event => twin.current?.contains(
					event.relatedTarget as Node | null) ||
					onFocus(false)}>
				<Twin profile={profile} layout={layout}
					current={zoom.current} />
			</div>
		</div>
		<div class="tip" ref={tipBox} hidden aria-hidden="true" />
		<Legend profile={profile} tree={tree} layout={layout}
			found={found} />
		<Keys icicle={icicle} />
	</div>;
}

function offsetTop(element: HTMLElement): number {
	return element.getBoundingClientRect().top - element.closest(
		".drawing")!.getBoundingClientRect().top;
}

function offsetLeft(element: HTMLElement): number {
	return element.getBoundingClientRect().left - element.closest(
		".drawing")!.getBoundingClientRect().left;
}

function focusCurrent(twin: HTMLElement): void {
	twin.querySelector<HTMLElement>("[tabindex='0']")
		?.focus({ preventScroll: true });
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
function Shown({ profile, tree, selection, top, found }: FlameGraphProps & {
		top: number; found: Uint8Array | null }) {
	const hits = useMemo(() => found && foundIn(tree, found),
			     [tree, found]);

	return <span role="status">
		{top > 0 && `${cut(visible(nodeName(profile, tree, top)), 80)}: ${
			formatPercent(tree.total[top]!, tree.total[0]!)
			} of all. `}
		{hits && `“${cut(visible(selection.search), 40)}” is in ${
			formatPercent(hits.total, tree.total[0]!)} of all (${
			plural(hits.frames, "frame")}).`}
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

function Keys({ icicle }: { icicle: boolean }) {
	return <details>
		<summary>Keys and mouse</summary>
		<p class="keys" id="flame-keys">
			click, <kbd>Enter</kbd>: give a frame all of the width ·{" "}
			<kbd>Escape</kbd> whole graph · <kbd>Backspace</kbd>{" "}
			zoom back · <kbd>←</kbd> <kbd>→</kbd> neighbours ·{" "}
			<kbd>{icicle ? "↓" : "↑"}</kbd> widest callee ·{" "}
			<kbd>{icicle ? "↑" : "↓"}</kbd> caller ·{" "}
			<kbd>Home</kbd> all · double click, <kbd>s</kbd>{" "}
			callers and callees of the function
		</p>
	</details>;
}
