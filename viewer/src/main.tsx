/* SPDX-License-Identifier: MIT */
/* main.tsx - the page: reads its recordings, then shows them */
import { render } from "preact";
import { App } from "./app";
import { decodePage } from "./decode";
import "./style.css";
import { startTheme } from "./theme";

async function main(): Promise<void> {
	const root = document.getElementById("app")!;

	startTheme();
	const profiles = await decodePage(document);

	if (typeof profiles === "string") {
		root.setAttribute("role", "alert");
		root.textContent = profiles;
		return;
	}
	root.textContent = "";
	render(<App profiles={profiles} />, root);
}

void main();
