/* SPDX-License-Identifier: MIT */
/*
 * draw_page.tsx - the canvases alone, on a synthetic profile
 *
 * For pictures and for bench/view: the query has the view and the sizes, as
 * "?view=flame&size=large&theme=dark".
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

const query = new URLSearchParams(location.search);
const profile = synthetic(query.get("size") === "large" ? LARGE : SMALL);

function Page() {
	const [selection, select] = useState({ ...ALL,
		search: query.get("search") ?? "" });

	return query.get("view") === "flame" ?
	       <FlameGraph profile={profile} selection={selection}
		       select={select} tree={treeOf(choose(profile, selection))}
		       icicle={query.get("up") !== "1"}
		       onFunction={func => { document.title =
			       profile.functions.name[func]!; }} /> :
	       <TimeLine profile={profile} selection={selection}
		       select={select} />;
}

document.documentElement.dataset.theme = query.get("theme") ?? "light";
render(<Page />, document.getElementById("app")!);
