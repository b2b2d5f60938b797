/* SPDX-License-Identifier: MIT */
/*
 * reasons.test.ts - what the page says about slow requests, against the truth
 *
 *	SEAM=PROGRAM SERVER=FOLDER [RUNS=N] node test/run.mjs FILE
 *
 * FOLDER has examples/layers's server and orders.lua.  Each run is slow for
 * one reason, drawn at random and not told to the page, which must name it.
 * Other programs that take the CPU would be a reason too: where this user may,
 * the server runs before them (SCHED_FIFO); else the machine must be idle.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { decode } from "../decode";
import { lengthsOf, quantile } from "../engine/calls";
import { causesOf, placeOf, type Causes, type Part } from "../engine/causes";
import { choose } from "../engine/chosen";
import { LAYERS, NONE, type Profile } from "../profile";
import { ALL } from "../select";
import { answerOf } from "../sentence";

const seam = process.env.SEAM ?? "seam", server = process.env.SERVER;
const nRuns = Number(process.env.RUNS ?? 20);
const folder = mkdtempSync(join(tmpdir(), "seam-reasons-"));

after(() => rmSync(folder, { recursive: true }));

const RIGHT: Record<string, (part: Part) => boolean> = {
	lua: ({ kind, layer }) => kind === "running" &&
		["guest", "jit"].includes(LAYERS[layer]!),
	lock: ({ kind }) => kind === "blocked",
	faults: ({ kind, layer, what }) => kind === "running" &&
		LAYERS[layer] === "kernel" && /fault/.test(what),
	preempt: ({ kind }) => kind === "preempted",
};
/* The function of the server in which it happens; "": any. */
const PLACES: Record<string, string> = {
	lua: "call_lua", lock: "take_stock", faults: "render", preempt: "",
};

const first = ["chrt", "-f", "10"];
const isFirst = spawnSync(first[0]!, [...first.slice(1), "true"]).status === 0;

function run(cwd: string, args: string[]): void {
	const { status, stderr } = spawnSync(seam, args, { cwd,
		encoding: "utf8", timeout: 60000 });

	assert.ok(status === 0 || status === 3, stderr);
}

async function record(reason: string): Promise<Profile> {
	const recording = join(folder, "run.seam"), page = `${recording}.html`;

	run(server!, ["record", "-F", "2000", "--trace", "--off-cpu", "-o",
		recording, "--", ...isFirst ? first : [], "./server", reason,
		"300"]);
	run(folder, ["view", "-o", page, recording]);
	const text = /class="recording">([^<]*)</.exec(
		readFileSync(page, "utf8"))![1]!;
	const profile = await decode(text.trim());

	assert.ok(typeof profile !== "string", String(profile));
	rmSync(recording, { recursive: true });
	return profile;
}

/* As the button "p99 and slower" of the page. */
function slowest(profile: Profile): Causes {
	const func = profile.functions.name.indexOf("handle_request");
	const lengths = lengthsOf(choose(profile, ALL), func);

	return causesOf(profile, ALL, func, quantile(lengths, 0.99),
			Infinity)!;
}

const skip = server ? false : "SERVER is not set";

for (let i = 0; i < nRuns; i++) {
	const reasons = Object.keys(RIGHT);
	const reason = reasons[Math.floor(Math.random() * reasons.length)]!;

	test(`run ${i + 1}: slow for ${reason}`, { skip }, async t => {
		const causes = slowest(await record(reason));
		const { cause } = answerOf(causes), part = causes.parts[0]!;
		const place = placeOf(causes, part);

		t.diagnostic(cause);
		assert.ok(RIGHT[reason]!(part), cause);
		assert.equal(place === NONE || !PLACES[reason] ? "" :
			causes.slow.chosen.profile.functions.name[place],
			PLACES[reason]);
	});
}
