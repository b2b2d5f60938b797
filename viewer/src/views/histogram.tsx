/* SPDX-License-Identifier: MIT */
/*
 * histogram.tsx - how long the calls of a function take, on a logarithmic axis
 *
 * A drag over the bars selects the calls of these lengths; two sliders do the
 * same by keyboard.  The height is logarithmic too: one slow call among 10^5
 * must be seen.
 */
import { useRef, useState } from "preact/hooks";
import { leastOf, quantile, type Lengths } from "../engine/calls";
import { formatCount, formatNs, plural } from "../text";

export interface Range {
	min: number;
	max: number;
}

interface HistogramProps {
	lengths: Lengths;
	range: Range | null;	/* that is selected */
	label: string;
	noun: string;		/* "call" */
	onRange: (range: Range | null) => void;
}

const WIDTH = 1000;		/* units of the picture; scaled to the page */
const HEIGHT = 160;
const MAX_BARS = 250;

interface Bar {
	least: number;		/* first length in it */
	next: number;		/* first length after it */
	n: number;
}

/* Buckets from the shortest to the longest call, several to a bar if many. */
function barsOf(l: Lengths): Bar[] {
	const step = Math.ceil((l.last - l.first + 1) / MAX_BARS);
	const bars: Bar[] = [];

	for (let i = l.first; i <= l.last; i += step) {
		let n = 0;

		for (let k = i; k < Math.min(i + step, l.last + 1); k++)
			n += l.buckets[k]!;
		bars.push({ least: leastOf(i), next: leastOf(i + step), n });
	}
	return bars;
}

const height = (n: number, most: number) => n === 0 ? 0 :
	(HEIGHT - 4) * (Math.log(n) + 0.7) / (Math.log(most) + 0.7);

/* The lengths of bars @a to @b; the ends of the histogram are open. */
function rangeOf(bars: Bar[], a: number, b: number): Range {
	const [i, k] = a < b ? [a, b] : [b, a];

	return { min: i === 0 ? 0 : bars[i]!.least,
		 max: k === bars.length - 1 ? Infinity : bars[k]!.next - 1 };
}

const inRange = (bar: Bar, range: Range | null) => range !== null &&
	bar.next > range.min && bar.least <= range.max;

function Bars({ bars, range }: { bars: Bar[]; range: Range | null }) {
	const most = Math.max(...bars.map(bar => bar.n), 1);
	const width = WIDTH / bars.length;

	return <>{bars.map((bar, i) => {
		const h = height(bar.n, most);

		return bar.n > 0 && <rect key={i} x={i * width}
			y={HEIGHT - h}
			width={Math.max(width - (width > 4 ? 1 : 0), 0.5)}
			height={h} class={inRange(bar, range) ?
				"chosen" : ""} />;
	})}</>;
}

interface Tick {
	at: number;		/* of the width, 0 to 1 */
	text: string;
	isQuantile?: boolean;
}

/* The powers of ten in the bars, and p99. */
function ticks(bars: Bar[], lengths: Lengths): Tick[] {
	const last = bars[bars.length - 1]!.next, found: Tick[] = [];
	const p99 = quantile(lengths, 0.99);
	const place = (ns: number) => {
		const i = bars.findIndex(bar => bar.next > ns), bar = bars[i]!;

		return (i + (ns - bar.least) / (bar.next - bar.least)) /
		       bars.length;
	};

	for (let ns = 1; ns < last; ns *= 10)
		if (ns >= bars[0]!.least)
			found.push({ at: place(ns), text: formatNs(ns) });
	if (p99 < last)
		found.push({ at: place(p99), text: "p99",
			     isQuantile: true });
	return found;
}

/*
 * Names are elements: the picture is stretched, and letters must not be.  Near
 * the right edge a name is before its line.
 */
function TickNames({ all }: { all: Tick[] }) {
	return <div class="ticks" aria-hidden="true">
		{all.map(({ at, text, isQuantile }) => <span key={text}
			class={`${isQuantile ? "quantile" : ""} ${
				at > 0.8 ? "before" : ""}`}
			style={at > 0.8 ? { right: `${100 * (1 - at)}%` } :
				{ left: `${100 * at}%` }}>
			{text}</span>)}
	</div>;
}

/* The bar of a place on the page. */
function barAt(svg: SVGSVGElement, x: number, n: number): number {
	const box = svg.getBoundingClientRect();
	const share = (x - box.left) / Math.max(box.width, 1);

	return Math.min(n - 1, Math.max(0, Math.floor(share * n)));
}

function Slider({ label, value, bars, shown, onInput }: { label: string;
		value: number; bars: Bar[]; shown: string;
		onInput: (bar: number) => void }) {
	return <label>{label}{" "}
		<input type="range" min={0} max={bars.length - 1} value={value}
			aria-valuetext={shown}
			onChange={e => onInput(Number(e.currentTarget.value))}
			/>
		<span>{shown}</span>
	</label>;
}

/* The first and the last bar of @range. */
function ends(bars: Bar[], range: Range | null): [number, number] {
	const inside = bars.map((bar, i) => inRange(bar, range) ? i : -1)
		.filter(i => i >= 0);

	return inside.length ? [inside[0]!, inside[inside.length - 1]!] :
	       [0, bars.length - 1];
}

export function Histogram({ lengths, range, label, noun, onRange }:
			  HistogramProps) {
	const svg = useRef<SVGSVGElement>(null);
	const [drag, setDrag] = useState<[number, number] | null>(null);
	const bars = barsOf(lengths), marks = ticks(bars, lengths);
	const shown = drag ? rangeOf(bars, ...drag) : range;
	const [from, to] = ends(bars, shown);
	const at = (event: PointerEvent) => barAt(svg.current!, event.clientX,
						  bars.length);

	return <figure class="histogram">
		<svg ref={svg} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img"
			aria-label={label} preserveAspectRatio="none"
			onPointerDown={e => {
				if (e.button !== 0)
					return;
				e.preventDefault();
				svg.current!.setPointerCapture(e.pointerId);
				setDrag([at(e), at(e)]);
			}}
			onPointerMove={e => drag && setDrag([drag[0], at(e)])}
			onPointerCancel={() => setDrag(null)}
			onPointerUp={e => {
				if (!drag)
					return;
				onRange(rangeOf(bars, drag[0], at(e)));
				setDrag(null);
			}}>
			<Bars bars={bars} range={shown} />
			{marks.map(({ at: x, text, isQuantile }) => <line
				key={text} x1={x * WIDTH} x2={x * WIDTH}
				y1={0} y2={HEIGHT} class={isQuantile ?
					"quantile" : "tick"} />)}
		</svg>
		<TickNames all={marks} />
		<figcaption>
			<Slider label="from" value={from} bars={bars}
				shown={formatNs(shown?.min || lengths.min)}
				onInput={i => onRange(rangeOf(bars, i,
					Math.max(i, to)))} />
			<Slider label="to" value={to} bars={bars}
				shown={formatNs(Math.min(shown?.max ??
					Infinity, lengths.max))}
				onInput={i => onRange(rangeOf(bars,
					Math.min(from, i), i))} />
			<span>{plural(lengths.count, noun)}; bars are
				logarithmic, the highest has {formatCount(
				Math.max(...bars.map(bar => bar.n)))}.</span>
		</figcaption>
	</figure>;
}
