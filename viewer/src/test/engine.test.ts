/* SPDX-License-Identifier: MIT */
/*
 * engine.test.ts - sums of small profiles against answers written by hand
 *
 * smallProfile() has one sample of 10 ns where nothing else is given.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NONE, type Profile } from "../profile";
import { ALL, type Selection } from "../select";
import { bucketOf, callRows, leastOf, lengthsOf, quantile, slowest }
	from "../engine/calls";
import { causesOf, partName, placeOf } from "../engine/causes";
import { choose } from "../engine/chosen";
import { diffOf } from "../engine/diff";
import { buildName, moduleName } from "../engine/diff_names";
import { RAN, rowName, rowsOf, type Key } from "../engine/rows";
import { treeInTime } from "../engine/in_time";
import { invertedOf, sandwichOf } from "../engine/sandwich";
import { treeByThread, treeOf } from "../engine/sums";
import type { CountedTree } from "../engine/tree_nodes";
import { smallProfile, type SmallSample } from "./small";

const select = (part: Partial<Selection>): Selection => ({ ...ALL, ...part });
const func = (p: Profile, name: string) => p.functions.name.indexOf(name);

/* "name self/total" of each row, by name. */
function rows(p: Profile, key: Key, part: Partial<Selection> = {}): string {
	const r = rowsOf(choose(p, select(part)), key);

	return Array.from(r.id, (id, i) => `${rowName(p, key, id)} ` +
		`${r.self[i]}/${r.total[i]}`).sort().join(", ");
}

/* "main=30(a=10,b=20)": names with totals. */
function shape(p: Profile, t: CountedTree, node = 0): string {
	const name = t.thread[node] !== NONE ? p.threads[t.thread[node]!]!.name :
		t.func[node] === NONE ? "" : p.functions.name[t.func[node]!]!;
	const children: string[] = [];

	for (let c = t.firstChild[node]!; c !== NONE; c = t.nextSibling[c]!)
		children.push(shape(p, t, c));
	return `${name}=${t.total[node]}` +
	       (children.length ? `(${children.join(",")})` : "");
}

const samples = (...stacks: string[]): SmallSample[] =>
	stacks.map((stack, i) => ({ time: 10 * i, stack }));

test("a recursive function counts once a stack", () => {
	const p = smallProfile({ samples: samples("main;f;g;f", "main;f",
						  "main;g", "") });

	assert.equal(rows(p, "function"), "[no stack] 10/10, f 20/20, " +
		     "g 10/20, main 0/30");
});

test("children are in the order of their names", () => {
	const p = smallProfile({ samples: samples("main;z", "main;a;x",
						  "main;a;b", "main;a;x") });

	assert.equal(shape(p, treeOf(choose(p, ALL))),
		     "=40(main=40(a=30(b=10,x=20),z=10))");
});

test("inverted, a function's total is its self time, by its callers", () => {
	const p = smallProfile({ samples: samples("main;a;f", "main;b;f",
		"main;b;f", "main;b", "main;f;f", "") });

	assert.equal(shape(p, invertedOf(choose(p, ALL))), "=60(" +
		     "b=10(main=10)," +
		     "f=40(a=10(main=10),b=20(main=20),f=10(main=10)))");
});

test("in the order of time, what is called again is a node again", () => {
	const p = smallProfile({
		threads: ["one", "two"],
		samples: [["main;a;f", 0], ["main;a", 0], ["x", 1], ["main;a;f", 0],
			  ["main", 0], ["main;a;f", 0], ["", 0], ["main", 0]]
			.map(([stack, thread], time) => ({ time,
				stack: stack as string,
				thread: thread as number })),
	});
	const { tree, unplaced, beyond } = treeInTime(choose(p, ALL));

	assert.equal(shape(p, tree), "=80(one=70(main=50(" +
		     "a=30(f=10,f=10),a=10(f=10)),main=10),two=10(x=10))");
	assert.deepEqual([...tree.begin!],
			 /* all one main  a  f   f   a   f main two  x */
			 [0, 0, 0, 0, 0, 20, 40, 40, 60, 70, 70]);
	assert.deepEqual([unplaced, beyond], [0, 0]);
});

test("sums have no place in the order of time", () => {
	const p = smallProfile({ samples: [
		{ time: 0, stack: "main;f" },
		{ time: 1, stack: "main;k:futex", event: 1, weight: 100 },
		{ time: 9, stack: "", event: 1, weight: 7, placed: 0 },
	] });
	const { tree, unplaced } = treeInTime(choose(p, select({
		events: [0, 1] })));

	assert.equal(shape(p, tree), "=110(app=110(main=110(f=10,futex=100)))");
	assert.equal(tree.waiting[0], 100);
	assert.equal(unplaced, 7);
});

test("a range of time is half open", () => {
	const p = smallProfile({ samples: samples("a", "b", "c", "d") });

	assert.equal(rows(p, "function", { from: 10, to: 30 }),
		     "b 10/10, c 10/10");
	assert.equal(rows(p, "function", { from: 11, to: 30 }), "c 10/10");
	assert.equal(rows(p, "function", { from: 40, to: 40 }), "");
});

test("self of a layer left out goes to its caller", () => {
	const p = smallProfile({ samples: samples("main;k:read;k:copy",
						  "k:idle", "main;g:lua") });

	assert.equal(rows(p, "function", { layers: [1, 3] }),
		     "lua 10/10, main 10/20");
	assert.equal(rows(p, "layer"), "guest 10/10, kernel 20/20, " +
		     "native 0/20");
});

test("a module selects whole stacks", () => {
	const p = smallProfile({
		samples: samples("main;f;g", "main;g", "main;h"),
		modules: { f: "libf.so" },
	});

	assert.equal(rows(p, "function", {
		module: p.modules.path.indexOf("libf.so") }),
		"f 0/10, g 10/10, main 0/10");
});

test("threads are selected, and are the first level of a tree", () => {
	const p = smallProfile({
		threads: ["one", "two"],
		samples: [{ time: 0, stack: "main;f" },
			  { time: 1, stack: "main;f", thread: 1 },
			  { time: 2, stack: "g", thread: 1 }],
	});

	assert.equal(rows(p, "thread"), "one 1 10/10, two 2 20/20");
	assert.equal(rows(p, "function", { threads: [1] }),
		     "f 10/10, g 10/10, main 0/10");
	assert.equal(shape(p, treeByThread(choose(p, ALL))), "=30(" +
		     "one=10(main=10(f=10)),two=20(g=10,main=10(f=10)))");
});

test("waits have a reason and are beside what ran", () => {
	const p = smallProfile({ samples: [
		{ time: 0, stack: "main;f" },
		{ time: 5, stack: "main;k:futex", event: 1, weight: 100,
		  reason: "futex_wait" },
		{ time: 200, stack: "main;f", event: 2, weight: 40 },
	] });

	assert.equal(rows(p, "function"), "f 10/10, main 0/10");
	assert.equal(rows(p, "wait", { events: [0, 1, 2] }),
		     "futex_wait 100/100, not known 40/40, running 10/10");
	const tree = treeOf(choose(p, select({ events: [0, 1, 2] })));

	assert.deepEqual([tree.total[0], tree.waiting[0]], [150, 140]);
	assert.equal(rowName(p, "wait", RAN), "running");
});

test("callers begin at the innermost call, callees at the outermost", () => {
	const p = smallProfile({ samples: samples("main;f;g;f;h", "a;f",
						  "main;g") });
	const s = sandwichOf(choose(p, ALL), func(p, "f"));

	assert.equal(shape(p, s.callers),
		     "=20(f=20(a=10,g=10(f=10(main=10))))");
	assert.equal(shape(p, s.callees),
		     "=20(f=20(g=10(f=10(h=10))))");
});

/* -- calls -------------------------------------------------------------- */

test("buckets are those of the program", () => {
	for (const ns of [0, 1, 15, 16, 17, 31, 32, 33, 1000, 2 ** 31 - 1,
			  2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 12345,
			  2 ** 53 - 1]) {
		const bucket = bucketOf(ns);
		/* src/model/xray/account.h, with integers of 64 bits */
		const n = BigInt(ns), top = (n | 16n).toString(2).length - 1;
		const shift = BigInt(top - 4);

		assert.equal(bucket, Number(shift * 16n + (n >> shift)));
		assert.ok(leastOf(bucket) <= ns && ns < leastOf(bucket + 1));
	}
});

const nested = smallProfile({
	threads: ["one", "two"],
	calls: [
		{ name: "handle", begin: 0, end: 100, calls: [
			{ name: "parse", begin: 10, end: 30 },
			{ name: "handle", begin: 40, end: 90, calls: [
				{ name: "parse", begin: 50, end: 60 }] }] },
		{ name: "handle", begin: 200, end: 205 },
		{ name: "parse", begin: 0, end: 7, thread: 1 },
	],
	samples: [
		{ time: 35, stack: "handle;k:futex", event: 1, weight: 3,
		  reason: "futex" },
		{ time: 52, stack: "handle", event: 2, weight: 4 },
		{ time: 95, stack: "handle", event: 1, weight: 1, count: 9,
		  placed: 0, reason: "short" },
	],
});

test("calls are counted whole, the outermost once in the total", () => {
	const r = callRows(choose(nested, ALL));
	const at = Array.from(r.func).indexOf(func(nested, "handle"));
	const row = (i: number) => [r.count[i], r.sum[i], r.total[i],
				    r.self[i], r.min[i], r.max[i], r.p50[i]];

	/* 100 + 50 + 5; 105; 100-20-50 + 50-10 + 5 */
	assert.deepEqual(row(at), [3, 155, 105, 75, 5, 100, 50]);
	assert.deepEqual(row(1 - at), [3, 37, 37, 37, 7, 20, 10]);
	/* the waits of the outermost; the one at 52 is in parse */
	assert.deepEqual([r.blocked[at], r.preempted[at], r.selfBlocked[at],
			  r.selfPreempted[at]], [3, 4, 3, 0]);
	assert.equal(r.selfPreempted[1 - at], 4);
});

test("a call counts where it begins", () => {
	const r = callRows(choose(nested, select({ from: 40, to: 200 })));

	assert.deepEqual([...r.count], [1, 1]);
	assert.deepEqual([...r.sum].sort(), [10, 50]);
	assert.deepEqual([...callRows(choose(nested,
		select({ threads: [1] }))).sum], [7]);
});

test("sums of calls by stack have the part in the range", () => {
	const of = (from: number, to: number) => shape(nested, treeOf(choose(
		nested, select({ from, to, events: [3] }))));

	/* whole: self of parse 20 at depth 2, 10 at depth 3, 7 alone */
	assert.equal(of(0, Infinity), "=112(handle=105(handle=50(parse=10)," +
		     "parse=20),parse=7)");
	/* 20 to 55: outer handle until 55, inner one from 40, parse to 30 */
	assert.equal(of(20, 55), "=35(handle=35(handle=15(parse=5)," +
		     "parse=10))");
});

test("quantiles are those of the nearest rank", () => {
	const p = smallProfile({ calls: Array.from({ length: 100 }, (_, i) => ({
		name: "f", begin: 1000 * i, end: 1000 * i + i + 1 })) });
	const l = lengthsOf(choose(p, ALL), func(p, "f"));

	/* rank 7: a bucket of width 1; rank 50: middle of [50, 52) */
	assert.equal(quantile(l, 0.07), 7);
	assert.equal(quantile(l, 0.5), 51);
	assert.equal(quantile(l, 0), 1);
	assert.equal(quantile(l, 1), 100);
	assert.deepEqual(slowest(choose(p, ALL), func(p, "f"), 3)
		.map(i => p.calls.duration[i]), [100, 99, 98]);
});

test("the first and the last rank are exact", () => {
	/* all in the bucket from 992 to 1023, whose middle is 1008 */
	const p = smallProfile({ calls: [1000, 1001, 1002, 1020].map((ns, i) =>
		({ name: "f", begin: 5000 * i, end: 5000 * i + ns })) });
	const r = callRows(choose(p, ALL));

	assert.deepEqual([r.min[0], r.p50[0], r.p99[0], r.max[0]],
			 [1000, 1008, 1020, 1020]);
});

test("histograms of many functions do not mix", () => {
	/* of function i: i + 1 calls of 1, then one of 2^20 ns */
	const p = smallProfile({ calls: Array.from({ length: 200 }, (_, i) =>
		Array.from({ length: i + 2 }, (_, k) => ({ name: `f${i}`,
			thread: i, begin: k * 10,
			end: k * 10 + (k > i ? 2 ** 20 : 1) }))).flat(),
		threads: Array.from({ length: 200 }, (_, i) => `t${i}`) });
	const r = callRows(choose(p, ALL));

	for (let row = 0; row < 200; row++) {
		const i = Number(p.functions.name[r.func[row]!]!.slice(1));

		assert.deepEqual([r.count[row], r.p50[row], r.max[row]],
				 [i + 2, 1, 2 ** 20]);
	}
});

/* -- conditions --------------------------------------------------------- */

/* Three calls of 10 ns, one of 1000; what happens in it is @inside. */
const slowOnce = (inside: SmallSample[]) => smallProfile({
	calls: [0, 100, 200, 300].map(begin => ({
		name: "request", begin, end: begin + (begin < 300 ? 10 : 1000),
		calls: [{ name: "step", begin: begin + 1,
			  end: begin + (begin < 300 ? 9 : 999) }] })),
	samples: [
		{ time: 5, stack: "request;step", weight: 9 },
		{ time: 50, stack: "k:idle", weight: 9 },
		{ time: 205, stack: "request;step", weight: 9 },
		...inside,
	],
});

test("inside the slow calls are the samples of their thread", () => {
	const p = slowOnce([{ time: 400, stack: "request;g:lua", weight: 9 },
			    { time: 1300, stack: "after", weight: 9 },
			    { time: 500, stack: "request;k:x", event: 1,
			      weight: 5, placed: 0 }]);
	const calls = { func: func(p, "request"), min: 500, max: Infinity };

	assert.equal(rows(p, "function", { calls, events: [0, 1] }),
		     "lua 9/9, request 0/9");
	assert.equal(rows(p, "function", { calls: { ...calls, min: 0,
		max: 10 }, events: [0] }), "request 0/18, step 18/18");
	assert.equal(rows(p, "function", { calls, events: [3] }),
		     "request 2/1000, step 998/998");
});

const cause = (inside: SmallSample[]) => {
	const p = slowOnce(inside);
	const c = causesOf(p, ALL, func(p, "request"), 1000, Infinity)!;

	assert.deepEqual([c.slow.n, c.slow.ns, c.fast!.n, c.fast!.ns],
			 [1, 1000, 3, 10]);
	/* the parts add up to the length of a call */
	for (const side of ["slow", "fast"] as const)
		assert.ok(Math.abs(c.parts.reduce((s, x) => s + x[side], 0) -
				   c[side]!.ns) < 1e-6);
	return partName(c.parts[0]!) + " in " +
	       p.functions.name[placeOf(c, c.parts[0]!)];
};

test("the part that differs most has the right name", () => {
	assert.equal(cause([{ time: 400, stack: "request;g:lua" }]),
		     "running in guest code in step");
	assert.equal(cause([{ time: 301, stack: "request;k:futex", event: 1,
			      weight: 990, reason: "futex_wait" }]),
		     "blocked: futex_wait in step");
	assert.equal(cause([{ time: 301, stack: "request", event: 2,
			      weight: 990 }]),
		     "waiting for a CPU in step");
	assert.equal(cause([{ time: 301, stack:
			      "request;k:asm_exc_page_fault;k:clear_page" }]),
		     "running in the kernel: asm_exc_page_fault in step");
	assert.equal(cause([{ time: 301, stack: "request;" +
			      "k:entry_SYSCALL_64_after_hwframe;" +
			      "k:do_syscall_64;k:__x64_sys_read;k:copy" }]),
		     "running in the kernel: __x64_sys_read in step");
});

/* -- comparison --------------------------------------------------------- */

test("names without what builds add", () => {
	const native = (name: string) => buildName(name, 1).name;

	assert.equal(native("f.isra.0.constprop.1"), "f");
	assert.deepEqual(buildName("f.part.0", 1),
			 { name: "f", isPart: true });
	assert.equal(native("memcpy@@GLIBC_2.14"), "memcpy");
	assert.equal(native("puts@plt"), "puts@plt");
	assert.equal(native("a::b::h0123456789abcdef"), "a::b");
	assert.equal(native("f()::{lambda()#2}"), "f()::{lambda()}");
	assert.equal(buildName("f a/app.lua:12", 3).name, "f app.lua");
	assert.equal(buildName("TRACE [7] started at x/app.lua:3", 2).name,
		     "TRACE started at app.lua");
	assert.equal(buildName("LazyCompile:*f /x/a.js:1:2", 2).name,
		     "LazyCompile:f a.js");
	assert.equal(moduleName("/usr/lib/libc-2.31.so", 1), "libc.so");
	assert.equal(moduleName("/lib/libpython3.11.so.1.0", 1),
		     "libpython.so");
	assert.equal(moduleName("/lib/libc.so.6", 1), "libc.so");
	assert.equal(moduleName("[vdso]", 1), "[vdso]");
});

test("two recordings are compared a unit of work", () => {
	const many = (n: number, stack: string, from = 0): SmallSample[] =>
		Array.from({ length: n }, (_, i) => ({ time: from + i, stack }));
	const a = smallProfile({ samples: [...many(20, "main;f.isra.0"),
					   ...many(4, "main;old", 30)] });
	const b = smallProfile({ samples: [...many(5, "main;g"),
					   ...many(30, "main;f", 30)] });
	const d = diffOf({ chosen: choose(a, ALL), units: 1 },
			 { chosen: choose(b, ALL), units: 2 });
	const row = (name: string) => d.rows.find(r => r.func.name === name)!;

	assert.deepEqual(row("f").self, { a: 200, b: 150, samplesA: 20,
		samplesB: 30, change: -0.25, verdict: "no noise estimate" });
	assert.equal(row("g").self.change, Infinity);
	assert.equal(row("g").self.verdict, "few samples");
	assert.equal(row("old").self.change, -1);
	assert.equal(row("main").total.change, 350 / 2 / 240 - 1);
	assert.deepEqual(d.rows.map(r => r.func.name),
			 ["f", "old", "g", "main"]);
	assert.equal(d.tree.total[0], 175);
	assert.equal(d.tree.change![0], 175 - 240);
});

test("samples without weight count as half a sample in a change", () => {
	const of = (weight: number) => smallProfile({ samples: Array.from(
		{ length: 40 }, (_, i) => ({ time: i,
			stack: i % 2 ? "main;f" : "main;g",
			weight: i % 2 ? weight : 20 })) });
	const [a, b] = [of(0), of(30)];
	const d = diffOf({ chosen: choose(a, ALL), units: 1 },
			 { chosen: choose(b, ALL), units: 1 });

	/* a sample of the first one has 400 / 40 = 10 ns */
	assert.equal(d.rows.find(r => r.func.name === "f")!.self.change,
		     600 / 5 - 1);
});

/* -- marked intervals ---------------------------------------------------- */

test("a marked interval is a condition, and is beside the calls", () => {
	const p = smallProfile({ threads: ["a", "b"], samples: [
		{ time: 5, stack: "main;slow" }, { time: 15, stack: "main;f" },
		{ time: 55, stack: "main;quick" },
		{ time: 7, stack: "other", thread: 1 },
	], calls: [{ name: "f", begin: 2, end: 12 },
		   { name: "f", begin: 55, end: 57 }],
	   marks: [{ name: "order", begin: 0, end: 20 },
		   { name: "order", begin: 50, end: 60 },
		   { name: "part", begin: 3, end: 6 }] });
	const order = func(p, "order");
	const inside = select({ calls: { func: order, min: 11,
					 max: Infinity } });
	const rowsOf = (s: Selection) => {
		const r = callRows(choose(p, s));

		return Array.from(r.func, (f, i) => `${p.functions.name[f]} ${
			r.count[i]} ${r.sum[i]}`).sort().join(", ");
	};

	assert.equal(rowsOf(ALL), "f 2 12, order 2 30, part 1 3");
	assert.equal(rowsOf(inside), "f 1 10, order 1 20, part 1 3");
	assert.deepEqual([...choose(p, inside).samples].map(i =>
		p.samples.time[i]), [5, 15]);
	const causes = causesOf(p, ALL, order, 11, Infinity)!;

	assert.equal(causes.slow.n, 1);
	assert.equal(causes.fast!.ns, 10);
	/* marks are of native code, and of no module */
	assert.equal(rowsOf(select({ layers: [0] })), "");
	assert.equal(rowsOf(select({ module: p.functions.module[
		func(p, "f")]! })), "f 2 12");
	assert.deepEqual(slowest(choose(p, ALL), order, 9)
		.map(i => p.intervals.duration[i]), [20, 10]);
});

test("an interval inside another one of its name adds nothing", () => {
	const p = smallProfile({ marks: [
		{ name: "x", begin: 0, end: 30 }, { name: "x", begin: 5, end: 10 },
		{ name: "y", begin: 20, end: 40 } ] });
	const s = select({ calls: { func: func(p, "x"), min: 0,
				    max: Infinity } });
	const { n, ns } = choose(p, s).inside!;

	assert.deepEqual([n, ns], [1, 30]);
	assert.equal(lengthsOf(choose(p, ALL), func(p, "x")).count, 2);
});
