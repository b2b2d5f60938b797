/* SPDX-License-Identifier: MIT */
/*
 * test_diff.c - what a comparison finds, and what it does not take for a change
 *
 * The oracle is a generator of runs: 23 functions whose times vary from run to
 * run by the gamma distribution, as much as those of a real program did on a
 * shared machine (CV 3 % of arithmetic, 16 % of cache misses, 200 % of page
 * faults).  Samples are taken at regular times, so their number is the time,
 * rounded at random to a whole number.
 */
#include "report/diff/diff_report.h"

#include <errno.h>
#include <math.h>

#include "../model/built.h"
#include "../unit.h"
#include "report/diff/diff_names.h"

enum { N_FUNCTIONS = 23, TRIALS = 500, CHANGED = 2 };

/* Mean samples a run, and coefficient of variation. */
static const struct { double mean, cv; } functions[N_FUNCTIONS] = {
	{ 470, 0.156 }, { 466, 0.109 }, { 113, 0.030 }, { 79, 0.045 },
	{ 70, 0.079 }, { 59, 0.115 }, { 20, 0.24 }, { 20, 0.65 },
	{ 20, 1.97 }, { 60, 0.05 }, { 55, 0.06 }, { 50, 0.08 }, { 45, 0.10 },
	{ 40, 0.12 }, { 35, 0.15 }, { 30, 0.18 }, { 28, 0.20 }, { 25, 0.25 },
	{ 23, 0.30 }, { 22, 0.35 }, { 21, 0.40 }, { 18, 0.20 }, { 16, 0.30 },
};

/* -- random numbers: the same in every test run --------------------------- */

static uint64_t random_state;

static double uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/* Source: Marsaglia, Tsang, ACM TOMS 26 (2000); @shape below 1: their 6. */
static double gamma_of(double shape)
{
	double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
	double c = 1 / sqrt(9 * d), v, x;

	do {
		do {
			x = normal();
			v = 1 + c * x;
		} while (v <= 0);
		v = v * v * v;
	} while (log(1 - uniform()) >= 0.5 * x * x + d - d * v + d * log(v));
	return shape < 1 ? d * v * pow(1 - uniform(), 1 / shape) : d * v;
}

static unsigned int samples_of(size_t i, double factor)
{
	double shape = 1 / (functions[i].cv * functions[i].cv);

	return (unsigned int)(factor * functions[i].mean * gamma_of(shape) /
			      shape + uniform());
}

/* -- runs ----------------------------------------------------------------- */

static struct seam_diff diff;

static int set_up(void **context)
{
	(void)context;
	return seam_diff_init(&diff);
}

static int tear_down(void **context)
{
	(void)context;
	seam_diff_fini(&diff);
	return 0;
}

/* Add @p as a run and free it. */
static int add_profile(struct seam_profile *p, enum seam_diff_side side,
		       double n_units)
{
	const struct seam_diff_run run = {
		.side = side, .path = side ? "b" : "a", .n_units = n_units,
	};
	struct seam_selection selection;
	struct seam_selected selected;
	struct seam_err err = { 0 };
	int rc;

	seam_selection_init(&selection);
	assert_int_equal(seam_selected_init(&selected, p, &selection, NULL), 0);
	rc = seam_diff_add(&diff, &run, &selected, 0, &err);
	seam_selected_fini(&selected);
	seam_profile_fini(p);
	return rc;
}

/* A run of samples "stack" and how many of them; NULL ends the list. */
struct stack_count {
	const char *stack;
	unsigned int n;
};

static struct seam_profile profile_of(const struct stack_count *stacks)
{
	struct seam_profile p = built();
	size_t n = 0;

	for (; stacks[n].stack; n++)
		built_put(&p, (struct built_sample) {
			.time_ns = n, .comm = "app", .stack = stacks[n].stack,
			.weight = 1000000ull * stacks[n].n,
		});
	for (size_t i = 0; i < n; i++)
		seam_samples_set_count(&p.samples, i, stacks[i].n);
	return p;
}

static void add_run(const struct stack_count *stacks, enum seam_diff_side side)
{
	struct seam_profile p = profile_of(stacks);

	assert_int_equal(add_profile(&p, side, 1), 0);
}

/* @n runs of each side; stacks of A and of B. */
static void compare(size_t n, const struct stack_count *a,
		    const struct stack_count *b)
{
	for (size_t i = 0; i < n; i++) {
		add_run(a, SEAM_DIFF_A);
		add_run(b, SEAM_DIFF_B);
	}
	assert_int_equal(seam_diff_finish(&diff), 0);
}

static const char *name_of(const struct seam_diff_row *row)
{
	return seam_profile_text(&diff.profile,
		diff.profile.functions.items[row->function].name);
}

static const struct seam_diff_row *row(const char *name)
{
	for (size_t i = 0; i < diff.rows.n; i++)
		if (strcmp(name_of(&diff.rows.items[i]), name) == 0)
			return &diff.rows.items[i];
	fail_msg("no row '%s'", name);
	return NULL;
}

static struct seam_diff_decision decide(const char *text)
{
	struct seam_diff_decision decision;
	struct seam_diff_gate gate;

	assert_int_equal(seam_diff_gate_parse(&gate, text, NULL), 0);
	assert_int_equal(seam_diff_gate_decide(&gate, &diff, &decision), 0);
	return decision;
}

static enum seam_diff_outcome outcome(const char *text)
{
	return decide(text).outcome;
}

/* -- the oracle ----------------------------------------------------------- */

/* One comparison of @n generated runs; shares in place of times on request. */
static void generate(size_t n, double factor, bool as_shares)
{
	struct stack_count stacks[N_FUNCTIONS + 1] = { 0 };
	char names[N_FUNCTIONS][16];
	struct seam_profile p;

	seam_diff_fini(&diff);
	assert_int_equal(seam_diff_init(&diff), 0);
	for (size_t i = 0; i < 2 * n; i++) {
		enum seam_diff_side side = i % 2 ? SEAM_DIFF_B : SEAM_DIFF_A;
		double all = 0;

		for (size_t f = 0; f < N_FUNCTIONS; f++) {
			snprintf(names[f], sizeof(names[f]), "main;f%zu", f);
			stacks[f].stack = names[f];
			stacks[f].n = samples_of(f, f == CHANGED &&
				side == SEAM_DIFF_B ? factor : 1);
			all += stacks[f].n;
		}
		p = profile_of(stacks);
		assert_int_equal(add_profile(&p, side, as_shares ? all : 1), 0);
	}
	assert_int_equal(seam_diff_finish(&diff), 0);
}

static size_t n_named(void)
{
	size_t n = 0;

	for (size_t i = 0; i < diff.rows.n; i++)
		n += seam_diff_is_change(&diff.rows.items[i].self);
	return n;
}

/* Whether one run against one differs by the errors of independent samples. */
static bool differs_as_binomial(void)
{
	const struct seam_diff_run *a = &diff.runs.items[0];
	const struct seam_diff_run *b = &diff.runs.items[1];

	for (size_t i = 0; i < diff.rows.n; i++) {
		uint32_t f = diff.rows.items[i].function;
		double x = a->self.items[f].samples, m = a->all.samples;
		double y = b->self.items[f].samples, n = b->all.samples;
		double share = (x + y) / (m + n);
		double error = sqrt(share * (1 - share) * (1 / m + 1 / n));

		if (x + y >= 20 && fabs(x / m - y / n) > 1.96 * error)
			return true;
	}
	return false;
}

UNIT_TEST(at_most_7_percent_of_equal_builds_have_a_function_named)
{
	size_t n_flagged = 0, n_uncorrected = 0, n_binomial = 0;

	random_state = 88172645463325252u;
	for (int trial = 0; trial < TRIALS; trial++) {
		bool any = false;

		generate(8, 1, false);
		n_flagged += n_named() > 0;
		n_binomial += differs_as_binomial();
		for (size_t i = 0; i < diff.rows.n; i++)
			any |= diff.rows.items[i].self.verdict !=
			       SEAM_DIFF_FEW &&
			       diff.rows.items[i].self.test.p < 0.05;
		n_uncorrected += any;
	}
	printf("# named in %zu of %d; without correction %zu, by binomial "
	       "errors %zu\n", n_flagged, TRIALS, n_uncorrected, n_binomial);
	assert_true(n_flagged <= TRIALS * 7 / 100);
	/* the generator would find the methods that do not hold */
	assert_true(n_uncorrected > TRIALS * 40 / 100);
	assert_true(n_binomial > TRIALS * 80 / 100);
}

UNIT_TEST(five_percent_more_of_one_function_fails_its_gate_and_names_it_alone)
{
	size_t n_failed = 0, n_found = 0, n_others = 0, n_as_share = 0;
	size_t n_other_gates = 0;

	random_state = 1234567891011u;
	for (int trial = 0; trial < TRIALS; trial++) {
		generate(8, 1.05, false);
		n_failed += outcome("f2:self < +3%") == SEAM_DIFF_FAILS;
		n_other_gates += outcome("f3:self < +3%") == SEAM_DIFF_FAILS;
		n_found += seam_diff_is_change(&row("f2")->self);
		n_others += n_named() > (size_t)
			    seam_diff_is_change(&row("f2")->self);
	}
	for (int trial = 0; trial < TRIALS / 5; trial++) {
		generate(8, 1.05, true);
		n_as_share += outcome("f2:self < +3%") == SEAM_DIFF_FAILS ?
			      5 : 0;
	}
	printf("# its gate failed in %zu of %d, by shares in %zu; named in "
	       "%zu, others in %zu; gates of others failed in %zu\n", n_failed,
	       TRIALS, n_as_share, n_found, n_others, n_other_gates);
	assert_true(n_failed >= TRIALS * 80 / 100);
	assert_true(n_others <= TRIALS * 7 / 100);
	assert_true(n_other_gates <= TRIALS * 5 / 100);
	assert_true(n_as_share < TRIALS * 40 / 100);
}

/* -- names ---------------------------------------------------------------- */

UNIT_TEST(names_are_without_what_builds_add)
{
	static const struct {
		const char *name, *same;
		enum seam_layer layer;
		bool is_part;
	} cases[] = {
		{ "f", "f", SEAM_LAYER_NATIVE, false },
		{ "f.isra.0", "f", SEAM_LAYER_KERNEL, false },
		{ "f.part.0", "f", SEAM_LAYER_NATIVE, true },
		{ "f.cold", "f", SEAM_LAYER_NATIVE, true },
		{ "f.cold.12", "f", SEAM_LAYER_NATIVE, true },
		{ "f.constprop.0.isra.3.cold", "f", SEAM_LAYER_NATIVE, true },
		{ "f.lto_priv.4", "f", SEAM_LAYER_NATIVE, false },
		{ "f.llvm.1234567890", "f", SEAM_LAYER_NATIVE, false },
		{ "f.__uniq.99.llvm.1", "f", SEAM_LAYER_NATIVE, false },
		{ "f.partial", "f.partial", SEAM_LAYER_NATIVE, false },
		{ "main.func1", "main.func1", SEAM_LAYER_NATIVE, false },
		{ "f.12", "f.12", SEAM_LAYER_NATIVE, false },
		{ ".cold", ".cold", SEAM_LAYER_NATIVE, false },
		{ "clock_nanosleep@GLIBC_2.2.5", "clock_nanosleep",
		  SEAM_LAYER_NATIVE, false },
		{ "f@@V1", "f", SEAM_LAYER_NATIVE, false },
		{ "malloc@plt", "malloc@plt", SEAM_LAYER_NATIVE, false },
		{ "a::b::h0123456789abcdef", "a::b", SEAM_LAYER_NATIVE,
		  false },
		{ "a::b::h0123456789abcdeg", "a::b::h0123456789abcdeg",
		  SEAM_LAYER_NATIVE, false },
		{ "f::{lambda(int)#12}::operator()",
		  "f::{lambda(int)}::operator()", SEAM_LAYER_NATIVE, false },
		{ "f::$_12::operator()", "f::$_::operator()",
		  SEAM_LAYER_NATIVE, false },
		{ "a::{closure#3}", "a::{closure}", SEAM_LAYER_NATIVE,
		  false },
		{ "JS:*fib /a/app.js:3:13", "JS:fib app.js",
		  SEAM_LAYER_JIT, false },
		{ "JS:~fib /a/app.js:9:1", "JS:fib app.js",
		  SEAM_LAYER_JIT, false },
		{ "JS:", "JS:", SEAM_LAYER_JIT, false },
		{ "JS:*", "JS:", SEAM_LAYER_JIT, false },
		{ "JS:* /a/app.js:3:13", "JS: app.js", SEAM_LAYER_JIT, false },
		{ "TRACE [", "TRACE [", SEAM_LAYER_JIT, false },
		{ "TRACE [7]", "TRACE", SEAM_LAYER_JIT, false },
		{ "LazyCompile:^f", "LazyCompile:f", SEAM_LAYER_JIT, false },
		{ "f.cold", "f.cold", SEAM_LAYER_JIT, false },
		{ "TRACE [17] started at a.lua:3",
		  "TRACE started at a.lua", SEAM_LAYER_JIT, false },
		{ "fib a.lua:12", "fib a.lua", SEAM_LAYER_GUEST, false },
		{ "a.lua:12", "a.lua", SEAM_LAYER_GUEST, false },
		{ "b/a.lua:12", "a.lua", SEAM_LAYER_GUEST, false },
		{ "fib b/c/a.lua:12", "fib a.lua", SEAM_LAYER_GUEST, false },
		{ "TRACE [1] started at b/a.lua:3",
		  "TRACE started at a.lua", SEAM_LAYER_JIT, false },
		{ "", "", SEAM_LAYER_NATIVE, false },
		{ "@", "@", SEAM_LAYER_NATIVE, false },
		{ "0", "0", SEAM_LAYER_GUEST, false },
	};
	char buf[SEAM_DIFF_NAME];
	bool is_part;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++) {
		assert_string_equal(seam_diff_function_name(buf, cases[i].name,
				cases[i].layer, &is_part), cases[i].same);
		assert_int_equal(is_part, cases[i].is_part);
	}
}

UNIT_TEST(modules_are_without_folder_and_version)
{
	static const struct {
		const char *path, *same;
		enum seam_layer layer;
	} cases[] = {
		{ "/usr/bin/app", "app", SEAM_LAYER_NATIVE },
		{ "/lib/libc.so.6", "libc.so", SEAM_LAYER_NATIVE },
		{ "/lib/libc-2.31.so", "libc.so", SEAM_LAYER_NATIVE },
		{ "/x/libsqlite3.so.0.8.6", "libsqlite3.so",
		  SEAM_LAYER_NATIVE },
		{ "/x/libpython3.11.so.1.0", "libpython.so",
		  SEAM_LAYER_NATIVE },
		{ "/x/libz3.so", "libz3.so", SEAM_LAYER_NATIVE },
		{ "/x/a.sound", "a.sound", SEAM_LAYER_NATIVE },
		{ "[kernel.kallsyms]", "[kernel.kallsyms]",
		  SEAM_LAYER_KERNEL },
		{ "[jit node 1234]", "[jit]", SEAM_LAYER_JIT },
		{ "/tmp/jit-1234.dump", "[jit]", SEAM_LAYER_JIT },
		{ "", "", SEAM_LAYER_NATIVE },
		{ ".so", ".so", SEAM_LAYER_NATIVE },
	};
	char buf[SEAM_DIFF_NAME];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(cases); i++)
		assert_string_equal(seam_diff_module_name(buf, cases[i].path,
				cases[i].layer), cases[i].same);
}

/* A moved block is neither a loss nor a gain; nor is it recursion. */
UNIT_TEST(parts_of_a_function_are_it)
{
	const struct stack_count a[] = { { "main;f", 100 }, { 0 } };
	const struct stack_count b[] = {
		{ "main;f", 60 }, { "main;f;f.part.0", 30 },
		{ "main;f.cold", 10 }, { 0 },
	};

	compare(3, a, b);
	assert_int_equal(diff.rows.n, 2);
	assert_int_equal((int)row("f")->self.samples[SEAM_DIFF_B], 100);
	assert_int_equal((int)row("f")->total.samples[SEAM_DIFF_B], 100);
	assert_int_equal(row("f")->self.verdict, SEAM_DIFF_NOISE);
	assert_int_equal(diff.tree.n, 3);
}

/* -- code without names --------------------------------------------------- */

/* A run with an unnamed function of /x/lib.so, and a program. */
static void add_unnamed(enum seam_diff_side side, uint8_t build_id,
			const char *program)
{
	struct seam_profile p = built();
	struct seam_profile_module module = {
		.path = built_string(&p, "/x/lib.so"), .pid = -1,
		.kind = SEAM_MODULE_FILE, .build_id = { build_id },
		.build_id_size = build_id ? 20 : 0,
	};
	struct seam_function f = { .layer = SEAM_LAYER_NATIVE };
	struct seam_frame frame = { .code = SEAM_NONE };
	char name[64];

	snprintf(name, sizeof(name), "main@/bin/%s", program);
	built_put(&p, (struct built_sample) {
		.comm = program, .stack = name, .weight = 50000000 });
	f.name = built_string(&p, "[lib.so+0x10]");
	frame.module = f.module = seam_profile_module(&p, &module);
	frame.function = seam_profile_function(&p, &f);
	built_put(&p, (struct built_sample) {
		.comm = program, .stack = name, .weight = 50000000 });
	p.samples.stack[1] = seam_profile_stack(&p, p.samples.stack[1],
						seam_profile_frame(&p, &frame));
	seam_samples_set_count(&p.samples, 0, 50);
	seam_samples_set_count(&p.samples, 1, 50);
	*SEAM_ARRAY_PUSH(&p.mappings) = (struct seam_mapping) {
		.module = p.functions.items[0].module, .pid = 1,
		.is_executable = true,
	};
	assert_int_equal(add_profile(&p, side, 1), 0);
}

UNIT_TEST(code_without_names_is_compared_between_equal_builds)
{
	for (int i = 0; i < 3; i++) {
		add_unnamed(SEAM_DIFF_A, 1, "app");
		add_unnamed(SEAM_DIFF_B, 1, "app");
	}
	assert_int_equal(seam_diff_finish(&diff), 0);
	assert_int_equal(row("[lib.so+0x10]")->self.verdict, SEAM_DIFF_NOISE);
	assert_int_equal(diff.rows.n, 2);
}

UNIT_TEST(code_without_names_of_two_builds_is_one_row)
{
	for (int i = 0; i < 3; i++) {
		add_unnamed(SEAM_DIFF_A, 1, "app");
		add_unnamed(SEAM_DIFF_B, 2, "app");
	}
	assert_int_equal(seam_diff_finish(&diff), 0);
	assert_int_equal(row("[lib.so: without names]")->self.verdict,
			 SEAM_DIFF_NOISE);
	assert_int_equal(diff.rows.n, 2);
}

UNIT_TEST(code_without_names_or_build_id_is_one_row)
{
	add_unnamed(SEAM_DIFF_A, 0, "app");
	add_unnamed(SEAM_DIFF_B, 0, "app");
	assert_int_equal(seam_diff_finish(&diff), 0);
	row("[lib.so: without names]");
	assert_int_equal(diff.rows.n, 2);
}

UNIT_TEST(programs_of_two_names_are_one_module)
{
	for (int i = 0; i < 3; i++) {
		add_unnamed(SEAM_DIFF_A, 1, "old");
		add_unnamed(SEAM_DIFF_B, 1, "new");
	}
	assert_int_equal(seam_diff_finish(&diff), 0);
	assert_int_equal(diff.rows.n, 2);
	assert_string_equal(seam_profile_path(&diff.profile,
		diff.profile.functions.items[row("main")->function].module),
		"new");
}

/* A build runs cc1 and as; which one has more samples is chance. */
UNIT_TEST(programs_that_both_sides_have_stay_two_modules)
{
	struct seam_profile p = built();

	add_unnamed(SEAM_DIFF_A, 1, "old");
	add_unnamed(SEAM_DIFF_B, 1, "new");
	built_put(&p, (struct built_sample) {
		.comm = "new", .stack = "main@/bin/new", .weight = 50000000 });
	built_put(&p, (struct built_sample) {
		.comm = "new", .stack = "main@/bin/old", .weight = 20000000 });
	assert_int_equal(add_profile(&p, SEAM_DIFF_B, 1), 0);
	assert_int_equal(seam_diff_finish(&diff), 0);
	assert_int_equal(diff.rows.n, 3);
}

/* -- verdicts ------------------------------------------------------------- */

static const struct stack_count before[] = {
	{ "main;f", 100 }, { "main;g", 100 }, { "main;rare", 5 },
	{ "main;old;leaf", 50 }, { "", 20 }, { 0 },
};
static const struct stack_count after[] = {
	{ "main;f", 150 }, { "main;g", 100 }, { "main;rare", 9 },
	{ "main;young;leaf", 50 }, { "", 20 }, { 0 },
};

UNIT_TEST(each_kind_of_change_has_its_verdict)
{
	compare(3, before, after);
	assert_int_equal(row("f")->self.verdict, SEAM_DIFF_MORE);
	assert_int_equal(row("g")->self.verdict, SEAM_DIFF_NOISE);
	assert_int_equal(row("rare")->self.verdict, SEAM_DIFF_FEW);
	assert_int_equal(row("old")->total.verdict, SEAM_DIFF_GONE);
	assert_int_equal(row("young")->total.verdict, SEAM_DIFF_NEW);
	assert_int_equal(row("leaf")->total.verdict, SEAM_DIFF_NOISE);
	assert_int_equal(row("[no stack]")->self.verdict, SEAM_DIFF_NOISE);
	assert_true(fabs(row("f")->self.test.ratio - 1.5) < 1e-9);
	assert_true(fabs(row("f")->self.mean[SEAM_DIFF_B] - 150e6) < 1);
	assert_string_equal(name_of(&diff.rows.items[0]), "f");
}

UNIT_TEST(less_is_less)
{
	compare(3, after, before);
	assert_int_equal(row("f")->self.verdict, SEAM_DIFF_LESS);
	assert_true(row("f")->self.test.high < 1);
}

UNIT_TEST(two_runs_have_no_verdict_and_decide_no_gate)
{
	compare(2, before, after);
	assert_int_equal(row("f")->self.verdict, SEAM_DIFF_UNKNOWN);
	assert_int_equal(n_named(), 0);
	assert_int_equal(outcome("f:self < +5%"), SEAM_DIFF_UNDECIDED);
	assert_int_equal(outcome("f:self < 1s"), SEAM_DIFF_UNDECIDED);
}

/* 10 samples in each run and 11 in each: rounding, not a change. */
UNIT_TEST(one_sample_more_in_each_run_is_noise)
{
	const struct stack_count a[] = { { "f", 10 }, { 0 } };
	const struct stack_count b[] = { { "f", 11 }, { 0 } };

	compare(3, a, b);
	assert_int_equal(row("f")->self.verdict, SEAM_DIFF_NOISE +
			 (row("f")->self.q <= SEAM_DIFF_LEVEL));
	assert_true(row("f")->self.test.p > 0.005);
}

UNIT_TEST(recursion_counts_once)
{
	const struct stack_count stacks[] = {
		{ "main;f;f;g", 10 }, { "main;f;g;f", 20 }, { 0 },
	};

	compare(1, stacks, stacks);
	assert_int_equal((int)row("f")->total.samples[0], 30);
	assert_int_equal((int)row("g")->total.samples[0], 30);
	assert_int_equal((int)row("f")->self.samples[0], 20);
}

UNIT_TEST(values_are_for_a_unit_of_work)
{
	struct seam_profile p;

	for (int i = 0; i < 3; i++) {
		p = profile_of(before);
		assert_int_equal(add_profile(&p, SEAM_DIFF_A, 1000), 0);
		p = profile_of(after);
		assert_int_equal(add_profile(&p, SEAM_DIFF_B, 1500), 0);
	}
	assert_int_equal(seam_diff_finish(&diff), 0);
	assert_int_equal(row("f")->self.verdict, SEAM_DIFF_NOISE);
	assert_int_equal(row("g")->self.verdict, SEAM_DIFF_LESS);
	assert_true(fabs(row("f")->self.mean[0] - 1e5) < 1);
}

/* The picture's widths are B's, whose sum is the root's. */
UNIT_TEST(weights_of_the_tree_are_those_of_b)
{
	compare(3, before, after);
	assert_int_equal(diff.tree.items[0].weight, 329000000);
}

/* -- gates ---------------------------------------------------------------- */

UNIT_TEST(gates_hold_fail_or_are_undecided)
{
	compare(3, before, after);
	assert_int_equal(outcome("f:self < +60%"), SEAM_DIFF_HOLDS);
	assert_int_equal(outcome("f:self < +20%"), SEAM_DIFF_FAILS);
	assert_int_equal(outcome("f < +20%"), SEAM_DIFF_FAILS);
	assert_int_equal(outcome("g:self < +0.1%"), SEAM_DIFF_UNDECIDED);
	assert_int_equal(outcome("all:total < +3%"), SEAM_DIFF_FAILS);
	assert_int_equal(outcome("f.isra.0:self < +20%"), SEAM_DIFF_FAILS);
	assert_int_equal(outcome("f:self < 160ms"), SEAM_DIFF_HOLDS);
	assert_int_equal(outcome("f:self<140ms"), SEAM_DIFF_FAILS);
	assert_int_equal(outcome("new < 1%"), SEAM_DIFF_HOLDS);
	assert_int_equal(outcome("g:self < -20%"), SEAM_DIFF_FAILS);
	assert_int_equal(outcome("nowhere:self < +5%"), SEAM_DIFF_UNDECIDED);
	assert_string_equal(decide("nowhere < +5%").why,
			    "neither side has a sample of it");
}

/* Their sum: one limit, one test.  Totals of nested functions count once. */
UNIT_TEST(a_glob_is_one_quantity)
{
	const struct stack_count a[] = {
		{ "p_one", 50 }, { "p_two;p_one", 50 }, { "q", 100 }, { 0 },
	};
	const struct stack_count b[] = {
		{ "p_one", 30 }, { "p_two;p_one", 70 }, { "q", 100 },
		{ "fresh", 40 }, { 0 },
	};

	compare(3, a, b);
	assert_int_equal(outcome("p_*:self < +5%"), SEAM_DIFF_HOLDS);
	assert_int_equal(outcome("p_two:total < +5%"), SEAM_DIFF_FAILS);
	assert_int_equal((int)decide("p_*:total < +5%").change.samples[1],
			 100);
	assert_int_equal(decide("p_*:total < +5%").n_functions, 2);
	assert_int_equal(outcome("new < 1%"), SEAM_DIFF_FAILS);
	assert_int_equal(outcome("new < 30%"), SEAM_DIFF_HOLDS);
}

UNIT_TEST(lost_records_leave_a_gate_undecided)
{
	for (int i = 0; i < 6; i++) {
		struct seam_profile p = profile_of(i % 2 ? after : before);

		p.events.items[0].n_samples = 1000;
		if (i == 3)
			seam_profile_lost(&p, "ring full", 0, 20, 0);
		add_profile(&p, i % 2 ? SEAM_DIFF_B : SEAM_DIFF_A, 1);
	}
	assert_int_equal(seam_diff_finish(&diff), 0);
	assert_true(seam_diff_lost(&diff, SEAM_DIFF_B) > 0.019);
	assert_true(seam_diff_lost(&diff, SEAM_DIFF_A) == 0);
	assert_int_equal(outcome("f:self < +20%"), SEAM_DIFF_UNDECIDED);
}

UNIT_TEST(what_is_no_gate_is_refused)
{
	static const char *const texts[] = {
		"", "f", "f <", "f < x", "f < 5", "< 5%", ":self < 5%",
		"f > 5%", "f < -100%", "f < nan%", "f < 5%x", "f < inf%",
	};
	struct seam_diff_gate gate;
	char longest[2000];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(texts); i++)
		assert_int_equal(seam_diff_gate_parse(&gate, texts[i], NULL),
				 -EINVAL);
	memset(longest, 'f', sizeof(longest));
	snprintf(longest + 1990, 10, " < 5%%");
	assert_int_equal(seam_diff_gate_parse(&gate, longest, NULL), -EINVAL);
	assert_int_equal(seam_diff_gate_parse(&gate,
		"std::vector<int>::operator<:total < 2ms", NULL), 0);
	assert_string_equal(gate.name, "std::vector<int>::operator<");
	assert_true(gate.is_total);
}

/* -- warnings ------------------------------------------------------------- */

UNIT_TEST(what_else_differs_is_noted)
{
	struct seam_profile p = built();

	built_put(&p, (struct built_sample) {
		.comm = "app", .stack = "main;read_[k]", .weight = 1000000 });
	p.n_cpus = 2;
	assert_int_equal(add_profile(&p, SEAM_DIFF_A, 1), 0);
	p = built();
	built_put(&p, (struct built_sample) {
		.comm = "app", .stack = "main", .weight = 250000 });
	p.n_cpus = 4;
	assert_int_equal(add_profile(&p, SEAM_DIFF_B, 1), 0);
	assert_int_equal(seam_diff_finish(&diff), 0);
	assert_int_equal(diff.profile.notes.n, 3);	/* rate, CPUs, layer */
}

UNIT_TEST(events_of_two_units_are_refused)
{
	struct seam_profile p = profile_of(before);

	assert_int_equal(add_profile(&p, SEAM_DIFF_A, 1), 0);
	p = built();
	built_put(&p, (struct built_sample) {
		.comm = "app", .stack = "main", .event = "cycles" });
	assert_int_equal(add_profile(&p, SEAM_DIFF_B, 1), -EINVAL);
}

/* -- views ---------------------------------------------------------------- */

static char *printed(bool tree, bool all)
{
	const struct seam_diff_report report = {
		.diff = &diff, .unit = "run", .event = "cpu-clock",
		.tree = tree, .all = all,
	};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct seam_view view = { .out = out };

	assert_int_equal(seam_diff_text(&report, &view), 0);
	fclose(out);
	return text;
}

UNIT_TEST(the_table_has_changes_and_counts_the_rest)
{
	char *text;

	compare(3, before, after);
	text = printed(false, false);
	assert_non_null(strstr(text, "A  3 runs of app --fast: 275 ms a run"));
	assert_non_null(strstr(text,
		" 100 ms    150 ms      +50%  "));
	assert_null(strstr(text, "  g  "));
	assert_non_null(strstr(text, "within noise; "));
	free(text);
	text = printed(false, true);
	assert_non_null(strstr(text, "  g  "));
	free(text);
}

UNIT_TEST(a_function_that_moved_into_its_caller_has_a_hint)
{
	const struct stack_count a[] = { { "main;f", 40 }, { "main;f;in", 60 },
					 { 0 } };
	const struct stack_count b[] = { { "main;f", 100 }, { 0 } };
	char *text;

	compare(3, a, b);
	text = printed(false, false);
	assert_non_null(strstr(text,
		"the total of its caller, f, is as before"));
	free(text);
}

UNIT_TEST(the_tree_has_changes_and_their_callers)
{
	char *text;

	compare(3, before, after);
	text = printed(true, false);
	assert_non_null(strstr(text, "+50%  |- f\n"));
	assert_non_null(strstr(text, "   new  |- young\n"));
	assert_non_null(strstr(text, "  gone  `- old\n"));
	assert_null(strstr(text, "- g\n"));
	free(text);
}

UNIT_TEST(the_picture_has_the_colour_of_the_change)
{
	const struct seam_diff_report report = {
		.diff = &diff, .unit = "run", .event = "cpu-clock",
	};
	static const char *const parts[] = {
		"data-mark=\"+50%\"><title>f\n", "class=\"f m2\"",
		"class=\"f z", ">+50% f</text>",
		"data-mark=\"new\"><title>young\n",
		"gone: old (app), of A 50.0 ms a run",
	};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	compare(3, before, after);
	assert_int_equal(seam_diff_picture(&report, "t", -1, false, out), 0);
	fclose(out);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(parts); i++)
		assert_non_null(strstr(text, parts[i]));
	free(text);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
