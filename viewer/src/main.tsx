/* SPDX-License-Identifier: MIT */
/* main.tsx - the page: reads its recordings, then shows them */
import { decodePage } from "./decode";

async function main(): Promise<void> {
	const root = document.getElementById("app")!;
	const profiles = await decodePage(document);

	root.textContent = typeof profiles === "string" ? profiles :
		profiles.map(p => `${p.meta.title}: ${p.samples.n} samples, ` +
			     `${p.calls.n} calls, ${p.marks.n} marks, ` +
			     `${p.stacks.n} stacks`).join("; ");
}

void main();
