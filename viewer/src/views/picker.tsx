/* SPDX-License-Identifier: MIT */
/* picker.tsx - choose a function by a part of its name */
import { useMemo, useState } from "preact/hooks";
import { functionName, shortName } from "../text";
import type { ViewProps } from "./props";

const SHOWN = 30;

export function FunctionPicker(props: ViewProps & { func: number;
		only?: Uint32Array }) {
	const { profile, go, func, only } = props;
	const [text, setText] = useState<string | null>(null);
	const found = useMemo(() => {
		const word = (text ?? "").toLowerCase(), all: number[] = [];
		const funcs = only ?? profile.functions.name.keys();

		for (const f of funcs) {
			if (!word || profile.functions.name[f]!.toLowerCase()
					.includes(word))
				all.push(f);
			if (all.length === SHOWN)
				break;
		}
		return all;
	}, [text, profile, only]);
	const choose = (next: number) => {
		setText(null);
		go({ func: next });
	};

	return <form class="picker" onSubmit={e => {
		e.preventDefault();
		if (text !== null && found[0] !== undefined)
			choose(found[0]);
	}}>
		<label>Function{" "}
			<input type="search" autocomplete="off"
				spellcheck={false}
				placeholder={shortName(functionName(profile,
								    func))}
				value={text ?? ""}
				onInput={e => setText(e.currentTarget.value)}
				onKeyDown={e => {
					if (e.key === "Escape")
						setText(null);
				}} />
		</label>
		{text !== null && <ul aria-label="Functions found">
			{found.map(f => <li key={f}><button type="button"
				class="link" onClick={() => choose(f)}>
				{shortName(profile.functions.name[f]!)}
			</button></li>)}
			{!found.length && <li>No function has this in its
				name.</li>}
		</ul>}
	</form>;
}
