/* SPDX-License-Identifier: MIT */
/* names.tsx - functions and bars as parts of tables */
import { LAYERS, NONE, type Profile } from "../profile";
import { cut, functionName, moduleOf, shortName } from "../text";

/* By layer; that of MARKED is no choice among layers. */
export const LAYER_NAMES = ["Kernel", "Native", "JIT", "Guest",
			    "Marked by the program"];

export function LayerMark({ layer }: { layer: number }) {
	return <span class={`mark ${LAYERS[layer] ??
		"interval"}`} title={LAYER_NAMES[layer]}
		aria-hidden="true">{LAYER_NAMES[layer]?.[0]}</span>;
}

export function FunctionButton({ profile, func, onOpen, title }: {
		profile: Profile; func: number; title?: string;
		onOpen: (func: number) => void }) {
	const name = functionName(profile, func);

	if (func === NONE)
		return <span class="name">[no stack]</span>;
	const layer = profile.functions.layer[func]!;

	return <span class="name">
		<LayerMark layer={layer} />
		<button class="link" data-row title={(title ? `${title}: ` :
			"") + cut(name, 1000)}
			onClick={() => onOpen(func)}>
			{shortName(profile.functions.name[func]!)}
		</button>
		<span class="module" title={cut(moduleOf(profile, func), 300)}>
			{cut(moduleOf(profile, func), 40)}
		</span>
	</span>;
}

/* A share as a number and, for the eye, as a bar. */
export function Share({ part, whole, text }: { part: number; whole: number;
		text: string }) {
	const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;

	return <span class="share">
		<span class="bar" aria-hidden="true"
			style={{ width: `${100 * share}%` }} />
		{text}
	</span>;
}
