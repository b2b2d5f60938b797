/* SPDX-License-Identifier: MIT */
/*
 * app.tsx - the page around the views: header, selection, tabs, keys
 *
 * The whole state is in the URL's hash; each change is a step of the browser's
 * history, so Back undoes it and a link restores it.
 */
import { Component, type ComponentType } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { readHash, TABS, writeHash, type Tab, type View } from "./hash";
import type { Profile } from "./profile";
import { ALL, type Selection } from "./select";
import { cut, formatNs, plural, visible } from "./text";
import { nextTheme, setTheme, storedTheme } from "./theme";
import { AboutView, KeyList } from "./views/about";
import { CallsView } from "./views/calls";
import { Chips } from "./views/chips";
import { CompareView } from "./views/compare";
import { Filters } from "./views/filters";
import { FlameView, TimeView } from "./views/pictures";
import type { ViewProps } from "./views/props";
import { SandwichView } from "./views/sandwich";
import { SourceView } from "./views/source";
import { TableView } from "./views/table";

const VIEWS: Record<Tab, [string, ComponentType<ViewProps>]> = {
	time: ["Time line", TimeView],
	flame: ["Flame graph", FlameView],
	table: ["Table", TableView],
	sandwich: ["Sandwich", SandwichView],
	calls: ["Calls", CallsView],
	source: ["Source", SourceView],
	compare: ["Compare", CompareView],
	about: ["About", AboutView],
};

/* -- header ------------------------------------------------------------- */

function Header({ profile, profiles, view, go, onHelp }: ViewProps & {
		onHelp: () => void }) {
	const { meta } = profile, [theme, setShown] = useState(storedTheme);
	const lost = meta.losses.length;

	return <header>
		<h1 title={cut(visible(meta.title), 2000)}>
			{cut(visible(meta.title), 160)}</h1>
		<p class="facts-line">
			{meta.hostName && <span>{cut(visible(meta.hostName),
				60)}</span>}
			<span>{formatNs(meta.durationNs)}</span>
			<button class={`link ${lost ? "lossy" : ""}`}
				onClick={() => go({ tab: "about" })}>
				{lost ? plural(lost, "kind") + " of losses" :
				 "nothing lost"}</button>
			{meta.coarse.samples + meta.coarse.calls > 0 &&
				<button class="link lossy" onClick={() =>
					go({ tab: "about" })}>coarser than the
					recording</button>}
		</p>
		<div class="tools">
			{profiles.length > 1 && profiles.map((_, i) => <button
				key={i} aria-pressed={view.recording === i}
				onClick={() => go({ recording: i, func: null,
					before: null, selection: ALL })}>
				Recording {"AB"[i]}</button>)}
			<button onClick={() => {
				const next = nextTheme(theme);

				setTheme(next);
				setShown(next);
			}} aria-label={`Colours: ${theme}`} id="theme">
				{theme}</button>
			<button onClick={onHelp} aria-label="Keys">?</button>
		</div>
	</header>;
}

/* -- tabs --------------------------------------------------------------- */

function Tabs({ view, go }: ViewProps) {
	const list = useRef<HTMLDivElement>(null);

	/* on a narrow screen the list scrolls */
	useEffect(() => document.getElementById(`tab-${view.tab}`)!
		.scrollIntoView({ block: "nearest", inline: "nearest" }),
		[view.tab]);
	const onKey = (event: KeyboardEvent) => {
		const at = TABS.indexOf(view.tab), n = TABS.length;
		const to = { ArrowRight: (at + 1) % n, Home: 0, End: n - 1,
			     ArrowLeft: (at + n - 1) % n }[event.key];

		if (to === undefined)
			return;
		event.preventDefault();
		go({ tab: TABS[to]!, sort: "" });
		list.current!.querySelectorAll<HTMLElement>("[role=tab]")[to]!
			.focus();
	};

	return <div role="tablist" aria-label="Views" ref={list}
		onKeyDown={onKey}>
		{TABS.map(tab => <button role="tab" key={tab} id={`tab-${tab}`}
			aria-selected={view.tab === tab} aria-controls="panel"
			tabIndex={view.tab === tab ? 0 : -1}
			onClick={() => go({ tab, sort: "" })}>
			{VIEWS[tab][0]}</button>)}
	</div>;
}

/* A defect in one view must not take the page away. */
class Guard extends Component<{ tab: Tab }, { error: string; tab: Tab }> {
	override state = { error: "", tab: this.props.tab };

	override componentDidCatch(error: unknown): void {
		this.setState({ error: String(error), tab: this.props.tab });
	}

	override render() {
		const { error, tab } = this.state;

		return error && tab === this.props.tab ?
		       <p class="warning" role="alert">This view failed:{" "}
			       {cut(visible(error), 300)}. The other tabs still
			       work; please report it.</p> :
		       this.props.children;
	}
}

/* -- state -------------------------------------------------------------- */

/* The first tab: a moment has a time line; samples alone have a graph. */
function firstTab(profile: Profile): Tab {
	return profile.meta.openAtNs >= 0 || profile.samples.n ? "time" :
	       profile.calls.n || profile.intervals.n ? "calls" : "about";
}

function useView(profiles: Profile[]): [View, (part: Partial<View>) => void] {
	const read = () => readHash(location.hash, profiles,
				    firstTab(profiles[0]!));
	const [view, setView] = useState(read);
	const current = useRef(view);

	current.current = view;
	useEffect(() => {
		const onChange = () => setView(read());

		addEventListener("popstate", onChange);
		return () => removeEventListener("popstate", onChange);
	}, []);
	const go = useCallback((part: Partial<View>) => {
		const next = { ...current.current, ...part };
		const hash = writeHash(next);

		if (hash !== location.hash)
			history.pushState(null, "", hash);
		current.current = next;
		setView(next);
	}, []);

	return [view, go];
}

const isTyping = (target: EventTarget | null) =>
	target instanceof HTMLElement &&
	target.matches("input, select, textarea, [contenteditable]");

/* Keys of the whole page; those of a canvas or a table come first. */
function onKey(event: KeyboardEvent, go: (part: Partial<View>) => void,
	       openHelp: () => void): void {
	const digit = /^[1-8]$/.test(event.key) ? Number(event.key) : 0;

	if (event.defaultPrevented || event.ctrlKey || event.altKey ||
	    event.metaKey || isTyping(event.target))
		return;
	if (digit) {
		go({ tab: TABS[digit - 1]!, sort: "" });
		document.getElementById(`tab-${TABS[digit - 1]}`)?.focus();
	} else if (event.key === "/") {
		document.getElementById("search")?.focus();
	} else if (event.key === "?") {
		openHelp();
	} else if (event.key === "x") {
		go({ selection: ALL });
	} else if (event.key === "t") {
		document.getElementById("theme")?.click();
	} else {
		return;
	}
	event.preventDefault();
}

function Help({ dialog }: { dialog: { current: HTMLDialogElement | null } }) {
	return <dialog ref={dialog} aria-labelledby="help">
		<h2 id="help">Keys</h2>
		<KeyList />
		<p>In the time line and the flame graph more keys work; each
			lists its own.</p>
		<form method="dialog"><button>Close</button></form>
	</dialog>;
}

export function App({ profiles }: { profiles: Profile[] }) {
	const [view, go] = useView(profiles);
	const profile = profiles[view.recording]!;
	const select = useCallback((selection: Selection) =>
		go({ selection }), []);
	const help = useRef<HTMLDialogElement>(null);
	const props: ViewProps = { profile, profiles, view, go, select,
				   selection: view.selection };
	const Shown = VIEWS[view.tab][1];

	useEffect(() => {
		const listen = (event: KeyboardEvent) => onKey(event, go,
			() => help.current!.showModal());

		addEventListener("keydown", listen);
		return () => removeEventListener("keydown", listen);
	}, []);
	useEffect(() => {
		document.title = `${VIEWS[view.tab][0]} – ` +
			cut(visible(profile.meta.title), 80);
	}, [view.tab, profile]);
	return <>
		<a class="skip" href="#panel" onClick={e => {
			e.preventDefault();
			document.getElementById("panel")!.focus();
		}}>To the view</a>
		<Header {...props} onHelp={() => help.current!.showModal()} />
		<nav aria-label="Selection and views">
			<Chips {...props} />
			<Filters {...props} />
			<Tabs {...props} />
		</nav>
		<main>
			<div id="panel" role="tabpanel" tabIndex={-1}
				aria-labelledby={`tab-${view.tab}`}>
				<Guard tab={view.tab}>
					<Shown {...props} key={`${view.tab} ${
						view.recording}`} />
				</Guard>
			</div>
		</main>
		<Help dialog={help} />
	</>;
}
