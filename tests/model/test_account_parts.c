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

#include "../wire/xray_made.h"
#include "account_row.h"

enum { N_FUNCTIONS = 9, MAX_DEPTH = 40 };

/* How often, of 64, a life is not as it should be. */
struct troubles {
	unsigned int skipped;		/* exits left out: exceptions */
	unsigned int tails;
	unsigned int stray;		/* tail exits that were not taken */
	unsigned int unseen;		/* exits of what was never entered */
	unsigned int steps;		/* back in time, between blocks */
};

struct life {
	struct made made;
	uint64_t random;
	uint64_t tsc;
	uint32_t stack[MAX_DEPTH];
	unsigned int depth;
	unsigned int deepest;
};

static unsigned int pick(struct life *l, unsigned int n)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return (unsigned int)(l->random >> 33) % n;
}

static void put(struct life *l, unsigned int action, uint32_t function)
{
	uint32_t delta = pick(l, 50);

	l->tsc += delta;
	made_call(&l->made, action, function, delta);
}

static void live(struct life *l, const struct troubles *t)
{
	uint32_t top = l->depth ? l->stack[l->depth - 1] : 0;

	if (pick(l, 64) < t->unseen) {
		put(l, SEAM_XRAY_EXIT, N_FUNCTIONS + 1 + pick(l, 3));
	} else if (l->depth == 0 ||
		   (l->depth < l->deepest && pick(l, 2) == 0)) {
		l->stack[l->depth] = 1 + pick(l, N_FUNCTIONS);
		put(l, SEAM_XRAY_ENTRY, l->stack[l->depth++]);
	} else if (pick(l, 64) < t->skipped) {
		l->depth = pick(l, l->depth);
	} else if (pick(l, 64) < t->tails) {
		l->stack[l->depth - 1] = 1 + pick(l, N_FUNCTIONS);
		put(l, SEAM_XRAY_TAIL_EXIT, top);
		put(l, SEAM_XRAY_ENTRY, l->stack[l->depth - 1]);
	} else if (pick(l, 64) < t->stray) {
		put(l, SEAM_XRAY_TAIL_EXIT, top);
		l->stack[l->depth - 1] = top;
		put(l, SEAM_XRAY_ENTRY, 1 + pick(l, N_FUNCTIONS));
	} else {
		l->depth--;
		put(l, SEAM_XRAY_EXIT, top);
	}
}

static void make(struct life *l, uint64_t seed, unsigned int n_blocks,
		 const struct troubles *t)
{
	*l = (struct life) {
		.random = 88172645463325252u + seed * 7919, .tsc = 100000,
	};
	l->deepest = 3 + pick(l, MAX_DEPTH - 3);
	made_header(&l->made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000, 0);
	for (uint32_t b = 1; b <= n_blocks; b++) {
		unsigned int n = pick(l, 12);

		if (pick(l, 64) < t->steps)
			l->tsc -= 1 + pick(l, 200);
		made_block(&l->made, 1, 2, b * 1000, 0, l->tsc);
		for (unsigned int i = 0; i <= n; i++)
			live(l, t);
		made_end(&l->made, 0, 0);
	}
}

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
		cmocka_unit_test(parts_agree_when_the_clock_steps_back),
		cmocka_unit_test(parts_agree_with_everything_at_once),
		cmocka_unit_test(edges_are_never_counted_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
