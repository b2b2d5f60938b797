/* SPDX-License-Identifier: MIT */
/*
 * test_life.c - calls out of a log that is not whole, beside the truth
 *
 * A thread's life is made at random, and with it the truth: how often each
 * function was called, what its calls took, and how many repairs are due.
 */

#include "account_row.h"
#include "model/xray/stream_calls.h"
#include "trace_made.h"
#include "unit.h"
#include "xray_life.h"

enum { N_FUNCTIONS = 16, N_STEPS = 120 };

struct truth {
	uint64_t count[N_FUNCTIONS], sum_ns[N_FUNCTIONS], self_ns[N_FUNCTIONS];
	uint64_t repairs[SEAM_N_REPAIRS];
};

struct open_call {
	uint32_t function;
	uint64_t begin_ns, child_ns;
};

struct thread {
	struct life life;
	struct truth truth;
	struct open_call open[MAX_DEPTH + 1];	/* 0 is the thread */
	unsigned int depth;
};

static void enter(struct thread *t, uint32_t function)
{
	put(&t->life, SEAM_XRAY_ENTRY, function);
	t->open[++t->depth] = (struct open_call) {
		.function = function, .begin_ns = t->life.tsc,
	};
}

/* The top call has ended by now, whatever the log says. */
static void end(struct thread *t)
{
	struct open_call call = t->open[t->depth--];
	uint64_t ns = t->life.tsc - call.begin_ns;

	t->truth.count[call.function]++;
	t->truth.sum_ns[call.function] += ns;
	t->truth.self_ns[call.function] += ns - call.child_ns;
	t->open[t->depth].child_ns += ns;
}

static void leave(struct thread *t, unsigned int action)
{
	put(&t->life, action, t->open[t->depth].function);
	end(t);
}

/* What may befall a life; the numbers are chances of 64. */
struct chances {
	unsigned int strays, early, tails, thrown;
	bool ends_early;
};

static uint32_t any(struct thread *t)
{
	return 1 + pick(&t->life, 6);
}

/* An exception leaves calls without exits; their caller's ends them. */
static void throw(struct thread *t)
{
	unsigned int to = 1 + pick(&t->life, t->depth);

	put(&t->life, SEAM_XRAY_EXIT, t->open[to].function);
	for (; t->depth > to; end(t))
		t->truth.repairs[SEAM_REPAIR_EXIT]++;
	end(t);
}

/* The exit of a call that has not ended, before that of the one that does. */
static void leave_early(struct thread *t)
{
	unsigned int which = 1 + pick(&t->life, t->depth - 1);

	put(&t->life, SEAM_XRAY_EXIT, t->open[which].function);
	t->truth.repairs[SEAM_REPAIR_STRAY]++;
	for (unsigned int n = pick(&t->life, 3); n > 0; n--) {
		enter(t, any(t));
		leave(t, SEAM_XRAY_EXIT);
	}
	leave(t, SEAM_XRAY_EXIT);
}

/* As neither would be understood where the function is open twice. */
static bool may_throw(const struct thread *t)
{
	for (unsigned int i = 1; i < t->depth; i++)
		for (unsigned int k = i + 1; k <= t->depth; k++)
			if (t->open[i].function == t->open[k].function)
				return false;
	return t->depth > 0;
}

static void step(struct thread *t, const struct chances *chances)
{
	struct life *l = &t->life;

	if (t->depth && pick(l, 64) < chances->strays) {
		/* functions from 8 on are never entered */
		put(l, SEAM_XRAY_EXIT + pick(l, 2), 8 + pick(l, 4));
		t->truth.repairs[SEAM_REPAIR_STRAY]++;
	} else if (t->depth && pick(l, 64) < chances->tails) {
		leave(t, SEAM_XRAY_TAIL_EXIT);
		enter(t, any(t));
	} else if (t->depth > 1 && may_throw(t) &&
		   pick(l, 64) < chances->early) {
		leave_early(t);
	} else if (may_throw(t) && pick(l, 64) < chances->thrown) {
		throw(t);
	} else if (t->depth < l->deepest && (!t->depth || pick(l, 2))) {
		enter(t, any(t));
	} else {
		leave(t, SEAM_XRAY_EXIT);
	}
}

static void begin_block(struct thread *t, uint32_t number)
{
	if (number > 1)
		made_end(&t->life.made, 0, 0);
	made_block(&t->life.made, 1, 2, number * 1000, 0, t->life.tsc);
}

static void live_whole(struct thread *t, uint64_t seed,
		       const struct chances *chances)
{
	*t = (struct thread) { .life = {
		.random = 88172645463325252u + seed * 7919, .tsc = 1000,
		.log = usual_log,
	} };
	t->life.deepest = 2 + pick(&t->life, 12);
	made_header(&t->life.made, 5, SEAM_XRAY_FDR, SEAM_LITTLE, 1000000000,
		    0);
	begin_block(t, 1);
	for (unsigned int i = 0; i < N_STEPS; i++) {
		if (i % 32 == 31)
			begin_block(t, 2 + i / 32);
		step(t, chances);
	}
	for (; t->depth && !chances->ends_early;)
		leave(t, SEAM_XRAY_EXIT);
	for (; t->depth; end(t))
		t->truth.repairs[SEAM_REPAIR_UNFINISHED]++;
	made_end(&t->life.made, 0, 0);
}

static void assert_repairs(const uint64_t *got, const uint64_t *want)
{
	for (int i = 0; i < SEAM_N_REPAIRS; i++)
		assert_int_equal(got[i], want[i]);
}

static void assert_account(const struct truth *truth,
			   const struct seam_trace *trace,
			   const struct seam_account_options *options)
{
	struct seam_account account;

	assert_int_equal(seam_account_build(&account, trace, options, NULL), 0);
	assert_repairs(account.repairs, truth->repairs);
	for (uint32_t f = 0; f < N_FUNCTIONS; f++) {
		const struct seam_account_row *row = account_row(&account, f);

		assert_int_equal(row ? row->count : 0, truth->count[f]);
		assert_int_equal(row ? row->sum_ns : 0, truth->sum_ns[f]);
		assert_int_equal(row ? row->self_ns : 0, truth->self_ns[f]);
	}
	seam_account_fini(&account);
}

/* The same calls by the way that reports and pictures take. */
static void assert_paths(const struct truth *truth,
			 const struct seam_trace *trace)
{
	uint64_t count[N_FUNCTIONS] = { 0 }, self[N_FUNCTIONS] = { 0 };
	struct seam_call_paths paths = { 0 };
	struct seam_xray_problems problems = { 0 };
	struct seam_calls calls = { 0 };

	assert_int_equal(seam_call_paths_add(&paths, trace, 0, &calls,
					     &problems), 0);
	assert_repairs(calls.repairs, truth->repairs);
	for (size_t i = 1; i < paths.nodes.n; i++) {
		const struct seam_call_path *node = &paths.nodes.items[i];

		count[node->function] += node->count;
		self[node->function] += node->self_ns;
	}
	for (uint32_t f = 0; f < N_FUNCTIONS; f++) {
		assert_int_equal(count[f], truth->count[f]);
		assert_int_equal(self[f], truth->self_ns[f]);
	}
	seam_calls_fini(&calls);
	seam_call_paths_fini(&paths);
}

static void try_lives(const struct chances *chances)
{
	static const struct seam_account_options ways[] = {
		{ .edges = true }, { .n_slowest = 0 },
		{ .n_slowest = 3 },
	};

	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct seam_trace trace;
		struct thread t;

		live_whole(&t, seed, chances);
		assert_int_equal(trace_from_bytes(&trace,
			(struct seam_bytes) { t.life.made.data,
				t.life.made.size }, NULL), 0);
		for (size_t i = 0; i < SEAM_ARRAY_SIZE(ways); i++)
			assert_account(&t.truth, &trace, &ways[i]);
		assert_paths(&t.truth, &trace);
		seam_trace_close(&trace);
		made_free(&t.life.made);
	}
}

UNIT_TEST(a_whole_life_is_the_truth)
{
	try_lives(&(struct chances) { 0 });
	try_lives(&(struct chances) { .tails = 12 });
	try_lives(&(struct chances) { .tails = 6, .ends_early = true });
}

UNIT_TEST(a_stray_exit_ends_no_call)
{
	try_lives(&(struct chances) { .strays = 4 });
	try_lives(&(struct chances) { .strays = 24 });
	try_lives(&(struct chances) { .strays = 8, .tails = 8 });
}

UNIT_TEST(an_exit_before_its_time_ends_no_call)
{
	try_lives(&(struct chances) { .early = 4 });
	try_lives(&(struct chances) { .early = 32 });
	try_lives(&(struct chances) { .early = 8, .thrown = 4 });
}

UNIT_TEST(exceptions_end_the_calls_that_they_leave)
{
	try_lives(&(struct chances) { .thrown = 8 });
	try_lives(&(struct chances) { .thrown = 8, .strays = 6 });
	try_lives(&(struct chances) { .thrown = 4, .strays = 4, .tails = 4 });
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
