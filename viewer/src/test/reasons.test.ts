/* SPDX-License-Identifier: MIT */
/*
 * reasons.test.ts - what the page says about slow requests, against the truth
 *
 *	SEAM=PROGRAM SERVER=FOLDER [RUNS=N] [HOW=often|once|trigger]
 *		node test/run.mjs FILE
 *
 * FOLDER has examples/layers's server and orders.lua.  Each run is slow for
 * one reason, drawn at random and not told to the page, which must name it:
 * often, in one of 40 requests; once in 100,000; or in one of 800, of which the
 * page has a trigger's snapshot.
 * Other programs that take the CPU would be a reason too: where this user may,
 * the server runs before them (SCHED_FIFO); else the machine must be idle.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { decode } from "../decode";
import { firstRange } from "../draw/time_scene";
import { lengthsOf, quantile } from "../engine/calls";
import { causesOf, placeOf, type Causes, type Part } from "../engine/causes";
import { choose } from "../engine/chosen";
import { LAYERS, NONE, type Profile } from "../profile";
import { ALL } from "../select";
import { answerOf } from "../sentence";

const seam = process.env.SEAM ?? "seam", server = process.env.SERVER;
const nRuns = Number(process.env.RUNS ?? 20), how = process.env.HOW ?? "often";
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

/* How to record, and how many requests, of which how many are slow. */
const WAYS: Record<string, { options: string[]; requests: string[] }> = {
	often: { options: ["--trace"], requests: ["600"] },
	once: { options: ["--trace", "--no-trace=tax,clock_ns"],
		requests: ["100000", "100000"] },
	trigger: { options: ["--flight-recorder", "--trigger",
			     `handle_request>${isFirst ? 15 : 5}ms`, "--after", "2",
			     "--max-snapshots", "40"],
		   requests: ["800", "800"] },
};

/* What the program prints. */
function run(cwd: string, args: string[]): string {
	const { status, stdout, stderr } = spawnSync(seam, args, { cwd,
		encoding: "utf8", timeout: 300000 });

	assert.ok(status === 0 || status === 3, stderr);
	return stdout;
}

/* The last slow request of the server's @log. */
function slowOf(log: string): { tid: number; from: number; to: number } {
	const [, tid, from, to] =
		/.* thread (\d+) from (\d+) to (\d+) /s.exec(log)!;

	return { tid: Number(tid), from: Number(from), to: Number(to) };
}

/* The snapshot that was made when that request ended. */
function snapshotOf(log: string): string {
	const { to } = slowOf(log);
	const made = readdirSync(folder).find(name => /\.\d+\.seam$/.test(name) &&
		(JSON.parse(readFileSync(join(folder, name, "meta.json"),
			"utf8")) as { triggers: { time_ns: number }[] })
			.triggers.some(t => Math.abs(t.time_ns - to) < 3e6));

	assert.ok(made, log);
	return join(folder, made);
}

async function record(reason: string): Promise<[Profile, string]> {
	const recording = join(folder, "run.seam"), page = `${recording}.html`;
	const { options, requests } = WAYS[how]!;

	for (const old of readdirSync(folder))
		rmSync(join(folder, old), { recursive: true });
	/* Lua too where chrt is the command */
	const log = run(server!, ["record", "-F", "2000", ...options,
		"--off-cpu", "--layers=guest", "-o", recording, "--",
		...isFirst ? first : [], "./server", reason, ...requests]);
	run(folder, ["view", "-o", page, how === "trigger" ? snapshotOf(log) :
		     recording]);
	const text = /class="recording">([^<]*)</.exec(
		readFileSync(page, "utf8"))![1]!;
	const profile = await decode(text.trim());

	assert.ok(typeof profile !== "string", String(profile));
	return [profile, log];
}

/* As the button "p99 and slower" of the page; once: of the length in the log. */
function slowest(profile: Profile, log: string): Causes {
	const func = profile.functions.name.indexOf("handle_request");
	const { tid, from, to } = slowOf(log);
	const thread = profile.threads.findIndex(t => t.tid === tid);

	return how === "often" ? causesOf(profile, ALL, func, quantile(
			lengthsOf(choose(profile, ALL), func), 0.99), Infinity)! :
	       causesOf(profile, { ...ALL, threads: [thread] }, func,
			to - from - 1e6, to - from)!;
}

/* The time line shows that request first, if its trigger was the first. */
function checkOpening(profile: Profile, log: string): void {
	const start = Number(profile.meta.startNs), slow = slowOf(log);
	const { from, to } = firstRange(profile, ALL);

	assert.ok(Math.abs(profile.meta.openAtNs + start - slow.to) > 3e6 ||
		  (from + start < slow.from && slow.to < to + start &&
		   to - from < 0.2e9), `${from} to ${to} ns after ${start}`);
}

const skip = server ? false : "SERVER is not set";

for (let i = 0; i < nRuns; i++) {
	const reasons = Object.keys(RIGHT);
	const reason = reasons[Math.floor(Math.random() * reasons.length)]!;

	test(`run ${i + 1}: slow for ${reason}`, { skip }, async t => {
		const [profile, log] = await record(reason);
		const causes = slowest(profile, log);
		const { cause } = answerOf(causes), part = causes.parts[0]!;
		const place = placeOf(causes, part);

		t.diagnostic(cause);
		if (how === "trigger")
			checkOpening(profile, log);
		assert.ok(RIGHT[reason]!(part), cause);
		assert.equal(place === NONE || !PLACES[reason] ? "" :
			causes.slow.chosen.profile.functions.name[place],
			PLACES[reason]);
	});
}
