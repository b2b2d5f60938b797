/* SPDX-License-Identifier: MIT */
/* test_calls.c - what becomes of logs that are not whole */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../wire/xray_made.h"
#include "account_row.h"
#include "model/xray/slow_calls.h"
#include "model/xray/stream_calls.h"

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
		if (tail)
			made_call(m, SEAM_XRAY_TAIL_EXIT,
				  (uint32_t)(c - 'a' + 1), 10);
		else if (c >= 'a')
			made_call(m, SEAM_XRAY_ENTRY,
				  (uint32_t)(c - 'a' + 1), 10);
		else
			made_call(m, SEAM_XRAY_EXIT,
				  (uint32_t)(c - 'A' + 1), 10);
	}
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

	assert_int_equal(seam_trace_from_bytes(&p->trace, (struct seam_bytes) {
			p->made.data, p->made.size }, NULL), 0);
	assert_int_equal(seam_account_build(&p->account, &p->trace, &options,
					    NULL), 0);
}

static void open_replay(struct replay *p, const char *text)
{
	*p = (struct replay) { 0 };
	made_header(&p->made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
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

static uint64_t n_repairs(const struct replay *p)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SEAM_N_REPAIRS; i++)
		n += p->account.repairs[i];
	return n;
}

/* All paths and their counts, "a1 ab2": sorted as they were made. */
static void paths_of(const struct replay *p, char *text, size_t cap)
{
	struct seam_call_paths paths = { 0 };
	struct seam_xray_problems problems = { 0 };
	struct seam_calls calls = { 0 };
	size_t used = 0;

	for (size_t i = 0; i < p->trace.streams.n; i++)
		assert_int_equal(seam_call_paths_add(&paths, &p->trace, i,
						     &calls, &problems), 0);
	text[0] = '\0';
	for (uint32_t i = 1; i < paths.nodes.n; i++) {
		char path[64];
		size_t n = 0;

		for (uint32_t k = i; k; k = paths.nodes.items[k].parent)
			path[n++] = (char)('a' - 1 +
					   paths.nodes.items[k].function);
		used += (size_t)snprintf(text + used, cap - used, "%s",
					 used ? " " : "");
		while (n-- > 0)
			used += (size_t)snprintf(text + used, cap - used, "%c",
						 path[n]);
		used += (size_t)snprintf(text + used, cap - used, "%u",
			(unsigned int)paths.nodes.items[i].count);
	}
	seam_calls_fini(&calls);
	seam_call_paths_fini(&paths);
}

static void assert_paths(const struct replay *p, const char *want)
{
	char text[256];

	paths_of(p, text, sizeof(text));
	assert_string_equal(text, want);
}

static void nests_calls_and_shares_their_time(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "abBcCbBA");
	assert_int_equal(row(&p, 'a')->sum_ns, 70);
	assert_int_equal(row(&p, 'a')->self_ns, 40);
	assert_int_equal(row(&p, 'b')->count, 2);
	assert_int_equal(row(&p, 'b')->sum_ns, 20);
	assert_int_equal(row(&p, 'b')->min_ns, 10);
	assert_int_equal(n_repairs(&p), 0);
	assert_paths(&p, "a1 ab2 ac1");
	close_replay(&p);
}

static void counts_recursive_time_once_in_the_total(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "aaaAAA");
	assert_int_equal(row(&p, 'a')->count, 3);
	assert_int_equal(row(&p, 'a')->sum_ns, 50 + 30 + 10);
	assert_int_equal(row(&p, 'a')->total_ns, 50);
	assert_int_equal(row(&p, 'a')->self_ns, 50);
	assert_paths(&p, "a1 aa1 aaa1");
	close_replay(&p);
}

static void takes_a_tail_callee_as_a_call_of_the_same_caller(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "ab!bc!cdDA");
	assert_paths(&p, "a1 ab1 ac1 ad1");
	assert_int_equal(row(&p, 'b')->sum_ns, 10);
	assert_int_equal(n_repairs(&p), 0);
	close_replay(&p);
}

static void ignores_the_exit_after_a_tail_exit_that_was_not_taken(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "ab!bcCBA");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 1);
	assert_int_equal(n_repairs(&p), 1);
	assert_paths(&p, "a1 ab1 ac1");
	assert_int_equal(row(&p, 'a')->sum_ns, 60);
	close_replay(&p);
}

static void ends_calls_that_an_exception_left(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "abcdBA");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_EXIT], 2);
	assert_int_equal(row(&p, 'd')->sum_ns, 10);
	assert_int_equal(row(&p, 'c')->sum_ns, 20);
	assert_int_equal(row(&p, 'c')->self_ns, 10);
	assert_int_equal(row(&p, 'b')->sum_ns, 30);
	assert_paths(&p, "a1 ab1 abc1 abcd1");
	close_replay(&p);
}

static void finds_callers_that_began_before_the_log(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "dDCdDB");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_ENTRY], 2);
	assert_int_equal(n_repairs(&p), 2);
	assert_int_equal(row(&p, 'b')->sum_ns, 60);
	assert_int_equal(row(&p, 'b')->self_ns, 60 - 30 - 10);
	assert_int_equal(row(&p, 'c')->sum_ns, 30);
	assert_int_equal(row(&p, 'c')->self_ns, 20);
	assert_paths(&p, "b1 bc1 bcd1 bd1");
	close_replay(&p);
}

/* Nothing of c is open; b's own exit shows that b was all the time. */
static void ignores_an_exit_of_no_open_call(void **state)
{
	static const char *const lives[] = {
		"aCA", "abCBA", "abCdDBA", "aCbBA", "ab|C|BA", "a|C|bBA",
		"abABA", "abAdDBA", "ab|A|BA",
	};
	struct replay p;

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(lives); i++) {
		open_replay(&p, lives[i]);
		assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 1);
		assert_int_equal(n_repairs(&p), 1);
		assert_int_equal(row(&p, 'a')->count, 1);
		assert_int_equal(row(&p, 'c')->count, 0);
		close_replay(&p);
	}
	open_replay(&p, "abCBACB");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 1);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_ENTRY], 2);
	assert_int_equal(n_repairs(&p), 3);
	assert_paths(&p, "b1 bc1 bca1 bcab1");
	close_replay(&p);
}

/* a's own exit comes too late to be seen, but what a calls goes on. */
static void ignores_an_exit_of_no_open_call_far_from_any_other(void **state)
{
	static const size_t n_calls[] = { 31, 32, 40, 5000 };

	(void)state;
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
		assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 1);
		assert_int_equal(n_repairs(&p), 1);
		assert_int_equal(row(&p, 'a')->count, 1);
		assert_int_equal(row(&p, 'b')->count, n_calls[i]);
		close_replay(&p);
		free(life);
	}
}

/* Nothing that is open has an exit later: all of it ended there. */
static void ends_what_is_open_with_a_call_from_before_the_log(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "abCdDD");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 0);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_EXIT], 2);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_ENTRY], 2);
	assert_int_equal(n_repairs(&p), 4);
	close_replay(&p);
}

static void ends_open_calls_with_the_log(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "abBc");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_UNFINISHED], 2);
	assert_int_equal(row(&p, 'a')->sum_ns, 30);
	assert_int_equal(row(&p, 'c')->sum_ns, 0);
	close_replay(&p);
}

static void assert_gap(const struct replay *p, unsigned int n_lost,
		       unsigned int n_cut, unsigned int n_entries)
{
	assert_int_equal(p->account.repairs[SEAM_REPAIR_GAPS], 1);
	assert_int_equal(p->account.repairs[SEAM_REPAIR_LOST], n_lost);
	assert_int_equal(p->account.repairs[SEAM_REPAIR_CUT], n_cut);
	assert_int_equal(p->account.repairs[SEAM_REPAIR_ENTRY], n_entries);
	assert_int_equal(n_repairs(p), 1 + n_lost + n_cut + n_entries);
}

static void no_call_goes_over_lost_records(void **state)
{
	static const char *const same[] = {
		"ab5BcCA", "ab|5BcCA", "ab5|BcCA", "|ab|5B|cC|A",
	};
	struct replay p;

	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(same); i++) {
		open_replay(&p, same[i]);
		assert_gap(&p, 5, 2, 2);
		/* 1010 to 1020, and 2020 to 2060 */
		assert_int_equal(row(&p, 'a')->sum_ns, 10 + 40);
		assert_int_equal(row(&p, 'a')->self_ns, 10 + 20);
		assert_int_equal(row(&p, 'b')->sum_ns, 0 + 10);
		assert_int_equal(row(&p, 'c')->sum_ns, 10);
		assert_paths(&p, "a2 ab2 ac1");
		close_replay(&p);
	}
}

static void no_call_has_calls_of_after_lost_records(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "ab5cCaA");
	assert_gap(&p, 5, 2, 0);
	assert_paths(&p, "a2 ab1 c1");
	assert_int_equal(row(&p, 'a')->sum_ns, 10 + 10);
	close_replay(&p);
	open_replay(&p, "abBA7cC");
	assert_gap(&p, 7, 0, 0);
	assert_paths(&p, "a1 ab1 c1");
	close_replay(&p);
	open_replay(&p, "5aA");
	assert_gap(&p, 5, 0, 0);
	close_replay(&p);
}

/* A program may write the mark itself. */
static void a_claim_of_lost_records_does_not_overflow(void **state)
{
	struct replay p = { 0 };

	(void)state;
	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
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

/* An exit after the gap says nothing of the calls before. */
static void looks_for_no_exit_beyond_lost_records(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "aC5A");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 0);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_EXIT], 1);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_ENTRY], 2);
	assert_paths(&p, "c1 ca1 a1");
	close_replay(&p);
	/* b's exit would make a's a stray one */
	open_replay(&p, "abA5BcCbB");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 0);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_EXIT], 1);
	close_replay(&p);
	/* in each part of its own */
	open_replay(&p, "aCA5abDBA");
	assert_int_equal(p.account.repairs[SEAM_REPAIR_STRAY], 2);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_ENTRY], 0);
	close_replay(&p);
}

static void follows_calls_over_blocks(void **state)
{
	struct replay p;

	(void)state;
	open_replay(&p, "ab|BcC|A");
	assert_int_equal(n_repairs(&p), 0);
	assert_int_equal(row(&p, 'a')->sum_ns, 50);
	assert_int_equal(row(&p, 'b')->sum_ns, 10);
	close_replay(&p);
}

/* Blocks of a thread in the order @order, as a ring would leave them. */
static void orders_blocks_by_wall_time_then_tsc(void **state)
{
	static const unsigned int orders[][3] = {
		{ 0, 1, 2 }, { 2, 0, 1 }, { 1, 2, 0 }, { 2, 1, 0 },
	};

	(void)state;
	for (size_t o = 0; o < SEAM_ARRAY_SIZE(orders); o++) {
		struct replay p = { 0 };

		made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE,
			    1000000000, 0);
		for (size_t i = 0; i < 3; i++) {
			unsigned int b = orders[o][i];

			/* the second two share a wall time */
			made_block(&p.made, 1, 2, b ? 20 : 10, 0,
				   1000 + 100 * b);
			if (b == 0)
				made_call(&p.made, SEAM_XRAY_ENTRY, 1, 1);
			made_call(&p.made, b == 1 ? SEAM_XRAY_ENTRY :
				  b == 2 ? SEAM_XRAY_EXIT : SEAM_XRAY_ENTRY,
				  b ? 3 : 2, 1);
			if (b == 0)
				made_call(&p.made, SEAM_XRAY_EXIT, 2, 1);
			if (b == 2)
				made_call(&p.made, SEAM_XRAY_EXIT, 1, 1);
			made_end(&p.made, 0, 0);
		}
		account_made(&p);
		assert_int_equal(n_repairs(&p), 0);
		assert_paths(&p, "a1 ab1 ac1");
		assert_int_equal(row(&p, 'c')->sum_ns, 100);
		close_replay(&p);
	}
}

/* A thread that was preempted before it took the wall time of a block. */
static void ties_the_clock_by_the_shortest_delay(void **state)
{
	static const uint64_t wall_us[] = { 12, 11, 17 };
	struct replay p = { 0 };

	(void)state;
	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wall_us); i++) {
		made_block(&p.made, 1, (int32_t)i + 2, wall_us[i], 0, 1000);
		made_call(&p.made, SEAM_XRAY_ENTRY, 1, 1);
		made_end(&p.made, 0, 0);
	}
	account_made(&p);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(wall_us); i++)
		assert_int_equal(seam_trace_start_ns(&p.trace, i), 11000);
	close_replay(&p);
}

/* A CPU whose TSC is behind wrote the later block. */
static void prefers_wall_time_to_the_tsc(void **state)
{
	struct replay p = { 0 };

	(void)state;
	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	made_block(&p.made, 1, 2, 20, 1, 500);
	made_call(&p.made, SEAM_XRAY_EXIT, 1, 10);
	made_end(&p.made, 0, 0);
	made_block(&p.made, 1, 2, 10, 0, 1000);
	made_call(&p.made, SEAM_XRAY_ENTRY, 1, 10);
	made_end(&p.made, 0, 0);
	account_made(&p);
	assert_int_equal(p.account.repairs[SEAM_REPAIR_CLOCK], 1);
	assert_int_equal(n_repairs(&p), 1);
	assert_int_equal(row(&p, 'a')->count, 1);
	close_replay(&p);
}

static void never_lets_time_run_backwards(void **state)
{
	struct replay p = { 0 };

	(void)state;
	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
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

static void a_migration_changes_nothing(void **state)
{
	struct replay p = { 0 };

	(void)state;
	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	made_block(&p.made, 1, 2, 10, 0, 1000);
	made_call(&p.made, SEAM_XRAY_ENTRY, 1, 0);
	made_record(&p.made, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CPU, .cpu = { 1, 1200 } });
	made_call(&p.made, SEAM_XRAY_EXIT, 1, 5);
	made_end(&p.made, 0, 0);
	account_made(&p);
	assert_int_equal(n_repairs(&p), 0);
	assert_int_equal(row(&p, 'a')->sum_ns, 205);
	close_replay(&p);
}

static void reports_when_times_are_ticks(void **state)
{
	struct replay p = { 0 };

	(void)state;
	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 0, 0);
	replay_events(&p.made, "aA");
	account_made(&p);
	assert_true(p.account.in_ticks);
	assert_int_equal(row(&p, 'a')->sum_ns, 10);
	close_replay(&p);
}

/* Parent and child write the buffer of before the fork, both. */
static void counts_what_a_forked_child_repeats_once(void **state)
{
	struct replay p = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE,
			    1000000000, 0);
		made_block(&p.made, 1, 2, 10, 0, 1000);
		made_call(&p.made, SEAM_XRAY_ENTRY, 1, 10);
		made_call(&p.made, SEAM_XRAY_ENTRY, 2, 10);
		made_call(&p.made, SEAM_XRAY_EXIT, 2, 10);
		made_call(&p.made, SEAM_XRAY_ENTRY, i ? 3 : 4, 10);
		made_call(&p.made, SEAM_XRAY_EXIT, i ? 3 : 4, 10);
		made_call(&p.made, SEAM_XRAY_EXIT, 1, 10);
		made_end(&p.made, 0, 0);
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
static void takes_no_argument_for_the_time_of_a_fork(void **state)
{
	struct replay p = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE,
			    1000000000, 0);
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

static void shares_nothing_that_follows_what_is_not_shared(void **state)
{
	struct replay p = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE,
			    1000000000, 0);
		/* the second log has a block of its own before the equal one */
		made_block(&p.made, 1, 2, i ? 5 : 20, 0, i ? 900 : 2000);
		made_call(&p.made, SEAM_XRAY_ENTRY, 1 + i, 10);
		made_end(&p.made, 0, 0);
		made_block(&p.made, 1, 2, 10, 0, 1000);
		made_call(&p.made, SEAM_XRAY_ENTRY, 3, 10);
		made_call(&p.made, SEAM_XRAY_EXIT, 3, 10);
		made_end(&p.made, 0, 0);
	}
	account_made(&p);
	assert_int_equal(row(&p, 'a')->count, 1);
	assert_int_equal(row(&p, 'b')->count, 1);
	assert_int_equal(row(&p, 'c')->count, 2);
	close_replay(&p);
}

static void keeps_quantiles_within_their_error(void **state)
{
	(void)state;
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

static void gives_quantiles_of_the_calls(void **state)
{
	struct replay p = { 0 };
	struct seam_account_row one;

	(void)state;
	made_header(&p.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
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

	made_header(m, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
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
static void a_quantile_is_the_call_of_the_nearest_rank(void **state)
{
	static const unsigned int hundredths[] = { 1, 7, 50, 90, 99, 100 };
	uint64_t ns[200];

	(void)state;
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

static void shows_the_slowest_calls_from_inside(void **state)
{
	struct seam_slow_calls slow;
	struct replay p;

	(void)state;
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

static void a_limit_of_stacks_holds_for_all_slow_calls_together(void **state)
{
	struct replay p;

	(void)state;
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
static void a_limit_of_stacks_leaves_their_time_with_the_callers(void **state)
{
	struct seam_xray_problems problems = { 0 };
	struct replay p;

	(void)state;
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

static void counts_edges_from_caller_to_callee(void **state)
{
	struct replay p;

	(void)state;
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
static void the_edges_to_a_function_add_up_to_its_total(void **state)
{
	struct replay p;
	uint64_t sums['d'] = { 0 };

	(void)state;
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nests_calls_and_shares_their_time),
		cmocka_unit_test(counts_recursive_time_once_in_the_total),
		cmocka_unit_test(
			takes_a_tail_callee_as_a_call_of_the_same_caller),
		cmocka_unit_test(
			ignores_the_exit_after_a_tail_exit_that_was_not_taken),
		cmocka_unit_test(ends_calls_that_an_exception_left),
		cmocka_unit_test(finds_callers_that_began_before_the_log),
		cmocka_unit_test(ignores_an_exit_of_no_open_call),
		cmocka_unit_test(
			ignores_an_exit_of_no_open_call_far_from_any_other),
		cmocka_unit_test(
			ends_what_is_open_with_a_call_from_before_the_log),
		cmocka_unit_test(ends_open_calls_with_the_log),
		cmocka_unit_test(no_call_goes_over_lost_records),
		cmocka_unit_test(no_call_has_calls_of_after_lost_records),
		cmocka_unit_test(a_claim_of_lost_records_does_not_overflow),
		cmocka_unit_test(looks_for_no_exit_beyond_lost_records),
		cmocka_unit_test(follows_calls_over_blocks),
		cmocka_unit_test(orders_blocks_by_wall_time_then_tsc),
		cmocka_unit_test(ties_the_clock_by_the_shortest_delay),
		cmocka_unit_test(prefers_wall_time_to_the_tsc),
		cmocka_unit_test(never_lets_time_run_backwards),
		cmocka_unit_test(a_migration_changes_nothing),
		cmocka_unit_test(reports_when_times_are_ticks),
		cmocka_unit_test(counts_what_a_forked_child_repeats_once),
		cmocka_unit_test(takes_no_argument_for_the_time_of_a_fork),
		cmocka_unit_test(
			shares_nothing_that_follows_what_is_not_shared),
		cmocka_unit_test(keeps_quantiles_within_their_error),
		cmocka_unit_test(gives_quantiles_of_the_calls),
		cmocka_unit_test(a_quantile_is_the_call_of_the_nearest_rank),
		cmocka_unit_test(shows_the_slowest_calls_from_inside),
		cmocka_unit_test(
			a_limit_of_stacks_holds_for_all_slow_calls_together),
		cmocka_unit_test(
			a_limit_of_stacks_leaves_their_time_with_the_callers),
		cmocka_unit_test(counts_edges_from_caller_to_callee),
		cmocka_unit_test(the_edges_to_a_function_add_up_to_its_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
