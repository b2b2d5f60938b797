// SPDX-License-Identifier: MIT
// decode.mjs - the decoder against facts, and against damage
//
//	node test/decode.mjs PAYLOAD FACTS.json
//
// FACTS are of another reader of the same payload.  Damage is made in the
// base64, in the gzip, and in the bytes inside, which no checksum of gzip's
// protects then; each time there must be a profile or a sentence, never an
// exception, and a profile must be one whose indices are rows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const N_DAMAGED = 1500;
const NONE = 0xffffffff;
const [payloadFile, factsFile] = process.argv.slice(2);
const payload = readFileSync(payloadFile, "ascii").trim();
const facts = JSON.parse(readFileSync(factsFile, "utf8"));
const { outputFiles } = await build({
	entryPoints: ["src/decode.ts"], bundle: true, format: "esm",
	write: false,
});
const { decode } = await import("data:text/javascript;base64," +
	Buffer.from(outputFiles[0].text).toString("base64"));

function sum(column, from = 0) {
	return column.subarray(from).reduce((a, b) => a + b, 0);
}

function checkFacts(p) {
	const weights = facts.weights.map(() => 0);

	p.samples.event.forEach((e, i) => { weights[e] += p.samples.weight[i]; });
	assert.equal(p.samples.n, facts.samples);
	assert.deepEqual(weights, facts.weights);
	assert.equal(sum(p.stacks.parent, 1), facts.parents);
	assert.equal(sum(p.frames.addr), facts.addresses);
	assert.deepEqual(p.words, facts.words);
	assert.deepEqual(p.functions.name, facts.names);
}

function below(column, end, none = -1) {
	assert.ok(column.every(v => v < end || v === none));
}

function checkIndices(p) {
	below(p.functions.module, p.modules.n);
	below(p.frames.func, p.functions.n);
	below(p.frames.file, p.files.length, NONE);
	below(p.stacks.frame, p.frames.n, NONE);
	p.stacks.parent.forEach((v, i) => assert.ok(v < i || i === 0));
	below(p.samples.thread, p.threads.length);
	below(p.samples.stack, p.stacks.n);
	below(p.samples.event, p.events.length);
	below(p.samples.reason, p.words.length);
	below(p.calls.func, p.functions.n, NONE);
	below(p.calls.parent, p.calls.n, NONE);
	below(p.marks.name, p.words.length);
}

/* A generator of numbers, the same at each run. */
let state = 12345;

function random(n) {
	state = Math.imul(state, 1103515245) + 12345 >>> 0;
	return (state >>> 8) % n;
}

async function tryDamaged(text) {
	const p = await decode(text);

	if (typeof p !== "string")
		checkIndices(p);
	else
		assert.match(p, /^The recording in this page cannot be read: .+\.$/);
	return typeof p === "string";
}

function flipped(bytes) {
	const copy = Uint8Array.from(bytes);

	copy[random(copy.length)] ^= 1 << random(8);
	return copy;
}

const whole = await decode(payload);

assert.notEqual(typeof whole, "string", whole);
checkFacts(whole);
checkIndices(whole);

const packed = Buffer.from(payload, "base64");
const bytes = gunzipSync(packed);

for (const text of ["", "!", payload.slice(0, -4), payload.slice(1),
		    packed.subarray(0, packed.length >> 1).toString("base64"),
		    gzipSync("{}").toString("base64"),
		    gzipSync(Buffer.concat([Buffer.from("seampage\x02{}"),
					    Buffer.alloc(2)]))
			.toString("base64")])
	assert.ok(await tryDamaged(text), text.slice(0, 20));
for (let i = 0; i < 100; i++)
	assert.ok(await tryDamaged(Buffer.from(flipped(packed))
		.toString("base64")) || true);
/* where the columns begin most bytes are, so half of the damage is before */
for (let i = 0; i < N_DAMAGED; i++) {
	const cut = i % 3 === 0 ? bytes.subarray(0, random(bytes.length)) :
		    flipped(bytes);

	await tryDamaged(gzipSync(cut, { level: 1 }).toString("base64"));
}
