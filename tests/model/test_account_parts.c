/* SPDX-License-Identifier: MIT */
/*
 * test_account_parts.c - a thread counted in parts is the thread counted
 *
 * Lives of threads are made at random, whole ones and such in which every
 * repair is needed; each is divided at all its blocks and at every number of
 * them, and the account must be the undivided one's to the last figure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "same_account.h"
#include "xray_life.h"

/* Returns how many parts could be joined. */
static size_t divide(const struct life *l, unsigned int n_blocks,
		     size_t n_slowest)
{
	struct seam_account_options options = { .n_slowest = n_slowest };
	struct seam_account whole, divided;
	struct seam_trace trace;
	size_t joined = 0;

	assert_int_equal(seam_trace_from_bytes(&trace, (struct seam_bytes) {
			l->made.data, l->made.size }, NULL), 0);
	assert_int_equal(seam_account_build(&whole, &trace, &options, NULL), 0);
	assert_int_equal(whole.n_parts, 0);
	for (size_t n = 1; n <= n_blocks; n++) {
		options.part_blocks = n;
		assert_int_equal(seam_account_build(&divided, &trace, &options,
						    NULL), 0);
		assert_int_equal(divided.n_parts, (n_blocks + n - 1) / n);
		assert_same(&whole, &divided);
		joined += divided.n_parts - divided.n_again;
		seam_account_fini(&divided);
	}
	seam_account_fini(&whole);
	seam_trace_close(&trace);
	return joined;
}

static size_t try_many(const struct troubles *t, unsigned int n_lives)
{
	size_t joined = 0;

	for (uint64_t seed = 1; seed <= n_lives; seed++) {
		unsigned int n_blocks = 2 + (unsigned int)(seed % 12);
		struct life l;

		make(&l, seed, n_blocks, t);
		joined += divide(&l, n_blocks, seed % 3 ? 0 : 6);
		made_free(&l.made);
	}
	return joined;
}

static void a_whole_life_is_joined_without_a_second_look(void **state)
{
	static const struct troubles none;
	size_t n_parts = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 200; seed++) {
		unsigned int n_blocks = 2 + seed % 12;

		for (size_t n = 1; n <= n_blocks; n++)
			n_parts += (n_blocks + n - 1) / n;
	}
	assert_int_equal(try_many(&none, 200), n_parts);
}

static void parts_agree_with_tail_calls(void **state)
{
	static const struct troubles t = { .tails = 16 };

	(void)state;
	assert_true(try_many(&t, 200) > 1000);
}

static void parts_agree_with_jumps_not_taken(void **state)
{
	static const struct troubles t = { .tails = 4, .stray = 12 };

	(void)state;
	assert_true(try_many(&t, 300) > 1000);
}

static void parts_agree_with_exceptions(void **state)
{
	static const struct troubles t = { .skipped = 8 };

	(void)state;
	assert_true(try_many(&t, 300) > 1000);
}

static void parts_agree_when_entries_are_missing(void **state)
{
	static const struct troubles t = { .unseen = 2 };

	(void)state;
	assert_true(try_many(&t, 300) > 1000);
}

static void parts_agree_when_records_are_lost(void **state)
{
	static const struct troubles t = { .lost = 16 }, worse = {
		.lost = 24, .skipped = 3, .tails = 6, .stray = 4, .unseen = 1,
	};

	(void)state;
	assert_true(try_many(&t, 300) > 1000);
	assert_true(try_many(&worse, 300) > 100);
}

static void parts_agree_when_the_clock_steps_back(void **state)
{
	static const struct troubles t = { .steps = 24 };

	(void)state;
	assert_true(try_many(&t, 300) > 1000);
}

static void parts_agree_with_everything_at_once(void **state)
{
	static const struct troubles t = {
		.skipped = 3, .tails = 6, .stray = 4, .unseen = 1, .steps = 6,
	};

	(void)state;
	assert_true(try_many(&t, 600) > 1000);
}

static void edges_are_never_counted_in_parts(void **state)
{
	const struct seam_account_options options = {
		.edges = true, .part_blocks = 1,
	};
	static const struct troubles none;
	struct seam_account account;
	struct seam_trace trace;
	struct life l;

	(void)state;
	make(&l, 1, 5, &none);
	assert_int_equal(seam_trace_from_bytes(&trace, (struct seam_bytes) {
			l.made.data, l.made.size }, NULL), 0);
	assert_int_equal(seam_account_build(&account, &trace, &options, NULL),
			 0);
	assert_int_equal(account.n_parts, 0);
	seam_account_fini(&account);
	seam_trace_close(&trace);
	made_free(&l.made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_life_is_joined_without_a_second_look),
		cmocka_unit_test(parts_agree_with_tail_calls),
		cmocka_unit_test(parts_agree_with_jumps_not_taken),
		cmocka_unit_test(parts_agree_with_exceptions),
		cmocka_unit_test(parts_agree_when_entries_are_missing),
		cmocka_unit_test(parts_agree_when_records_are_lost),
		cmocka_unit_test(parts_agree_when_the_clock_steps_back),
		cmocka_unit_test(parts_agree_with_everything_at_once),
		cmocka_unit_test(edges_are_never_counted_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
