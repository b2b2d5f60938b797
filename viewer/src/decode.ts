/* SPDX-License-Identifier: MIT */
/*
 * decode.ts - from the payload of a page to a Profile
 *
 * doc/formats/page.md describes the bytes.  A payload is checked as a whole:
 * every index is that of a row, times do not fall where they must not, so no
 * view has to check anything.  What is damaged gives one sentence and no
 * profile.
 */
import {
	Calls, Code, Frames, Functions, LAYERS, MARK_KINDS, MARKED, Marks, Meta,
	Modules, NONE, Process, Profile, ProfileEvent, Samples, SourceFile,
	Stacks, Thread, Timed,
} from "./profile";
import { shortName } from "./text";

const MAGIC = "seampage";
const VERSION = 1;
const MAX_BYTES = 0x7fff0000;	/* of a payload, unpacked */
const MAX_ROWS = 1 << 25;	/* of a column: more are no page of ours */
const MAX_NUMBER = 2 ** 53;

const enum Encoding { SAME, PLAIN, DELTA }

interface Cursor {
	bytes: Uint8Array;
	at: number;
}

interface RawColumn {
	n: number;
	encoding: Encoding;
	bytes: Uint8Array;
}

type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;
type Json = Record<string, unknown>;

/* What is wrong, as the end of a sentence. */
function damaged(what: string): never {
	throw new Error(what);
}

/* -- bytes ---------------------------------------------------------------- */

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
	let binary;

	try {
		binary = atob(text);
	} catch {
		damaged("it is cut, or has characters that are not base64");
	}
	const bytes = new Uint8Array(binary.length);

	for (let i = 0; i < bytes.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

async function gunzip(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
	const reader = new Blob([packed]).stream()
		.pipeThrough(new DecompressionStream("gzip")).getReader();
	const parts: Uint8Array[] = [];
	let n = 0, to = 0;

	for (;;) {
		const { done, value } = await reader.read();

		if (done)
			break;
		n += value.length;
		if (n > MAX_BYTES) {
			await reader.cancel();
			damaged("it is larger than 2 GiB");
		}
		parts.push(value);
	}
	const bytes = new Uint8Array(n);

	for (const part of parts) {
		bytes.set(part, to);
		to += part.length;
	}
	return bytes;
}

/* A number of LEB128, exact up to 2^53.  Behind the end are zeros. */
function number(c: Cursor): number {
	let byte = c.bytes[c.at++] ?? 0, v = byte & 0x7f, scale = 128;

	while (byte >= 0x80 && scale < MAX_NUMBER) {
		byte = c.bytes[c.at++] ?? 0;
		v += (byte & 0x7f) * scale;
		scale *= 128;
	}
	return v;
}

/*
 * The numbers of a column, whose bytes are @bytes and no more; with @signed,
 * differences whose sign is the lowest bit.  Most numbers have at most three
 * bytes: of those the loop makes no call.
 */
function numbers(bytes: Uint8Array, to: Column, signed: boolean): void {
	const c = { bytes, at: 0 }, n = to.length;
	let at = 0, sum = 0;

	for (let i = 0; i < n; i++) {
		let v = bytes[at++]!;

		if (v >= 0x80) {
			v = v & 0x7f | bytes[at++]! << 7;
			if (v >= 0x4000)
				v = v & 0x3fff | bytes[at++]! << 14;
			if (v >= 0x200000) {
				c.at = at - 3;
				v = number(c);
				at = c.at;
			}
		}
		if (signed) {
			sum += v < 0x80000000 ? v >>> 1 ^ -(v & 1) :
			       v % 2 ? -(v + 1) / 2 : v / 2;
			to[i] = sum;
		} else {
			to[i] = v;
		}
	}
	if (at !== bytes.length)
		damaged("a column is not as long as it says");
}

/* -- the container -------------------------------------------------------- */

interface Container {
	head: Json;
	columns: Map<string, RawColumn>;
}

function latin(bytes: Uint8Array): string {
	return String.fromCharCode(...bytes);
}

function readColumns(c: Cursor): Map<string, RawColumn> {
	const columns = new Map<string, RawColumn>();

	for (;;) {
		const length = c.bytes[c.at++];

		if (length === undefined)
			damaged("its end is missing");
		if (length === 0)
			return columns;
		const name = latin(c.bytes.subarray(c.at, c.at + length));

		c.at += length;
		const encoding = c.bytes[c.at++]!;
		const n = number(c), nBytes = number(c);

		if (n > MAX_ROWS || !(encoding <= Encoding.DELTA) ||
		    nBytes > c.bytes.length - c.at ||
		    (encoding !== Encoding.SAME && nBytes < n))
			damaged(`column ${shortName(name)} is of no known ` +
				"form");
		columns.set(name, { n, encoding, bytes: c.bytes.subarray(
			c.at, c.at + nBytes) });
		c.at += nBytes;
	}
}

function open(bytes: Uint8Array): Container {
	const begin = MAGIC.length + 1;
	const end = bytes.indexOf(0, begin);

	if (latin(bytes.subarray(0, MAGIC.length)) !== MAGIC)
		damaged("it is of another format");
	if (bytes[MAGIC.length] !== VERSION)
		damaged(`its version is ${bytes[MAGIC.length]}, and this ` +
			`page reads version ${VERSION}`);
	if (end < 0)
		damaged("its head is cut");
	const head: unknown = JSON.parse(new TextDecoder().decode(
		bytes.subarray(begin, end)));

	return { head: object(head, "head"),
		 columns: readColumns({ bytes, at: end + 1 }) };
}

/* The rows of a table are as many as in the first of its columns. */
function rows(c: Container, name: string): number {
	return c.columns.get(name)?.n ?? damaged(`column ${name} is missing`);
}

/* Each number is less than @end, or is @none. */
function check(name: string, column: Column, end: number, none: number): void {
	const n = column.length;

	for (let i = 0; i < n; i++)
		if (column[i]! >= end && column[i] !== none)
			damaged(`${name} ${i} is ${column[i]}, of ${end}`);
}

/* The column @name of @n rows, whose numbers are less than @end, or @none. */
function column<T extends Column>(c: Container, name: string, n: number,
				  make: new (n: number) => T, end = Infinity,
				  none = -1): T {
	const raw = c.columns.get(name);

	if (!raw || raw.n !== n)
		damaged(`column ${name} is missing, or not as long as others`);
	const to = new make(n);

	if (raw.encoding === Encoding.SAME)
		to.fill(number({ bytes: raw.bytes, at: 0 }));
	else
		numbers(raw.bytes, to, raw.encoding === Encoding.DELTA);
	if (end !== Infinity)
		check(name, raw.encoding === Encoding.SAME ?
			    to.subarray(0, 1) : to, end, none);
	return to;
}

/* -- the head ------------------------------------------------------------- */

function object(v: unknown, name: string): Json {
	return typeof v === "object" && v !== null ? v as Json :
	       damaged(`${name} is missing`);
}

function list(of: Json, name: string): unknown[] {
	const v = of[name];

	return Array.isArray(v) ? v : damaged(`the list ${name} is missing`);
}

function text(of: Json, name: string): string {
	const v = of[name];

	return typeof v === "string" ? v : damaged(`${name} is no text`);
}

function texts(of: Json, name: string): string[] {
	const v = list(of, name);

	return v.every(t => typeof t === "string") ? v as string[] :
	       damaged(`${name} are no texts`);
}

/* A number of the head; @missing in place of null or nothing. */
function figure(of: Json, name: string, missing?: number): number {
	const v = of[name] ?? missing;

	return typeof v === "number" ? v : damaged(`${name} is no number`);
}

function loss(v: unknown): Meta["losses"][0] {
	const l = object(v, "loss");

	return { text: text(l, "text"), records: figure(l, "records") };
}

function meta(head: Json): Meta {
	const m = object(head.meta, "meta");
	const coarse = object(m.coarse, "coarse");

	return {
		version: figure(m, "version"),
		title: text(m, "title"),
		file: text(m, "file"),
		startNs: text(m, "startNs"),
		durationNs: figure(m, "durationNs"),
		utcNs: text(m, "utcNs"),
		openAtNs: figure(m, "openAtNs"),
		openForNs: figure(m, "openForNs"),
		notes: texts(m, "notes"),
		losses: list(m, "losses").map(loss),
		coarse: {
			samples: figure(coarse, "samples"),
			calls: figure(coarse, "calls"),
			shortestCallNs: figure(coarse, "shortestCallNs"),
		},
		clockSkewNs: figure(m, "clockSkewNs"),
		hostName: text(m, "hostName"),
		cpus: figure(m, "cpus"),
	};
}

function process(v: unknown): Process {
	const p = object(v, "process");

	return {
		pid: figure(p, "pid"), name: text(p, "name"),
		program: text(p, "program"),
		start: figure(p, "start"), end: figure(p, "end", Infinity),
	};
}

function thread(v: unknown, nProcesses: number): Thread {
	const t = object(v, "thread");
	const of = figure(t, "process");

	if (!(of >= 0 && of < nProcesses))
		damaged(`a thread is of process ${of}, of ${nProcesses}`);
	return {
		process: of, tid: figure(t, "tid"), name: text(t, "name"),
		start: figure(t, "start"), end: figure(t, "end", Infinity),
		running: figure(t, "running", NaN),
		blocked: figure(t, "blocked", NaN),
		preempted: figure(t, "preempted", NaN),
		unknown: figure(t, "unknown", NaN),
	};
}

function event(v: unknown): ProfileEvent {
	const e = object(v, "event");
	const unit = text(e, "unit"), kind = text(e, "kind");

	if ((unit !== "ns" && unit !== "count") ||
	    (kind !== "sample" && kind !== "wait" && kind !== "call"))
		damaged("an event is of no known kind");
	return {
		name: text(e, "name"), unit, kind,
		preempted: e.preempted === true, lost: figure(e, "lost"),
	};
}

function modules(head: Json): Modules {
	const pairs = texts(head, "modules");

	return {
		n: pairs.length >> 1,
		path: pairs.filter((_, i) => i % 2 === 0),
		buildId: pairs.filter((_, i) => i % 2 === 1),
	};
}

function files(head: Json): SourceFile[] {
	const all: SourceFile[] = texts(head, "files").map(path => (
		{ path, text: null }));

	for (const v of list(head, "sources")) {
		const source = object(v, "source");
		const file = all[figure(source, "file")] ??
			     damaged("a source is of no file");

		file.text = text(source, "text");
	}
	return all;
}

function code(v: unknown, nFunctions: number): Code {
	const c = object(v, "code");
	const func = figure(c, "func"), lines = texts(c, "text");
	const addr = Float64Array.from(list(c, "addr") as number[]);
	const line = Uint32Array.from(list(c, "line") as number[]);

	if (!(func >= 0 && func < nFunctions) || addr.length !== lines.length ||
	    line.length !== lines.length)
		damaged("machine code is of no function");
	return { func, addr, text: lines, line };
}

/* -- tables --------------------------------------------------------------- */

function functions(c: Container, nModules: number): Functions {
	const name = texts(c.head, "functions");
	const n = name.length;
	const module = column(c, "functions.module", n, Uint32Array, nModules);
	const layer = column(c, "functions.layer", n, Uint8Array,
			     LAYERS.length);

	const named = column(c, "functions.named", n, Uint8Array);

	return { n, name, module, layer, named };
}

function frames(c: Container, nFunctions: number, nFiles: number): Frames {
	const n = rows(c, "frames.func");
	const func = column(c, "frames.func", n, Uint32Array, nFunctions);
	const file = column(c, "frames.file", n, Uint32Array, nFiles, NONE);

	return {
		n, func, file, line: column(c, "frames.line", n, Uint32Array),
		addr: column(c, "frames.addr", n, Float64Array),
		inlined: column(c, "frames.inlined", n, Uint8Array),
	};
}

function stacks(c: Container, nFrames: number): Stacks {
	const n = rows(c, "stacks.parent");
	const parent = column(c, "stacks.parent", n, Uint32Array);
	const frame = column(c, "stacks.frame", n, Uint32Array);

	if (n === 0)
		damaged("there is no empty stack");
	parent[0] = frame[0] = NONE;
	for (let i = 1; i < n; i++)
		if (!(parent[i]! < i && frame[i]! < nFrames))
			damaged(`stack ${i} is of no frame or no caller`);
	return { n, parent, frame };
}

function checkOrder(name: string, time: Float64Array): void {
	for (let i = 1; i < time.length; i++)
		if (!(time[i]! >= time[i - 1]!))
			damaged(`${name} ${i} is before the one before it`);
}

interface Sizes {
	threads: number;
	stacks: number;
	events: number;
	words: number;
	functions: number;
}

type Reader = <T extends Column>(name: string, make: new (n: number) => T,
				 end?: number, none?: number) => T;

/* Reads the columns of @table, all of @n rows. */
function reader(c: Container, table: string, n: number): Reader {
	return (name, make, end, none) => column(c, `${table}.${name}`, n,
						 make, end, none);
}

/* A table whose rows are in the order of time. */
function inTime(c: Container, table: string):
		{ n: number; read: Reader; time: Float64Array } {
	const n = rows(c, `${table}.time`), read = reader(c, table, n);
	const time = read("time", Float64Array);

	checkOrder(`${table}.time`, time);
	return { n, read, time };
}

function samples(c: Container, sizes: Sizes): Samples {
	const { n, read, time } = inTime(c, "samples");

	return {
		n, time,
		thread: read("thread", Uint32Array, sizes.threads),
		stack: read("stack", Uint32Array, sizes.stacks),
		event: read("event", Uint8Array, sizes.events),
		cpu: read("cpu", Uint16Array),
		weight: read("weight", Float64Array),
		count: read("count", Float64Array),
		placed: read("placed", Uint8Array),
		reason: read("reason", Uint32Array, sizes.words),
		waker: read("waker", Uint32Array, sizes.words),
	};
}

/*
 * Fill in parents, the last call of the thread that is one level up, and take
 * the time of callees from self.
 */
function nest(calls: Calls): void {
	const last = new Uint32Array(0x10000);
	const { thread, depth, parent, self, duration, begin } = calls;
	let deepest = 0;	/* of the next call */

	for (let i = 0; i < calls.n; i++) {
		const d = depth[i]!;

		if (i === 0 || thread[i] !== thread[i - 1])
			deepest = 0;
		else if (begin[i]! < begin[i - 1]!)
			damaged(`call ${i} begins before the one before it`);
		if (d > deepest)
			damaged(`call ${i} has no caller`);
		parent[i] = d ? last[d - 1]! : NONE;
		if (d)
			self[parent[i]!]! -= duration[i]!;
		last[d] = i;
		deepest = Math.min(d + 1, 0xffff);
	}
}

/* Of calls or intervals; empty where the recording has no waits of them. */
function waits(c: Container, read: Reader):
		{ blocked: Float64Array; preempted: Float64Array } {
	return object(c.head.meta, "meta").callWaits === true ? {
		blocked: read("blocked", Float64Array),
		preempted: read("preempted", Float64Array),
	} : { blocked: new Float64Array(0), preempted: new Float64Array(0) };
}

function calls(c: Container, sizes: Sizes): Calls {
	const n = rows(c, "calls.begin");
	const read = reader(c, "calls", n);
	const duration = read("duration", Float64Array);
	const self = read("hidden", Float64Array);

	for (let i = 0; i < n; i++)
		self[i] = duration[i]! - self[i]!;
	const all: Calls = {
		n, duration, self,
		begin: read("begin", Float64Array),
		thread: read("thread", Uint32Array, sizes.threads),
		func: read("func", Uint32Array, sizes.functions, NONE),
		depth: read("depth", Uint16Array),
		parent: new Uint32Array(n),
		text: read("text", Uint32Array, sizes.words),
		...waits(c, read),
	};

	nest(all);
	return all;
}

/*
 * Their names become functions of the layer MARKED, so that all that chooses a
 * function can choose them.
 */
function intervals(c: Container, sizes: Sizes, functions: Functions,
		   words: string[]): Timed {
	const n = rows(c, "intervals.begin");
	const read = reader(c, "intervals", n);
	const begin = read("begin", Float64Array);
	const thread = read("thread", Uint32Array, sizes.threads);
	const func = read("name", Uint32Array, sizes.words);
	const known = new Map<number, number>();

	for (let i = 1; i < n; i++)
		if (thread[i]! < thread[i - 1]! || (thread[i] === thread[i - 1]
				&& !(begin[i]! >= begin[i - 1]!)))
			damaged(`interval ${i} begins before the one before ` +
				"it");
	for (let i = 0; i < n; i++) {
		let at = known.get(func[i]!);

		if (at === undefined)
			known.set(func[i]!, at = functions.n + known.size);
		func[i] = at;
	}
	addMarked(functions, [...known.keys()].map(word => words[word]!));
	return {
		n, begin, thread, func,
		duration: read("duration", Float64Array),
		text: read("text", Uint32Array, sizes.words),
		...waits(c, read),
	};
}

function addMarked(functions: Functions, names: string[]): void {
	const n = functions.n + names.length, from = functions.n;
	const grown = <T extends Uint8Array | Uint32Array>(to: T, old: T,
							   rest: number) => {
		to.set(old);
		to.fill(rest, from);
		return to;
	};

	functions.n = n;
	functions.name.push(...names);
	functions.module = grown(new Uint32Array(n), functions.module, 0);
	functions.layer = grown(new Uint8Array(n), functions.layer, MARKED);
	functions.named = grown(new Uint8Array(n), functions.named!, 1);
}

function marks(c: Container, sizes: Sizes): Marks {
	const { n, read, time } = inTime(c, "marks");

	return {
		n, time,
		duration: read("duration", Float64Array),
		thread: read("thread", Uint32Array, sizes.threads, NONE),
		kind: read("kind", Uint8Array, MARK_KINDS.length),
		name: read("name", Uint32Array, sizes.words),
		text: read("text", Uint32Array, sizes.words),
	};
}

function profile(c: Container): Profile {
	const { head } = c;
	const words = texts(head, "words");
	const processes = list(head, "processes").map(process);
	const threads = list(head, "threads").map(
		t => thread(t, processes.length));
	const events = list(head, "events").map(event);
	const allModules = modules(head), allFiles = files(head);
	const allFunctions = functions(c, allModules.n);
	const allFrames = frames(c, allFunctions.n, allFiles.length);
	const allStacks = stacks(c, allFrames.n);
	const sizes = {
		threads: threads.length, stacks: allStacks.n,
		events: events.length, words: words.length,
		functions: allFunctions.n,
	};

	return {
		meta: meta(head), words, files: allFiles, processes, threads,
		events, modules: allModules, functions: allFunctions,
		frames: allFrames, stacks: allStacks,
		samples: samples(c, sizes), calls: calls(c, sizes),
		intervals: intervals(c, sizes, allFunctions, words),
		marks: marks(c, sizes),
		code: list(head, "code").map(v => code(v, sizes.functions)),
	};
}

/* -- all ------------------------------------------------------------------ */

function reason(error: unknown): string {
	if (error instanceof SyntaxError)
		return "its head is no JSON";
	if (error instanceof RangeError)
		return "there is not enough memory for it";
	/* of DecompressionStream, in words that each browser chooses */
	if (error instanceof TypeError)
		return "its compressed data is damaged or cut";
	return error instanceof Error ? error.message : String(error);
}

/* A payload as it is in the page.  A text is a sentence: what is wrong. */
export async function decode(payload: string): Promise<Profile | string> {
	try {
		return profile(open(await gunzip(fromBase64(payload))));
	} catch (error) {
		return `The recording in this page cannot be read: ` +
			`${reason(error)}.`;
	}
}

/* The recordings of a page, or what is wrong with the first that is damaged. */
export async function decodePage(page: Document): Promise<Profile[] | string> {
	const all: Profile[] = [];

	for (const script of page.querySelectorAll("script.recording")) {
		const one = await decode((script.textContent ?? "").trim());

		if (typeof one === "string")
			return one;
		all.push(one);
		script.remove();	/* the text is large, and not needed */
	}
	return all.length ? all : "This page has no recording in it.";
}
