/* SPDX-License-Identifier: MIT */
/*
 * draw_page.tsx - the canvases alone, on a synthetic profile
 *
 * For pictures and for bench/view: the query has the view and the sizes, as
 * "?view=flame&size=large&theme=dark".  The window gets the times that the
 * bench prints.
 */
import { render } from "preact";
import { useState } from "preact/hooks";
import { FlameGraph } from "../draw/flame_graph";
import { TimeLine } from "../draw/time_line";
import { choose } from "../engine/chosen";
import { treeOf } from "../engine/sums";
import { ALL } from "../select";
import "../style.css";
import { LARGE, SMALL, synthetic } from "./synthetic";

interface BenchWindow {
	start: () => void;	/* to be called with "?wait"; see bench/view */
	drawn: number;		/* the first frame with a canvas has ended */
	nodes: number;
	changeRange: (i: number) => void;
}

const bench = window as unknown as BenchWindow;
const query = new URLSearchParams(location.search);
const profile = synthetic(query.get("size") === "large" ? LARGE : SMALL);
const root = document.getElementById("app")!;

function Flame({ from, search }: { from: number; search: string }) {
	const selection = { ...ALL, search, from, to: from ?
		from + profile.meta.durationNs / 3 : Infinity };
	const tree = treeOf(choose(profile, selection));

	bench.nodes = tree.n;
	return <FlameGraph profile={profile} selection={selection} tree={tree}
		select={() => undefined} icicle={query.get("up") !== "1"}
		onFunction={func => { document.title =
			profile.functions.name[func]!; }} />;
}

function Page() {
	const search = query.get("search") ?? "";
	const [selection, select] = useState({ ...ALL, search });

	return query.get("view") === "flame" ?
	       <Flame from={0} search={search} /> :
	       <TimeLine profile={profile} selection={selection}
		       select={select} />;
}

/* The frame after the first one with a canvas that has a size. */
function watch(): void {
	if (document.querySelector("canvas")?.height)
		requestAnimationFrame(() => { bench.drawn = performance.now(); });
	else
		requestAnimationFrame(watch);
}

document.documentElement.dataset.theme = query.get("theme") ?? "light";
bench.changeRange = i => render(<Flame search="" from={1 + i *
	profile.meta.durationNs / 60} />, root);
bench.start = () => {
	render(<Page />, root);
	watch();
};
if (!query.has("wait"))
	bench.start();
