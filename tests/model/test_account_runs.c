/* SPDX-License-Identifier: MIT */
/*
 * test_account_runs.c - calls ended in runs are the calls ended one by one
 *
 * The loop without jumps (stream_calls.c) leaves off wherever a log is not as it
 * should be, and what goes on there must take everything up as it was left.
 * Lives of threads are made at random in every kind of log, with every repair
 * and every kind of record in between, and also damaged; each is accounted
 * both ways.  Who asks for the slowest calls gets all of them one by one.
 */
#include "account_row.h"
#include "trace_made.h"
#include "unit.h"
#include "xray_life.h"

/* -- two accounts that must agree to the last figure -------------------- */

static void assert_same_rows(const struct seam_account *a,
				    const struct seam_account *b)
{
	for (size_t i = 0; i < a->rows.n; i++) {
		const struct seam_account_row *x = &a->rows.items[i];
		const struct seam_account_row *y = account_row(b, x->function);

		if (!x->count)
			continue;
		assert_non_null(y);
		assert_int_equal(x->count, y->count);
		assert_int_equal(x->min_ns, y->min_ns);
		assert_int_equal(x->max_ns, y->max_ns);
		assert_int_equal(x->sum_ns, y->sum_ns);
		assert_int_equal(x->self_ns, y->self_ns);
		assert_int_equal(x->total_ns, y->total_ns);
		for (unsigned int q = 0; q <= 20; q++)
			assert_int_equal(seam_account_quantile(a, x, q / 20.0),
					 seam_account_quantile(b, y, q / 20.0));
	}
}

static void assert_same(const struct seam_account *a,
			       const struct seam_account *b)
{
	assert_int_equal(a->n_calls, b->n_calls);
	assert_memory_equal(a->repairs, b->repairs, sizeof(a->repairs));
	assert_int_equal(a->problems.n, b->problems.n);
	assert_int_equal(a->slowest.n, b->slowest.n);
	for (size_t i = 0; i < a->slowest.n; i++)
		assert_int_equal(
			a->slowest.items[i].end_ns -
			a->slowest.items[i].begin_ns,
			b->slowest.items[i].end_ns -
			b->slowest.items[i].begin_ns);
	assert_same_rows(a, b);
	assert_same_rows(b, a);
}

/* -- lives -------------------------------------------------------------- */

static const struct troubles none;
static const struct troubles all = {
	.skipped = 3, .tails = 6, .stray = 4, .unseen = 1, .steps = 6,
	.others = 4,
};

/* Both ways; returns how many calls ended in runs. */
static uint64_t both_ways(struct seam_bytes bytes, uint64_t *n_calls)
{
	struct seam_account_options options = { .n_slowest = 0 };
	struct seam_account runs, singly;
	struct seam_trace trace;
	uint64_t n_in_runs;

	if (trace_from_bytes(&trace, bytes, NULL))
		return 0;
	assert_int_equal(seam_account_build(&runs, &trace, &options, NULL), 0);
	options.n_slowest = 1;
	assert_int_equal(seam_account_build(&singly, &trace, &options, NULL),
			 0);
	assert_int_equal(singly.n_in_runs, 0);
	singly.slowest.n = 0;
	assert_same(&runs, &singly);
	n_in_runs = runs.n_in_runs;
	*n_calls += runs.n_calls;
	seam_account_fini(&runs);
	seam_account_fini(&singly);
	seam_trace_close(&trace);
	return n_in_runs;
}

static struct seam_bytes bytes_of(const struct life *l)
{
	return (struct seam_bytes) { l->made.data, l->made.size };
}

/* Of 100 calls in @n_lives lives, how many ended in runs. */
static unsigned int try_many(unsigned int n_lives, const struct troubles *t,
			     const struct life_log *log)
{
	uint64_t n_in_runs = 0, n_calls = 0;

	for (uint64_t seed = 1; seed <= n_lives; seed++) {
		struct life l;

		make_log(&l, seed, 2 + (unsigned int)(seed % 5), t, log);
		n_in_runs += both_ways(bytes_of(&l), &n_calls);
		made_free(&l.made);
	}
	return n_calls ? (unsigned int)(100 * n_in_runs / n_calls) : 0;
}

UNIT_TEST(nearly_all_of_a_whole_life_ends_in_runs)
{
	struct life_log log = usual_log;

	log.n_lives = 2000;
	assert_true(try_many(10, &none, &log) > 90);
}

UNIT_TEST(agrees_in_logs_of_every_version)
{
	struct life_log log = usual_log;

	log.n_lives = 700;
	for (log.version = 1; log.version <= 5; log.version++) {
		log.endian = SEAM_LITTLE;
		assert_true(try_many(25, &all, &log) > 10);
		log.endian = SEAM_BIG;
		assert_int_equal(try_many(25, &all, &log), 0);
		/* only function 0 looks the same in both orders */
		log.stride = 0;
		assert_int_equal(try_many(25, &all, &log), 0);
		log.stride = 1;
	}
}

/* From one tick in 41 ns to 4 in one ns, and those that do not say it. */
UNIT_TEST(agrees_whatever_the_clock)
{
	static const uint64_t even[] = {
		0, 24000000, 1000000000, 2596118000, 4000000000,
	};
	static const uint64_t odd[] = { 999999999, 1000000001, 4000000007 };
	struct life_log log = usual_log;

	log.n_lives = 300;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(even); i++) {
		log.hz = even[i];
		assert_true(try_many(25, &all, &log) > 10);
	}
	/* a few seconds of these must be divided one by one */
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(odd); i++) {
		log.hz = odd[i];
		assert_true(try_many(25, &all, &log) < 10);
	}
}

/* Some of it in runs, and then no longer. */
UNIT_TEST(agrees_where_multiplying_ceases_to_be_exact)
{
	struct life_log log = usual_log;
	struct seam_ticks ticks;
	unsigned int percent;

	log.hz = 2596118000;
	log.most_delta = UINT32_MAX;
	log.n_lives = 20000;
	seam_ticks_init(&ticks, log.hz);
	assert_true(ticks.exact_below / UINT32_MAX < log.n_lives);
	percent = try_many(8, &none, &log);
	assert_true(percent > 10 && percent < 90);
}

UNIT_TEST(agrees_where_a_counter_starts_again_from_zero)
{
	struct life_log log = usual_log;

	log.hz = 2596118000;
	log.tsc = UINT64_MAX - 5000;
	log.n_lives = 300;
	try_many(25, &none, &log);
	try_many(25, &all, &log);
	/* far enough from it for some runs */
	log.tsc = UINT64_MAX - (UINT64_C(600) << 32);
	log.most_delta = UINT32_MAX;
	log.n_lives = 1000;
	assert_true(try_many(25, &none, &log) > 0);
}

/* Each step back makes all that follows later, in the end beyond 64 bits. */
UNIT_TEST(agrees_where_steps_back_add_up_to_centuries)
{
	uint64_t n_calls = 0;
	struct made made = { 0 };

	made_header(&made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	made_block(&made, 1, 2, 1000, 0, 100000);
	for (unsigned int i = 0; i < 10; i++) {
		bool is_late = i % 2 == 0;

		made_record(&made, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_WRAP,
			.wrap.absolute_tsc = is_late ?
				SEAM_TICKS_MAX_NS - 100000000 : 100000 });
		for (unsigned int k = 0; k < 60; k++)
			made_call(&made, k / 3 % 2 ? SEAM_XRAY_EXIT :
				  SEAM_XRAY_ENTRY, k / 3 % 2 ? 3 - k % 3 :
				  1 + k % 3, is_late ? 1 : 10000000);
	}
	made_end(&made, 0, 0);
	assert_true(both_ways((struct seam_bytes) { made.data, made.size },
			      &n_calls) > 0);
	made_free(&made);
}

/* A child's log begins with its parent's: followed, and opened anew. */
UNIT_TEST(agrees_after_a_fork)
{
	struct life_log log = usual_log;
	uint64_t n_in_runs = 0, n_calls = 0;

	log.n_lives = 200;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct seam_bytes parent;
		struct life l;

		make_log(&l, seed, 2, &all, &log);
		parent = made_bytes(&l.made, l.made.size);
		made_put(&l.made, parent.data, parent.size);
		free((void *)(uintptr_t)parent.data);
		/* the child goes on in its own way in the second block */
		l.made.data[l.made.size - 80] ^= 0x10;
		n_in_runs += both_ways(bytes_of(&l), &n_calls);
		made_free(&l.made);
	}
	assert_true(n_in_runs > n_calls / 10);
}

UNIT_TEST(agrees_for_ids_small_and_large)
{
	struct life_log log = usual_log;

	log.n_lives = 300;
	for (log.stride = 5000; log.stride < 30000000; log.stride *= 4)
		try_many(10, &all, &log);
	log.stride = 1;
	log.n_functions = 200;
	assert_true(try_many(10, &none, &log) > 50);
	log.n_functions = usual_log.n_functions;
	log.stride = 256;	/* the arrays' first size */
	assert_true(try_many(10, &none, &log) > 50);
	log.stride = (SEAM_CALLS_SMALL - 1) / log.n_functions;
	assert_true(try_many(10, &none, &log) > 50);
}

UNIT_TEST(agrees_with_every_repair)
{
	static const struct troubles each[] = {
		{ .skipped = 8 }, { .tails = 16 }, { .tails = 4, .stray = 12 },
		{ .unseen = 2 }, { .steps = 24 }, { .others = 8 },
		{ .lost = 24, .unseen = 1 },
	};
	struct life_log log = usual_log;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(each); i++) {
		log.n_lives = 12;
		try_many(100, &each[i], &log);
		log.n_lives = 600;
		assert_true(try_many(20, &each[i], &log) > 10);
	}
}

UNIT_TEST(agrees_where_calls_are_too_deep)
{
	uint32_t n = SEAM_CALLS_MAX_DEPTH + 1000;
	uint64_t n_calls = 0;
	struct made made = { 0 };

	made_header(&made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 2596118000, 0);
	made_block(&made, 1, 2, 1000, 0, 100000);
	for (uint32_t i = 0; i < n; i++)
		made_call(&made, SEAM_XRAY_ENTRY, 1 + i % 3, 100);
	for (uint32_t i = n; i-- > 0;)
		made_call(&made, SEAM_XRAY_EXIT, 1 + i % 3, 100);
	made_end(&made, 0, 0);
	assert_true(both_ways((struct seam_bytes) { made.data, made.size },
			      &n_calls) > SEAM_CALLS_MAX_DEPTH / 2);
	assert_int_equal(n_calls, SEAM_CALLS_MAX_DEPTH - 1);
	made_free(&made);
}

UNIT_TEST(agrees_in_a_log_cut_anywhere)
{
	struct life_log log = usual_log;
	uint64_t n_calls = 0;
	struct life l;

	log.n_lives = 40;
	make_log(&l, 3, 2, &all, &log);
	for (size_t size = 0; size < l.made.size; size++) {
		struct seam_bytes cut = made_bytes(&l.made, size);

		both_ways(cut, &n_calls);
		free((void *)(uintptr_t)cut.data);
	}
	made_free(&l.made);
	assert_true(n_calls > 0);
}

UNIT_TEST(agrees_with_any_byte_changed)
{
	static const uint8_t masks[] = { 0x01, 0x02, 0x08, 0x40, 0xff };
	struct life_log log = usual_log;
	uint64_t n_calls = 0;
	struct life l;

	log.n_lives = 60;
	make_log(&l, 5, 2, &all, &log);
	for (size_t at = 0; at < l.made.size; at++) {
		uint8_t mask = masks[at % SEAM_ARRAY_SIZE(masks)];

		l.made.data[at] ^= mask;
		both_ways(bytes_of(&l), &n_calls);
		l.made.data[at] ^= mask;
	}
	made_free(&l.made);
	assert_true(n_calls > 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
