/* SPDX-License-Identifier: MIT */
/*
 * flame_graph.tsx - a call tree as a picture: the component
 *
 * With the root below (flame) or above (icicle).  The keyboard's frame is an
 * item of a tree in the document, which has only the frames around it; the
 * canvas draws its outline.
 */
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { NONE, type Profile } from "../profile";
import type { Selection } from "../select";
import { formatPercent } from "../text";
import type { Tree } from "../tree";
import "./draw.css";
import { drawFlame, nodeName, ROW, rowAt, yOf, type FlameScene }
	from "./flame_draw";
import { boxAt, boxOf, find, layOut, pathTo, type Found, type Layout }
	from "./flame_layout";
import { besideOf, FLAME_KEYS, largestChild, samePath, targetOf }
	from "./flame_moves";
import { frameWords, restWords } from "./flame_words";
import { foundFunctions } from "./found";
import { labelsOf, widthIn, type Labels, type Width } from "./labels";
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

const LEAST = 1;		/* pixels of the narrowest frame */
const MOST = 0.72;		/* of the window's height */

/* -- state -------------------------------------------------------------- */

interface Zooms {
	tree: Tree;
	stack: number[];	/* frames: the last one fills the picture */
	current: number;	/* the keyboard's frame */
}

/* In another tree, of another selection, frames are found by their path. */
function moved(old: Zooms, tree: Tree): Zooms {
	const keep = (node: number) => samePath(old.tree, tree, node);
	const stack = old.stack.map(keep).filter(node => node !== NONE);
	const current = keep(old.current);

	return { tree, stack: stack.length ? stack : [0],
		 current: current === NONE ? stack[stack.length - 1] ?? 0 :
			  current };
}

function useZooms(tree: Tree) {
	const [kept, setZooms] = useState<Zooms>({ tree, stack: [0],
						   current: 0 });
	const zooms = useMemo(() => kept.tree === tree ? kept :
			      moved(kept, tree), [kept, tree]);
	const stack = zooms.stack, zoomed = stack[stack.length - 1]!;

	return {
		zoomed, current: zooms.current, canGoBack: stack.length > 1,
		move: (current: number) => setZooms({ ...zooms, current }),
		zoom: (node: number) => setZooms({ tree, current: node,
			stack: node === zoomed ? stack : node === 0 ? [0] :
			       [...stack, node] }),
		back: () => setZooms(stack.length < 2 ? zooms : { tree,
			stack: stack.slice(0, -1),
			current: stack[stack.length - 2]! }),
		home: () => setZooms({ tree, stack: [0], current: 0 }),
	};
}

/* The width in CSS pixels; layouts follow it. */
function useWidth(element: { current: HTMLElement | null }): number {
	const [width, setWidth] = useState(0);

	useEffect(() => {
		const measure = () => setWidth(element.current?.clientWidth ?? 0);
		const observer = new ResizeObserver(measure);

		observer.observe(element.current!);
		measure();
		return () => observer.disconnect();
	}, []);
	return width;
}

interface Fonts {
	scale: number;
	tree: Tree;
	width: Width;
	names: Labels;
}

function fontsFor(surface: Surface, profile: Profile, tree: Tree,
		  kept: Fonts | null): Fonts {
	const { context, scale } = surface;

	context.font = `${Math.round(11.5 * scale)}px ui-monospace, "SF Mono",` +
		` "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", ` +
		"monospace";
	context.textBaseline = "alphabetic";
	if (kept?.scale === scale && kept.tree === tree)
		return kept;
	const width = widthIn(context);

	return { scale, tree, width, names: labelsOf(node =>
		nodeName(profile, tree, node), width) };
}

/* -- the component ------------------------------------------------------ */

export function FlameGraph(props: FlameGraphProps) {
	const { profile, tree, selection, icicle, onFunction } = props;
	const zooms = useZooms(tree), { zoomed, current } = zooms;
	const scroller = useRef<HTMLDivElement>(null);
	const canvas = useRef<HTMLCanvasElement>(null);
	const tipBox = useRef<HTMLDivElement>(null);
	const items = useRef<HTMLDivElement>(null);
	const fonts = useRef<Fonts | null>(null);
	const state = useRef({ hovered: -1, hasFocus: false, clicked: NONE });
	const width = useWidth(scroller);
	const found = useMemo(() => {
		const hits = foundFunctions(profile, selection.search);

		return hits && find(tree, hits);
	}, [profile, tree, selection.search]);
	const layout = useMemo(() => layOut({ tree, zoomed, found,
		width: Math.max(width, 1), least: LEAST }),
		[tree, zoomed, width, found]);
	const content = layout.rows * ROW;
	const shown = Math.min(content + 2, Math.max(240, MOST * innerHeight));
	const height = Math.max(content, shown - 2);

	const scene = (): FlameScene => ({
		profile, tree, layout, zoomed, icicle, height,
		scrollTop: scroller.current?.scrollTop ?? 0,
		current: state.current.hasFocus ? current : -1,
		hovered: state.current.hovered, isSearching: found !== null,
	});
	const invalidate = useSurface(canvas, surface => {
		fonts.current = fontsFor(surface, profile, tree, fonts.current);
		drawFlame(surface, scene(), fonts.current.names,
			  fonts.current.width);
	});

	useEffect(() => {
		state.current.hovered = -1;
		invalidate();
	});
	/* the root is what a reader begins at */
	useEffect(() => scroller.current!.scrollTo({ top: icicle ? 0 : height }),
		  [icicle, tree, zoomed, height]);

	const focusItem = () => items.current!.focus({ preventScroll: true });
	const reveal = (node: number) => {
		const top = yOf(scene(), tree.depth[node]!);
		const box = scroller.current!;

		if (top < box.scrollTop)
			box.scrollTo({ top });
		else if (top + ROW > box.scrollTop + box.clientHeight)
			box.scrollTo({ top: top + ROW - box.clientHeight });
	};
	const pointer = usePointer({ canvas, tipBox, state: state.current,
		scene, invalidate, words: box => wordsOf(props, layout, box,
							 zoomed),
		onClick: box => {
			const node = targetOf(tree, layout, box, zoomed);

			state.current.clicked = layout.isRest[box] ? NONE :
						layout.node[box]!;
			zooms.zoom(node);
			focusItem();
		},
		onDouble: () => {
			const { clicked } = state.current;
			const func = clicked === NONE ? NONE :
				     tree.func[clicked]!;

			if (func !== NONE)
				onFunction(func);
		},
	});
	const onKey = (event: KeyboardEvent) => {
		const up = icicle ? tree.parent[current]! :
			   largestChild(tree, layout, current);
		const down = icicle ? largestChild(tree, layout, current) :
			     tree.parent[current]!;
		const acts: Record<string, () => void> = {
			ArrowUp: () => go(up), ArrowDown: () => go(down),
			ArrowLeft: () => go(besideOf(tree, layout, current, -1)),
			ArrowRight: () => go(besideOf(tree, layout, current, 1)),
			Home: () => go(0), Enter: () => zooms.zoom(current),
			" ": () => zooms.zoom(current),
			Backspace: zooms.back, Escape: zooms.home,
			s: () => tree.func[current] !== NONE &&
				 onFunction(tree.func[current]!),
		};
		const go = (node: number) => {
			if (node === NONE)
				return;
			zooms.move(node);
			reveal(node);
			tipFor(node);
		};

		if (event.ctrlKey || event.altKey || event.metaKey ||
		    !acts[event.key])
			return;
		event.preventDefault();
		hideTip(tipBox.current);
		acts[event.key]!();
	};
	const tipFor = (node: number) => {
		const box = boxOf(layout, tree, node);
		const words = frameWords(profile, tree, node, zoomed);

		if (box >= 0)
			showTip(tipBox.current!, words.title, words.lines,
				Math.max(0, layout.x[box]!) + 8,
				yOf(scene(), tree.depth[node]!) -
				scroller.current!.scrollTop +
				scroller.current!.offsetTop);
	};

	return <div class="drawing flame">
		<div class="buttons">
			<button disabled={!zooms.canGoBack} onClick={zooms.back}>
				Back</button>
			<button disabled={zoomed === 0} onClick={zooms.home}>
				All</button>
			<span role="status">{found && matchText(tree, found,
				zoomed)}</span>
		</div>
		<div class="scroll" ref={scroller}
			style={{ height: `${shown}px` }} onScroll={invalidate}>
			<canvas ref={canvas} aria-hidden="true" {...pointer}
				style={{ height: `${shown - 2}px` }} />
			<div style={{ height: `${height - shown + 2}px` }} />
			<TreeTwin profile={profile} tree={tree} zoomed={zoomed}
				current={current} items={items} onKey={onKey}
				onFocus={() => {
					state.current.hasFocus = true;
					invalidate();
				}}
				onBlur={() => {
					state.current.hasFocus = false;
					hideTip(tipBox.current);
					invalidate();
				}} />
		</div>
		<div class="tip" ref={tipBox} hidden aria-hidden="true" />
		<Legend tree={tree} profile={profile} isSearching={!!found} />
		<details><summary>Keys and mouse</summary>
			<p class="keys">{FLAME_KEYS}</p>
		</details>
	</div>;
}

function wordsOf({ profile, tree }: FlameGraphProps, layout: Layout,
		 box: number, zoomed: number) {
	const node = layout.node[box]!;

	return layout.isRest[box] ? restWords(tree, node, LEAST *
		tree.total[node]! / widthOf(layout, tree, node)) :
	       frameWords(profile, tree, node, zoomed);
}

const widthOf = (layout: Layout, tree: Tree, node: number): number =>
	layout.width[boxOf(layout, tree, node)] ?? 1;

function matchText(tree: Tree, found: Found, zoomed: number): string {
	const matched = found.matched[zoomed]!;

	return matched > 0 ? `${formatPercent(matched, tree.total[zoomed]!)} ` +
		"matched" : "no match";
}

/* -- pointer ------------------------------------------------------------ */

interface PointerUse {
	canvas: { current: HTMLCanvasElement | null };
	tipBox: { current: HTMLDivElement | null };
	state: { hovered: number };
	scene: () => FlameScene;
	invalidate: () => void;
	words: (box: number) => { title: string; lines: string[] };
	onClick: (box: number) => void;
	onDouble: () => void;
}

function usePointer(use: PointerUse) {
	const at = (event: MouseEvent) => {
		const box = use.canvas.current!.getBoundingClientRect();

		return { x: event.clientX - box.left,
			 y: event.clientY - box.top };
	};
	const boxUnder = (event: MouseEvent): number => {
		const { x, y } = at(event), scene = use.scene();

		return boxAt(scene.layout, rowAt(scene, y + scene.scrollTop), x);
	};
	const hover = (box: number) => {
		if (use.state.hovered === box)
			return;
		use.state.hovered = box;
		use.invalidate();
	};

	return {
		onPointerMove: (event: PointerEvent) => {
			const box = boxUnder(event), { x, y } = at(event);

			hover(box);
			if (box < 0) {
				hideTip(use.tipBox.current);
				return;
			}
			const { title, lines } = use.words(box);

			showTip(use.tipBox.current!, title, lines, x, y +
				use.canvas.current!.parentElement!.offsetTop);
		},
		onPointerLeave: () => {
			hideTip(use.tipBox.current);
			hover(-1);
		},
		onClick: (event: MouseEvent) => {
			const box = boxUnder(event);

			/* of two clicks the second one is not another zoom */
			if (box < 0 || event.detail > 1)
				return;
			hideTip(use.tipBox.current);
			use.onClick(box);
		},
		onDblClick: use.onDouble,
	};
}

/* -- for screen readers ------------------------------------------------- */

interface TwinProps {
	profile: Profile;
	tree: Tree;
	zoomed: number;
	current: number;
	items: { current: HTMLDivElement | null };
	onKey: (event: KeyboardEvent) => void;
	onFocus: () => void;
	onBlur: () => void;
}

/* The place of @node among its caller's callees, from 1, and their number. */
function placeOf(tree: Tree, node: number): [number, number] {
	let place = 1, n = 0;

	if (tree.parent[node] === NONE)
		return [1, 1];
	for (let c = tree.firstChild[tree.parent[node]!]!; c !== NONE;
	     c = tree.nextSibling[c]!) {
		n++;
		if (c === node)
			place = n;
	}
	return [place, n];
}

/*
 * The frames from the root to the keyboard's frame: items of a tree.  The focus
 * stays on the tree, as items come and go.
 */
function TreeTwin({ profile, tree, zoomed, current, items, onKey, onFocus,
		    onBlur }: TwinProps) {
	const id = useId();

	return <div class="unseen" role="tree" aria-label="Flame graph"
		tabIndex={0} aria-activedescendant={`${id}-${current}`}
		ref={items} onKeyDown={onKey} onFocus={onFocus} onBlur={onBlur}>
		{pathTo(tree, current).map(node => {
			const words = frameWords(profile, tree, node, zoomed);
			const [place, n] = placeOf(tree, node);

			return <div role="treeitem" key={node}
				id={`${id}-${node}`}
				aria-level={tree.depth[node]! + 1}
				aria-posinset={place} aria-setsize={n}
				aria-selected={node === current}
				aria-expanded={tree.firstChild[node] === NONE ?
					undefined : true}>
				{[words.title, ...words.lines].join(", ")}
			</div>;
		})}
	</div>;
}

function Legend({ tree, profile, isSearching }: { tree: Tree;
		profile: Profile; isSearching: boolean }) {
	const item = (look: string, text: string) =>
		<li key={look}><i class={look} />{text}</li>;
	const { inlined, hasUnknown } = useMemo(() => ({
		inlined: tree.inlined.includes(1),
		hasUnknown: profile.functions.name.includes("[unknown]"),
	}), [tree]);

	return <ul class="legend">
		{tree.change ? <>
			{item("less", "less than A")}
			{item("same", "no change, or noise")}
			{item("more", "more than A")}
		</> : <>
			{["kernel", "native", "jit", "guest"].map(layer =>
				item(layer, layer))}
			{inlined && item("inlined", "inlined")}
			{hasUnknown && item("unknown", "unknown")}
			{tree.waiting[0]! > 0 && item("blocked", "waiting")}
		</>}
		{item("rest", "smaller frames")}
		{isSearching && item("hit", "found")}
	</ul>;
}
