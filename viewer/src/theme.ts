/* SPDX-License-Identifier: MIT */
/* theme.ts - light, dark, or as the system has it */
const THEMES = ["auto", "light", "dark"] as const;
export type Theme = typeof THEMES[number];

const KEY = "seam-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

/* Storage may be forbidden, as in a page from a disk in some browsers. */
export function storedTheme(): Theme {
	try {
		const text = localStorage.getItem(KEY);

		return THEMES.find(theme => theme === text) ?? "auto";
	} catch {
		return "auto";
	}
}

/* Canvases draw with the colours of the style: they listen to "themechange". */
function show(theme: Theme): void {
	document.documentElement.dataset.theme =
		theme === "auto" ? dark.matches ? "dark" : "light" : theme;
	dispatchEvent(new Event("themechange"));
}

export function setTheme(theme: Theme): void {
	try {
		localStorage.setItem(KEY, theme);
	} catch {
		/* it holds until the page is closed */
	}
	show(theme);
}

/* The theme of the page, which follows the system where none was chosen. */
export function startTheme(): void {
	show(storedTheme());
	dark.addEventListener("change", () => show(storedTheme()));
}

export function nextTheme(theme: Theme): Theme {
	return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
}
