/* SPDX-License-Identifier: MIT */
/* test_calls.c - what becomes of logs that are not whole */

#include "../wire/xray_made.h"
#include "account_row.h"
#include "model/xray/call_waits.h"
#include "model/xray/slow_calls.h"
#include "model/xray/stream_calls.h"
#include "trace_made.h"
#include "unit.h"

/*
 * A thread's life as text: "a" enters function a, "A" leaves it, "!a" leaves
 * it by a tail exit, "|" ends a block, "5" is the mark of 5 lost records, 1000
 * ns after the record before; others take 10 ns.  The clock begins at 1000 ns.
 */
static void replay_events(struct made *m, const char *text)
{
	uint64_t tsc = 1000;
	uint32_t block = 1;

	made_block(m, 1, 2, block * 1000, 0, tsc);
	for (; *text; text++) {
		bool tail = *text == '!';
		char c = tail ? *++text : *text;

		if (c == '|') {
			made_end(m, 0, 0);
			made_block(m, 1, 2, ++block * 1000, 0, tsc);
			continue;
		}
		if (c >= '0' && c <= '9') {
			made_lost(m, (uint64_t)(c - '0'), 1000);
			tsc += 1000;
			continue;
		}
		tsc += 10;
		made_call(m, tail ? SEAM_XRAY_TAIL_EXIT :
			  c >= 'a' ? SEAM_XRAY_ENTRY : SEAM_XRAY_EXIT,
			  (uint32_t)((c | 0x20) - 'a' + 1), 10);
	}
	made_end(m, 0, 0);
}

static void put_header(struct made *m)
{
	made_header(m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
}

/* A block of entries and exits. */
static void put_block(struct made *m, int32_t tid, uint64_t wall_us,
		      uint64_t tsc, const char *text)
{
	made_block(m, 1, tid, wall_us, 0, tsc);
	for (; *text; text++)
		made_call(m, *text >= 'a' ? SEAM_XRAY_ENTRY : SEAM_XRAY_EXIT,
			  (uint32_t)((*text | 0x20) - 'a' + 1), 10);
	made_end(m, 0, 0);
}

struct replay {
	struct made made;
	struct seam_trace trace;
	struct seam_account account;
};

static void account_made(struct replay *p)
{
	const struct seam_account_options options = {
		.edges = true, .n_slowest = 8,
	};

	assert_int_equal(trace_from_bytes(&p->trace, (struct seam_bytes) {
			p->made.data, p->made.size }, NULL), 0);
	assert_int_equal(seam_account_build(&p->account, &p->trace, &options,
					    NULL), 0);
}

static void open_replay(struct replay *p, const char *text)
{
	*p = (struct replay) { 0 };
	put_header(&p->made);
	replay_events(&p->made, text);
	account_made(p);
}

static void close_replay(struct replay *p)
{
	seam_account_fini(&p->account);
	seam_trace_close(&p->trace);
	made_free(&p->made);
}

static const struct seam_account_row *row(const struct replay *p, char name)
{
	static const struct seam_account_row none;
	const struct seam_account_row *row =
		account_row(&p->account, (uint32_t)(name - 'a' + 1));

	return row ? row : &none;
}

/* The call paths with their counts, "a1 ab2", in the order of their making. */
static void put_paths(FILE *out, const struct replay *p)
{
	struct seam_call_paths paths = { 0 };
	struct seam_xray_problems problems = { 0 };
	struct seam_calls calls = { 0 };

	for (size_t i = 0; i < p->trace.streams.n; i++)
		assert_int_equal(seam_call_paths_add(&paths, &p->trace, i,
						     &calls, &problems), 0);
	for (uint32_t i = 1; i < paths.nodes.n; i++) {
		char path[64];
		size_t n = sizeof(path);

		path[--n] = '\0';
		for (uint32_t k = i; k; k = paths.nodes.items[k].parent)
			path[--n] = (char)('a' - 1 +
					   paths.nodes.items[k].function);
		fprintf(out, "%s%s%d", i > 1 ? " " : "", path + n,
			(int)paths.nodes.items[i].count);
	}
	seam_calls_fini(&calls);
	seam_call_paths_fini(&paths);
}

/* Functions as "a1:70/40/70": calls, sum, self and total. */
static void put_rows(FILE *out, const struct replay *p)
{
	const char *space = "";

	for (char name = 'a'; name <= 'z'; name++) {
		const struct seam_account_row *r = row(p, name);

		if (!r->count)
			continue;
		fprintf(out, "%s%c%d:%d/%d/%d", space, name, (int)r->count,
			(int)r->sum_ns, (int)r->self_ns, (int)r->total_ns);
		space = " ";
	}
}

static void put_repairs(FILE *out, const struct replay *p)
{
	const char *space = "";

	for (size_t i = 0; i < SEAM_N_REPAIRS; i++) {
		if (!p->account.repairs[i])
			continue;
		fprintf(out, "%s%s %d", space, seam_repairs[i].name,
			(int)p->account.repairs[i]);
		space = ", ";
	}
}

static void assert_text(void (*put)(FILE *out, const struct replay *p),
			const struct replay *p, const char *want)
{
	char text[512] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	put(out, p);
	fclose(out);
	assert_string_equal(text, want);
}

static void assert_paths(const struct replay *p, const char *want)
{
	assert_text(put_paths, p, want);
}

static void assert_repairs(const struct replay *p, const char *want)
{
	assert_text(put_repairs, p, want);
}

/* What becomes of a thread's life. */
static struct life {
	const char *promise, *text, *paths, *repairs, *rows;
} lives[] = {
	{ "nests_calls_and_shares_their_time",
	  "abBcCbBA", "a1 ab2 ac1", "", "a1:70/40/70 b2:20/20/20 c1:10/10/10" },
	{ "counts_recursive_time_once_in_the_total",
	  "aaaAAA", "a1 aa1 aaa1", "", "a3:90/50/50" },
	{ "takes_a_tail_callee_as_a_call_of_the_same_caller",
	  "ab!bc!cdDA", "a1 ab1 ac1 ad1", "",
	  "a1:70/40/70 b1:10/10/10 c1:10/10/10 d1:10/10/10" },
	{ "ignores_the_exit_after_a_tail_exit_that_was_not_taken",
	  "ab!bcCBA", "a1 ab1 ac1", "stray_exit 1",
	  "a1:60/40/60 b1:10/10/10 c1:10/10/10" },
	{ "ends_calls_that_an_exception_left",
	  "abcdBA", "a1 ab1 abc1 abcd1", "missing_exit 2",
	  "a1:50/20/50 b1:30/10/30 c1:20/10/20 d1:10/10/10" },
	{ "finds_callers_that_began_before_the_log",
	  "dDCdDB", "b1 bc1 bcd1 bd1", "missing_entry 2",
	  "b1:60/20/60 c1:30/20/30 d2:20/20/20" },
	{ "ignores_an_exit_of_no_open_call",
	  "aCA", "a1", "stray_exit 1", "a1:20/20/20" },
	{ "ignores_an_exit_of_no_open_call",
	  "abCBA", "a1 ab1", "stray_exit 1", "a1:40/20/40 b1:20/20/20" },
	{ "ignores_an_exit_of_no_open_call",
	  "abCdDBA", "a1 ab1 abd1", "stray_exit 1",
	  "a1:60/20/60 b1:40/30/40 d1:10/10/10" },
	{ "ignores_an_exit_of_no_open_call",
	  "aCbBA", "a1 ab1", "stray_exit 1", "a1:40/30/40 b1:10/10/10" },
	{ "ignores_an_exit_of_no_open_call",
	  "ab|C|BA", "a1 ab1", "stray_exit 1", "a1:40/20/40 b1:20/20/20" },
	{ "ignores_an_exit_of_no_open_call",
	  "a|C|bBA", "a1 ab1", "stray_exit 1", "a1:40/30/40 b1:10/10/10" },
	{ "ignores_an_exit_of_no_open_call",
	  "abABA", "a1 ab1", "stray_exit 1", "a1:40/20/40 b1:20/20/20" },
	{ "ignores_an_exit_of_no_open_call",
	  "abAdDBA", "a1 ab1 abd1", "stray_exit 1",
	  "a1:60/20/60 b1:40/30/40 d1:10/10/10" },
	{ "ignores_an_exit_of_no_open_call",
	  "ab|A|BA", "a1 ab1", "stray_exit 1", "a1:40/20/40 b1:20/20/20" },
	{ "ignores_an_exit_of_no_open_call",
	  "abCBACB", "b1 bc1 bca1 bcab1", "missing_entry 2, stray_exit 1",
	  "a1:40/20/40 b2:90/30/90 c1:60/20/60" },
	{ "ends_what_is_open_with_a_call_from_before_the_log",
	  "abCdDD", "d1 dc1 dca1 dcab1 dd1", "missing_exit 2, missing_entry 2",
	  "a1:20/10/20 b1:10/10/10 c1:30/10/30 d2:70/30/70" },
	{ "ends_open_calls_with_the_log",
	  "abBc", "a1 ab1 ac1", "unfinished 2",
	  "a1:30/20/30 b1:10/10/10 c1:0/0/0" },
	{ "no_call_goes_over_lost_records",
	  "ab5BcCA", "a2 ab2 ac1",
	  "missing_entry 2, cut_off 2, gaps 1, lost_records 5",
	  "a2:50/30/50 b2:10/10/10 c1:10/10/10" },
	{ "no_call_goes_over_lost_records",
	  "ab|5BcCA", "a2 ab2 ac1",
	  "missing_entry 2, cut_off 2, gaps 1, lost_records 5",
	  "a2:50/30/50 b2:10/10/10 c1:10/10/10" },
	{ "no_call_goes_over_lost_records",
	  "ab5|BcCA", "a2 ab2 ac1",
	  "missing_entry 2, cut_off 2, gaps 1, lost_records 5",
	  "a2:50/30/50 b2:10/10/10 c1:10/10/10" },
	{ "no_call_goes_over_lost_records",
	  "|ab|5B|cC|A", "a2 ab2 ac1",
	  "missing_entry 2, cut_off 2, gaps 1, lost_records 5",
	  "a2:50/30/50 b2:10/10/10 c1:10/10/10" },
	{ "no_call_has_calls_of_after_lost_records",
	  "ab5cCaA", "a2 ab1 c1", "cut_off 2, gaps 1, lost_records 5",
	  "a2:20/20/20 b1:0/0/0 c1:10/10/10" },
	{ "no_call_has_calls_of_after_lost_records",
	  "abBA7cC", "a1 ab1 c1", "gaps 1, lost_records 7",
	  "a1:30/20/30 b1:10/10/10 c1:10/10/10" },
	{ "no_call_has_calls_of_after_lost_records",
	  "5aA", "a1", "gaps 1, lost_records 5", "a1:10/10/10" },
	{ "looks_for_no_exit_beyond_lost_records",
	  "aC5A", "c1 ca1 a1",
	  "missing_exit 1, missing_entry 2, gaps 1, lost_records 5",
	  "a2:20/20/20 c1:20/10/20" },
	{ "looks_for_no_exit_beyond_lost_records",
	  "abA5BcCbB", "a1 ab1 b2 c1",
	  "missing_exit 1, missing_entry 1, gaps 1, lost_records 5",
	  "a1:20/10/20 b3:30/30/30 c1:10/10/10" },
	{ "looks_for_no_exit_beyond_lost_records",
	  "aCA5abDBA", "a2 ab1", "stray_exit 2, gaps 1, lost_records 5",
	  "a2:60/40/60 b1:20/20/20" },
	{ "follows_calls_over_blocks",
	  "ab|BcC|A", "a1 ab1 ac1", "", "a1:50/30/50 b1:10/10/10 c1:10/10/10" },
};

static void as_promised(void **state)
{
	const struct life *life = *state;
	struct replay p;

	open_replay(&p, life->text);
	assert_paths(&p, life->paths);
	assert_repairs(&p, life->repairs);
	assert_text(put_rows, &p, life->rows);
	close_replay(&p);
}

/* a's own exit comes too late to be seen, but what a calls goes on. */
UNIT_TEST(ignores_an_exit_of_no_open_call_far_from_any_other)
{
	static const size_t n_calls[] = { 31, 32, 40, 5000 };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(n_calls); i++) {
		char *life = NULL;
		size_t size;
		FILE *f = open_memstream(&life, &size);
		struct replay p;

		assert_non_null(f);
		fputs("aC", f);
		for (size_t k = 0; k < n_calls[i]; k++)
			fputs("bB", f);
		fputs("A", f);
		fclose(f);
		open_replay(&p, life);
		assert_repairs(&p, "stray_exit 1");
		assert_int_equal(row(&p, 'a')->count, 1);
		assert_int_equal(row(&p, 'b')->count, n_calls[i]);
		close_replay(&p);
		free(life);
	}
}

/* A program may write the mark itself. */
UNIT_TEST(a_claim_of_lost_records_does_not_overflow)
{
	struct replay p = { 0 };

	put_header(&p.made);
	for (uint32_t tid = 2; tid < 4; tid++) {
		made_block(&p.made, 1, (int32_t)tid, 1000, 0, 1000);
		made_lost(&p.made, UINT64_MAX, 10);
		made_lost(&p.made, 2, 10);
		made_end(&p.made, 0, 0);
	}
	account_made(&p);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_GAPS], 4);
	assert_true(p.account.repairs[SEAM_REPAIR_LOST] == UINT64_MAX);
	close_replay(&p);
}

/* Blocks of a thread in the order @order, as a ring would leave them. */
UNIT_TEST(orders_blocks_by_wall_time_then_tsc)
{
	static const unsigned int orders[][3] = {
		{ 0, 1, 2 }, { 2, 0, 1 }, { 1, 2, 0 }, { 2, 1, 0 },
	};
	static const char *const texts[] = { "abB", "c", "CA" };

	for (size_t o = 0; o < SEAM_ARRAY_SIZE(orders); o++) {
		struct replay p = { 0 };

		put_header(&p.made);
		for (size_t i = 0; i < 3; i++) {
			unsigned int b = orders[o][i];

			/* the second two share a wall time */
			put_block(&p.made, 2, b ? 20 : 10, 1000 + 100 * b,
				  texts[b]);
		}
		account_made(&p);
		assert_repairs(&p, "");
		assert_paths(&p, "a1 ab1 ac1");
		assert_int_equal(row(&p, 'c')->sum_ns, 100);
		close_replay(&p);
	}
}

/* A thread that was preempted before it took the wall time of a block. */
UNIT_TEST(ties_the_clock_by_the_shortest_delay)
{
	static const uint64_t wall_us[] = { 12, 11, 17 };
	struct replay p = { 0 };

	put_header(&p.made);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wall_us); i++)
		put_block(&p.made, (int32_t)i + 2, wall_us[i], 1000, "a");
	account_made(&p);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wall_us); i++)
		assert_int_equal(seam_trace_start_ns(&p.trace, i), 11000);
	close_replay(&p);
}

/* A CPU whose TSC is behind wrote the later block. */
UNIT_TEST(prefers_wall_time_to_the_tsc)
{
	struct replay p = { 0 };

	put_header(&p.made);
	put_block(&p.made, 2, 20, 500, "A");
	put_block(&p.made, 2, 10, 1000, "a");
	account_made(&p);
	assert_repairs(&p, "clock 1");
	assert_int_equal(row(&p, 'a')->count, 1);
	close_replay(&p);
}

UNIT_TEST(never_lets_time_run_backwards)
{
	struct replay p = { 0 };

	put_header(&p.made);
	made_block(&p.made, 1, 2, 10, 0, 1000);
	made_call(&p.made, SEAM_XRAY_ENTRY, 1, 0);
	made_call(&p.made, SEAM_XRAY_ENTRY, 2, 500);
	made_record(&p.made, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CPU, .cpu = { 1, 1200 } });
	made_call(&p.made, SEAM_XRAY_EXIT, 2, 0);
	made_call(&p.made, SEAM_XRAY_ENTRY, 3, 10);
	made_call(&p.made, SEAM_XRAY_EXIT, 3, 20);
	made_call(&p.made, SEAM_XRAY_EXIT, 1, 30);
	made_end(&p.made, 0, 0);
	account_made(&p);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_CLOCK], 1);
	assert_int_equal(row(&p, 'b')->sum_ns, 0);
	assert_int_equal(row(&p, 'c')->sum_ns, 20);
	assert_int_equal(row(&p, 'a')->sum_ns, 560);
	close_replay(&p);
}

UNIT_TEST(a_migration_changes_nothing)
{
	struct replay p = { 0 };

	put_header(&p.made);
	made_block(&p.made, 1, 2, 10, 0, 1000);
	made_call(&p.made, SEAM_XRAY_ENTRY, 1, 0);
	made_record(&p.made, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CPU, .cpu = { 1, 1200 } });
	made_call(&p.made, SEAM_XRAY_EXIT, 1, 5);
	made_end(&p.made, 0, 0);
	account_made(&p);
	assert_repairs(&p, "");
	assert_int_equal(row(&p, 'a')->sum_ns, 205);
	close_replay(&p);
}

UNIT_TEST(logs_are_moved_to_the_last_time_at_most)
{
	struct replay p = { 0 };

	put_header(&p.made);
	put_block(&p.made, 2, 10, 1000, "aA");
	account_made(&p);
	seam_trace_move(&p.trace, false, UINT64_MAX);
	assert_true(seam_trace_start_ns(&p.trace, 0) == SEAM_TICKS_MAX_NS);
	close_replay(&p);
}

UNIT_TEST(reports_when_times_are_ticks)
{
	struct replay p = { 0 };

	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 0, 0);
	replay_events(&p.made, "aA");
	account_made(&p);
	assert_true(p.account.in_ticks);
	assert_int_equal(row(&p, 'a')->sum_ns, 10);
	close_replay(&p);
}

/* Parent and child write the buffer of before the fork, both. */
UNIT_TEST(counts_what_a_forked_child_repeats_once)
{
	struct replay p = { 0 };

	for (unsigned int i = 0; i < 2; i++) {
		put_header(&p.made);
		put_block(&p.made, 2, 10, 1000, i ? "abBcCA" : "abBdDA");
	}
	account_made(&p);
	assert_int_equal(row(&p, 'b')->count, 1);
	assert_int_equal(row(&p, 'c')->count, 1);
	assert_int_equal(row(&p, 'd')->count, 1);
	assert_int_equal(row(&p, 'a')->count, 2);
	assert_int_equal(row(&p, 'a')->sum_ns, 50 + 30);
	assert_paths(&p, "a2 ab1 ad1 ac1");
	close_replay(&p);
}

/* An argument has a value where other events have their time. */
UNIT_TEST(takes_no_argument_for_the_time_of_a_fork)
{
	struct replay p = { 0 };

	for (unsigned int i = 0; i < 2; i++) {
		put_header(&p.made);
		made_block(&p.made, 1, 2, 10, 0, 1000);
		made_call(&p.made, SEAM_XRAY_ENTRY, 1, 10);
		made_call(&p.made, SEAM_XRAY_ENTRY_ARGS, 2, 10);
		made_record(&p.made, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_ARGUMENT,
			.argument.argument = INT64_MAX });
		made_call(&p.made, SEAM_XRAY_EXIT, 2, i ? 30 : 10);
		made_call(&p.made, SEAM_XRAY_EXIT, 1, 10);
		made_end(&p.made, 0, 0);
	}
	account_made(&p);
	assert_int_equal(row(&p, 'a')->count, 2);
	assert_int_equal(row(&p, 'a')->sum_ns, 30 + 40);
	assert_int_equal(row(&p, 'b')->sum_ns, 10 + 30);
	close_replay(&p);
}

UNIT_TEST(shares_nothing_that_follows_what_is_not_shared)
{
	struct replay p = { 0 };

	for (unsigned int i = 0; i < 2; i++) {
		put_header(&p.made);
		/* the second log has a block of its own before the equal one */
		put_block(&p.made, 2, i ? 5 : 20, i ? 900 : 2000,
			  i ? "b" : "a");
		put_block(&p.made, 2, 10, 1000, "cC");
	}
	account_made(&p);
	assert_int_equal(row(&p, 'a')->count, 1);
	assert_int_equal(row(&p, 'b')->count, 1);
	assert_int_equal(row(&p, 'c')->count, 2);
	close_replay(&p);
}

UNIT_TEST(keeps_quantiles_within_their_error)
{
	for (uint64_t v = 0; v < 100000; v += 1 + v / 7) {
		unsigned int bucket = seam_histogram_bucket(v);
		uint64_t least = seam_histogram_least(bucket);
		uint64_t next = seam_histogram_least(bucket + 1);

		assert_true(least <= v && v < next);
		assert_true((double)(next - least - 1) <=
			    SEAM_QUANTILE_ERROR * (double)v);
	}
	assert_int_equal(seam_histogram_bucket(UINT64_MAX),
			 SEAM_HISTOGRAM_OCTAVES * SEAM_HISTOGRAM_STEPS - 1);
}

UNIT_TEST(gives_quantiles_of_the_calls)
{
	struct replay p = { 0 };
	struct seam_account_row one;

	put_header(&p.made);
	made_block(&p.made, 1, 2, 10, 0, 1000);
	for (uint32_t i = 1; i <= 1000; i++) {
		made_call(&p.made, SEAM_XRAY_ENTRY, 1, 1);
		made_call(&p.made, SEAM_XRAY_EXIT, 1, i);
	}
	made_end(&p.made, 0, 0);
	account_made(&p);
	one = *row(&p, 'a');
	assert_int_equal(one.min_ns, 1);
	assert_int_equal(one.max_ns, 1000);
	for (unsigned int q = 0; q <= 100; q++) {
		double got = (double)seam_account_quantile(&p.account, &one,
							   q / 100.0);
		double want = 1 + 9.99 * q;

		assert_true(got >= want * (1 - SEAM_QUANTILE_ERROR) - 1);
		assert_true(got <= want * (1 + SEAM_QUANTILE_ERROR) + 1);
	}
	close_replay(&p);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* @n calls whose durations are random, of all magnitudes. */
static void record_calls(struct made *m, unsigned int n, uint64_t *ns)
{
	uint32_t random = 1 + n;

	put_header(m);
	made_block(m, 1, 2, 10, 0, 1000);
	for (unsigned int i = 0; i < n; i++) {
		random = random * 1664525 + 1013904223;
		ns[i] = (random >> 8) >> (random & 15);
		made_call(m, SEAM_XRAY_ENTRY, 1, 1);
		made_call(m, SEAM_XRAY_EXIT, 1, (uint32_t)ns[i]);
	}
	made_end(m, 0, 0);
	qsort(ns, n, sizeof(*ns), by_value);
}

/* Hundredths, so that the rank is found without a fraction. */
UNIT_TEST(a_quantile_is_the_call_of_the_nearest_rank)
{
	static const unsigned int hundredths[] = { 1, 7, 50, 90, 99, 100 };
	uint64_t ns[200];

	for (unsigned int n = 1; n <= SEAM_ARRAY_SIZE(ns); n++) {
		struct seam_account_row one;
		struct replay p = { 0 };

		record_calls(&p.made, n, ns);
		account_made(&p);
		one = *row(&p, 'a');
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(hundredths); i++) {
			unsigned int q = hundredths[i];
			unsigned int rank = (q * n + 99) / 100;
			uint64_t want = ns[rank - 1];
			uint64_t got = seam_account_quantile(&p.account, &one,
							     q / 100.0);

			if (n <= 3 || rank == 1 || rank == n)
				assert_int_equal(got, want);
			assert_int_equal(seam_histogram_bucket(got),
					 seam_histogram_bucket(want));
			assert_true(32 * (got > want ? got - want : want - got)
				    <= want);
		}
		close_replay(&p);
	}
}

UNIT_TEST(shows_the_slowest_calls_from_inside)
{
	struct seam_slow_calls slow;
	struct replay p;

	open_replay(&p, "abBAabBbBA");
	assert_int_equal(seam_slow_calls_find(&slow, &p.trace, &p.account,
					      100, NULL), 0);
	assert_int_equal(slow.n, 5);
	assert_true(slow.items[0].found);
	assert_int_equal(slow.items[0].call.end_ns -
			 slow.items[0].call.begin_ns, 50);
	assert_int_equal(slow.items[0].tree.nodes.n, 3);
	assert_int_equal(slow.items[0].tree.nodes.items[1].total_ns, 50);
	assert_int_equal(slow.items[0].tree.nodes.items[2].count, 2);
	assert_int_equal(slow.items[1].tree.nodes.items[2].count, 1);
	seam_slow_calls_fini(&slow);
	close_replay(&p);
}

/* Thread 2 of the replay was blocked and preempted, thread 3 something else. */
UNIT_TEST(waits_divide_the_time_of_calls_and_recursion_counts_once)
{
	struct seam_process process = { .pid = 0 };
	struct seam_thread threads[] = {
		{ .tid = 3, .end_ns = UINT64_MAX },
		{ .tid = 2, .end_ns = UINT64_MAX },
	};
	const struct seam_profile profile = {
		.processes = { &process, 1, 1 }, .threads = { threads, 2, 2 },
	};
	struct seam_waits waits = { .items.n = 0 };
	const struct seam_thread_waits of = { &profile, &waits };
	const struct seam_off_time *nodes;
	struct seam_slow_calls slow;
	struct replay p;
	uint64_t at;

	open_replay(&p, "aabBAAcC");
	process.pid = p.trace.streams.items[0].pid;
	at = p.account.slowest.items[0].begin_ns;
	assert_true(SEAM_ARRAY_ADD(&waits.items, (struct seam_wait) {
		.thread = 1, .from_ns = at + 32, .to_ns = at + 36,
		.is_preempted = true }));
	assert_true(SEAM_ARRAY_ADD(&waits.items, (struct seam_wait) {
		.thread = 0, .from_ns = at, .to_ns = at + 60 }));
	assert_true(SEAM_ARRAY_ADD(&waits.items, (struct seam_wait) {
		.thread = 1, .from_ns = at + 5, .to_ns = at + 25 }));
	seam_waits_sort(&waits);
	assert_int_equal(seam_account_add_waits(&p.account, &p.trace, &of), 0);
	assert_int_equal(row(&p, 'a')->off.blocked_ns, 20);
	assert_int_equal(row(&p, 'a')->off.preempted_ns, 4);
	assert_int_equal(row(&p, 'a')->self_off.blocked_ns, 15);
	assert_int_equal(row(&p, 'a')->self_off.preempted_ns, 4);
	assert_int_equal(row(&p, 'b')->off.blocked_ns, 5);
	assert_int_equal(row(&p, 'b')->self_off.blocked_ns, 5);
	assert_int_equal(row(&p, 'c')->off.blocked_ns, 0);
	assert_int_equal(seam_slow_calls_find(&slow, &p.trace, &p.account,
					      100, NULL), 0);
	/* the outer a, the inner one, b */
	nodes = slow.items[0].self_off.items;
	assert_int_equal(slow.items[0].self_off.n, 4);
	assert_int_equal(nodes[1].blocked_ns, 5);
	assert_int_equal(nodes[2].blocked_ns, 10);
	assert_int_equal(nodes[2].preempted_ns, 4);
	assert_int_equal(nodes[3].blocked_ns, 5);
	seam_slow_calls_fini(&slow);
	free(waits.items.items);
	close_replay(&p);
}

UNIT_TEST(a_limit_of_stacks_holds_for_all_slow_calls_together)
{
	struct replay p;

	open_replay(&p, "abcdDCBeEbcCBAaccCCA");
	for (size_t max = 0; max <= 20; max++) {
		struct seam_slow_calls slow;
		size_t n = 0;

		assert_int_equal(seam_slow_calls_find(&slow, &p.trace,
						      &p.account, max, NULL),
				 0);
		for (size_t i = 0; i < slow.n; i++) {
			const struct seam_slow_call *call = &slow.items[i];
			uint64_t calls = call->tree.n_left_out;

			for (size_t k = 1; k < call->tree.nodes.n; k++)
				calls += call->tree.nodes.items[k].count;
			assert_true(call->found);
			assert_int_equal(call->tree.nodes.items[1].count, 1);
			assert_int_equal(call->tree.nodes.items[1].total_ns,
					 call->call.end_ns -
					 call->call.begin_ns);
			/* "abcdDCBeEbcCBA" is the slowest: 7 calls */
			assert_true(i > 0 || calls == 7);
			n += call->tree.nodes.n - 2;
		}
		assert_true(n <= max);
		seam_slow_calls_fini(&slow);
	}
	close_replay(&p);
}

/* Which paths they are depends on the order; what they add up to does not. */
UNIT_TEST(a_limit_of_stacks_leaves_their_time_with_the_callers)
{
	struct seam_xray_problems problems = { 0 };
	struct replay p;

	open_replay(&p, "abcdDCBeEbcCBAaccCCA");
	for (size_t max = 1; max <= 8; max++) {
		struct seam_call_paths paths = { .max = max };
		struct seam_calls calls = { 0 };
		uint64_t self = 0, count = 0;

		assert_int_equal(seam_call_paths_add(&paths, &p.trace, 0,
						     &calls, &problems), 0);
		assert_true(paths.nodes.n <= max + 1);
		for (size_t i = 1; i < paths.nodes.n; i++) {
			self += paths.nodes.items[i].self_ns;
			count += paths.nodes.items[i].count;
		}
		assert_int_equal(self, row(&p, 'a')->sum_ns);
		assert_int_equal(count + paths.n_left_out, p.account.n_calls);
		assert_true((paths.n_left_out == 0) == (max >= 7));
		seam_calls_fini(&calls);
		seam_call_paths_fini(&paths);
	}
	close_replay(&p);
}

UNIT_TEST(counts_edges_from_caller_to_callee)
{
	struct replay p;

	open_replay(&p, "abBbBAcbBC");
	assert_int_equal(p.account.edges.n, 4);
	assert_int_equal(p.account.edges.items[0].caller, SEAM_NONE);
	for (size_t i = 0; i < p.account.edges.n; i++) {
		const struct seam_account_edge *e = &p.account.edges.items[i];

		if (e->caller == 1)
			assert_int_equal(e->count, 2);
		if (e->caller == 3)
			assert_int_equal(e->total_ns, 10);
	}
	close_replay(&p);
}

/* a calls b, b calls a, and a calls itself. */
UNIT_TEST(the_edges_to_a_function_add_up_to_its_total)
{
	struct replay p;
	uint64_t sums['d'] = { 0 };

	open_replay(&p, "abaaAAcCBAbaAB");
	for (size_t i = 0; i < p.account.edges.n; i++) {
		const struct seam_account_edge *e = &p.account.edges.items[i];

		sums['a' + e->callee - 1] += e->total_ns;
	}
	for (char f = 'a'; f <= 'c'; f++)
		assert_int_equal(sums[(int)f], row(&p, f)->total_ns);
	close_replay(&p);
}

int main(void)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(lives); i++)
		unit.tests[unit.n++] = (struct CMUnitTest) {
			.name = lives[i].promise, .test_func = as_promised,
			.initial_state = &lives[i],
		};
	return unit_run(NULL, NULL, NULL, NULL);
}
