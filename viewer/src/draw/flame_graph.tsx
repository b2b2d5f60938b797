/* SPDX-License-Identifier: MIT */
/* flame_graph.tsx - place of the flame graph */
import type { Profile } from "../profile";
import type { Selection } from "../select";
import type { Tree } from "../tree";

export interface FlameGraphProps {
	profile: Profile;
	tree: Tree;
	selection: Selection;
	select: (next: Selection) => void;
	icicle: boolean;
	onFunction: (func: number) => void;
}

export function FlameGraph({ tree }: FlameGraphProps) {
	return <p>{tree.n} frames</p>;
}
