/* SPDX-License-Identifier: MIT */
/* source.tsx - lines and instructions of a function, with their samples */
import { useMemo, useState } from "preact/hooks";
import { choose, type Chosen } from "../engine/chosen";
import { placesOf, type Place } from "../engine/places";
import { NONE, type Code, type Profile } from "../profile";
import { cut, formatWeight, visible } from "../text";
import { Share } from "./names";
import { FunctionPicker } from "./picker";
import type { ViewProps } from "./props";
import { focusOf } from "./sandwich";

const MARGIN = 8;		/* lines shown around those with samples */
const MAX_LINES = 2000;

/* Kernel addresses are negative in columns of doubles. */
function addressText(addr: number): string {
	return "0x" + (addr < 0 ? 2n ** 64n + BigInt(addr) : BigInt(addr))
		.toString(16);
}

interface Line {
	head: string;
	text: string;
	place: Place | null;
}

/* Lines of a file around those with samples. */
function fileLines(profile: Profile, file: number, places: Place[]): Line[] {
	const of = places.filter(p => p.file === file);
	const text = profile.files[file]?.text?.split("\n") ?? null;
	const byLine = new Map(of.map(p => [p.line, p]));
	const lines = [...byLine.keys()];
	const first = Math.max(1, Math.min(...lines) - (text ? MARGIN : 0));
	const last = Math.min(Math.max(...lines) + MARGIN,
			      text?.length ?? 0, first + MAX_LINES);

	if (!text)
		return of.sort((a, b) => a.line - b.line).map(place => ({
			head: String(place.line), text: "", place }));
	return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) =>
		({ head: String(first + i), text: text[first + i - 1] ?? "",
		   place: byLine.get(first + i) ?? null }));
}

function codeLines(code: Code | undefined, places: Place[]): Line[] {
	const byAddress = new Map(places.map(p => [p.addr, p]));

	if (!code)
		return places.sort((a, b) => a.addr - b.addr).map(place => ({
			head: addressText(place.addr), text: "", place }));
	return Array.from(code.addr, (addr, i) => ({
		head: addressText(addr), text: code.text[i] ?? "",
		place: byAddress.get(addr) ?? null }));
}

function Lines({ lines, chosen, label }: { lines: Line[]; chosen: Chosen;
		label: string }) {
	const most = Math.max(1, ...lines.map(l => l.place?.total ?? 0));

	return <div class="grid" role="region" aria-label={label} tabIndex={0}>
		<table class="source">
			<thead><tr><th scope="col">Total</th>
				<th scope="col">Self</th>
				<th scope="col">Place</th>
				<th scope="col" class="text">Text</th></tr>
			</thead>
			<tbody>{lines.map(({ head, text, place }) =>
				<tr key={head}>
				<td>{place && <Share part={place.total}
					whole={most} text={formatWeight(
					place.total, chosen.unit)} />}</td>
				<td>{place?.self ? formatWeight(place.self,
					chosen.unit) : ""}</td>
				<th scope="row">{head}</th>
				<td class="text"><code>{cut(visible(text
					.replace(/\t/g, "    ")), 400)}</code>
				</td>
			</tr>)}</tbody>
		</table>
	</div>;
}

/* By function whether lines of it are known. */
function functionsWithLines({ functions, frames }: Profile): Uint8Array {
	const has = new Uint8Array(functions.n);

	for (let i = 0; i < frames.n; i++)
		if (frames.line[i])
			has[frames.func[i]!] = 1;
	return has;
}

export function SourceView(props: ViewProps) {
	const { profile, selection } = props;
	const lines = useMemo(() => functionsWithLines(profile), [profile]);
	const func = focusOf(props, f => lines[f] === 1);
	const chosen = choose(profile, selection);
	const [asCode, setAsCode] = useState(false);
	const places = useMemo(() => func === NONE ? [] :
		placesOf(chosen, func, asCode), [chosen, func, asCode]);
	const code = profile.code.find(c => c.func === func);
	const files = [...new Set(places.map(p => p.file))]
		.filter(f => f !== NONE);
	const none = places.filter(p => p.file === NONE);

	return <>
		<FunctionPicker {...props} func={func} />
		<div class="buttons" role="group" aria-label="Lines or code">
			<button aria-pressed={!asCode}
				onClick={() => setAsCode(false)}>Lines</button>
			<button aria-pressed={asCode}
				onClick={() => setAsCode(true)}>Addresses
			</button>
		</div>
		{!places.length && <p class="empty" role="status">No selected
			sample is in this function.</p>}
		{asCode && places.length > 0 && <Lines chosen={chosen}
			label="Addresses" lines={codeLines(code, places)} />}
		{!asCode && files.map(file => <section key={file}>
			<h2>{cut(visible(profile.files[file]!.path), 300)}</h2>
			{profile.files[file]!.text === null && <p>The page was
				made without the text of this file
				(<code>seam view --source</code>).</p>}
			<Lines chosen={chosen} label="Lines"
				lines={fileLines(profile, file, places)} />
		</section>)}
		{!asCode && none.length > 0 && <p>{formatWeight(
			none.reduce((sum, p) => sum + p.self, 0), chosen.unit)}
			{" "}of self have no line.</p>}
	</>;
}
