/* SPDX-License-Identifier: MIT */
/*
 * test_cut_samples.c - samples deeper than their copy wait for their callers
 *
 * A recursion by frame pointers in code without a file.  Its root is at TOP,
 * frame number d at TOP - FRAME * d; a copy holds COPIED frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/stacks/live_stacks.h"
#include "wire/perf/perf_registers.h"

enum {
	PID = 100, TID = 101,
	JIT = 0x10000, JIT_END = 0x20000,	/* code without a file */
	TOP = 0x7000000, FRAME = 16,
	COPIED = 32, DUMP = COPIED * FRAME,
};

static struct seam_live_stacks stacks;
static struct seam_stack_counts counts;
static struct seam_perf_attr attr;

static int n_tries;

size_t __real_seam_stack_joins_complete(struct seam_stack_joins *, int32_t,
					bool, struct seam_unwind_stack *);
size_t __wrap_seam_stack_joins_complete(struct seam_stack_joins *, int32_t,
					bool, struct seam_unwind_stack *);

size_t __wrap_seam_stack_joins_complete(struct seam_stack_joins *all,
					int32_t tid, bool is_last_try,
					struct seam_unwind_stack *stack)
{
	n_tries++;
	return __real_seam_stack_joins_complete(all, tid, is_last_try, stack);
}

static int set_up(void **state)
{
	const struct seam_perf_sideband code = {
		.type = PERF_RECORD_MMAP2,
		.mapping = { .pid = PID, .addr = JIT, .len = JIT_END - JIT,
			     .prot = PROT_READ | PROT_EXEC,
			     .filename = "//anon" },
	};

	(void)state;
	counts = (struct seam_stack_counts) { .n_empty = 0 };
	stacks = (struct seam_live_stacks) { .n_dropped = 0 };
	attr = (struct seam_perf_attr) {
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = SEAM_PERF_X86_64_MASK,
		.sample_stack_user = DUMP,
	};
	assert_int_equal(seam_live_stacks_init(&stacks, &attr, 1, 127,
					       &counts, NULL), 0);
	assert_int_equal(stacks.hold_ns, SEAM_LIVE_HOLD_NS);
	/* a test is never late */
	stacks.hold_ns = UINT64_C(1) << 62;
	seam_live_stacks_sideband(&stacks, &code, true);
	seam_live_stacks_begin_round(&stacks, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	seam_live_stacks_fini(&stacks);
	return 0;
}

/* ---- records ---- */

static uint64_t pc_of(uint64_t depth)
{
	return JIT + 0x100 + 8 * depth;
}

/* The sample at @time of thread @tid in @depth frames above the root. */
static void sample(int tid, uint64_t time, uint64_t depth)
{
	uint64_t words[2 * COPIED + 64], sp = TOP - FRAME * depth;
	struct seam_perf_header header = {
		.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER,
	};
	size_t n = 1;

	words[n++] = pc_of(depth);
	words[n++] = PID | (uint64_t)tid << 32;
	words[n++] = time;
	words[n++] = 2;				/* of the callchain */
	words[n++] = (uint64_t)PERF_CONTEXT_USER;
	words[n++] = pc_of(depth);
	words[n++] = 2;				/* 64-bit registers */
	for (int i = 0; i < 17; i++)
		words[n++] = i == 6 || i == 7 ? sp : i == 8 ? pc_of(depth) : 0;
	words[n++] = DUMP;
	for (uint64_t i = 0; i < COPIED; i++) {
		words[n++] = i < depth ? sp + FRAME * (i + 1) : 0;
		words[n++] = i < depth ? pc_of(depth - i - 1) : 0;
	}
	words[n++] = DUMP;
	header.size = (uint16_t)(8 * n);
	memcpy(words, &header, sizeof(header));
	seam_live_stacks_sample(&stacks, 0, words);
}

/* The user part of the sample at *@pos, which it advances; checks it. */
static size_t read_out(size_t *pos, struct seam_perf_sample *out)
{
	struct seam_perf_attr file = attr;
	struct seam_perf_header header;
	uint64_t depth;

	file.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER |
					PERF_SAMPLE_STACK_USER);
	memcpy(&header, stacks.out.items + *pos, sizeof(header));
	assert_int_equal(seam_perf_sample_read(&file, SEAM_NATIVE,
		seam_perf_record_at(stacks.out.items + *pos).payload, out), 0);
	*pos += header.size;
	assert_int_equal(seam_perf_u64(&out->callchain, 0),
			 (uint64_t)PERF_CONTEXT_USER);
	depth = (out->ip - JIT - 0x100) / 8;
	for (size_t i = 1; i < out->callchain.n; i++)
		assert_int_equal(seam_perf_u64(&out->callchain, i),
				 pc_of(depth - i + 1));
	return out->callchain.n - 1;
}

/* The next round, which writes one sample with @n frames; 0: none. */
static void expect_next_round(size_t n, bool all)
{
	struct seam_perf_sample one;
	size_t pos = 0;

	seam_live_stacks_begin_round(&stacks, all);
	seam_live_stacks_end_round(&stacks, all);
	if (n)
		assert_int_equal(read_out(&pos, &one), n);
	assert_int_equal(stacks.out.n, pos);
}

/* What leads from COPIED frames above the root to the root. */
static void learn(int tid)
{
	for (int i = 0; i < 2; i++)
		sample(tid, 1, COPIED - 1);
}

/* ---- tests ---- */

static void a_cut_sample_is_joined_when_its_callers_are_learned(void **state)
{
	struct seam_perf_sample one;
	size_t pos = 0;

	(void)state;
	sample(TID, 5, 40);
	assert_int_equal(stacks.out.n, 0);
	assert_int_equal(stacks.cut.n, 1);
	assert_int_equal(seam_live_stacks_oldest(&stacks), 5);
	expect_next_round(0, false);
	seam_live_stacks_begin_round(&stacks, false);
	learn(TID);
	stacks.round_ns += SEAM_LIVE_HOLD_NS;
	seam_live_stacks_end_round(&stacks, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read_out(&pos, &one), COPIED);
	assert_int_equal(read_out(&pos, &one), 41);
	assert_int_equal(one.time, 5);
	assert_int_equal(one.tid, TID);
	assert_int_equal(stacks.out.n, pos);
	assert_int_equal(seam_live_stacks_oldest(&stacks), UINT64_MAX);
	assert_int_equal(counts.n_joined, 1);
	assert_int_equal(counts.n_joined_later, 1);
	assert_int_equal(counts.n_ended[SEAM_STACK_COMPLETE], 3);
	assert_int_equal(counts.n_frames[SEAM_STACK_BY_JOIN], 41 - COPIED - 1);
}

/* With a round each ms: at 0, 1, 2, 4 ... ms. */
static void a_held_sample_is_tried_a_few_times_not_each_round(void **state)
{
	uint64_t start = stacks.round_ns;

	(void)state;
	sample(TID, 5, 40);
	n_tries = 0;
	for (uint64_t ms = 0; ms < SEAM_LIVE_HOLD_NS / 1000000; ms++) {
		stacks.round_ns = start + ms * 1000000;
		seam_live_stacks_end_round(&stacks, false);
		assert_int_equal(stacks.cut.n, 1);
	}
	assert_int_equal(n_tries, 9);
}

static void a_cut_sample_is_written_as_it_is_after_its_time(void **state)
{
	(void)state;
	stacks.hold_ns = 1;
	sample(TID, 5, 40);
	expect_next_round(COPIED + 1, false);
	assert_int_equal(counts.n_ended[SEAM_STACK_TRUNCATED], 1);
	assert_int_equal(counts.n_joined_later, 0);
	expect_next_round(0, false);
}

static void at_the_end_cut_samples_are_written_as_they_are(void **state)
{
	(void)state;
	sample(TID, 5, 40);
	expect_next_round(COPIED + 1, true);
	assert_int_equal(counts.n_ended[SEAM_STACK_TRUNCATED], 1);
	expect_next_round(0, true);
}

static void samples_of_the_last_round_are_not_held(void **state)
{
	struct seam_perf_sample one;
	size_t pos = 0;

	(void)state;
	seam_live_stacks_begin_round(&stacks, true);
	sample(TID, 5, 40);
	learn(TID);
	seam_live_stacks_end_round(&stacks, true);
	for (int i = 0; i < 2; i++)
		read_out(&pos, &one);
	assert_int_equal(read_out(&pos, &one), 41);
	assert_int_equal(stacks.out.n, pos);
}

static void after_a_failed_write_held_samples_are_dropped(void **state)
{
	(void)state;
	sample(TID, 5, 40);
	sample(TID, 6, 41);
	assert_int_equal(seam_live_stacks_drop(&stacks), 0);
	assert_int_equal(seam_live_stacks_oldest(&stacks), 6);
	assert_int_equal(seam_live_stacks_drop(&stacks), 0);
	assert_int_equal(seam_live_stacks_drop(&stacks), SEAM_NONE);
	assert_int_equal(stacks.cut.n_bytes, 0);
	expect_next_round(0, true);
}

static size_t n_handed_on;

static void take_sample(void *context, uint32_t event, const void *record)
{
	const uint64_t *words = record;

	(void)context;
	assert_int_equal(event, 0);
	assert_int_equal(words[1], pc_of(40));
	n_handed_on++;
}

/* Files that it is in may be deleted while it waits. */
static void a_cut_sample_is_handed_on_once_and_at_once(void **state)
{
	(void)state;
	n_handed_on = 0;
	stacks.on_sample = take_sample;
	sample(TID, 5, 40);
	assert_int_equal(n_handed_on, 1);
	assert_int_equal(stacks.out.n, 0);
	expect_next_round(COPIED + 1, true);
	assert_int_equal(n_handed_on, 1);
}

static void memory_of_cut_samples_is_bounded(void **state)
{
	size_t n = 0;

	(void)state;
	while (stacks.out.n == 0)
		sample(TID, n++, 40);
	assert_true(n > 1000);
	assert_int_equal(stacks.cut.n, n - 1);
	assert_true(stacks.cut.n_bytes <= SEAM_LIVE_CUT_BYTES);
	seam_live_stacks_end_round(&stacks, true);
	assert_int_equal(stacks.cut.n_bytes, 0);
	assert_int_equal(counts.n_ended[SEAM_STACK_TRUNCATED], n);
}

/* ---- the order, as readers need it ---- */

enum { SAMPLES = 20000 };

/* What a reader has at a FINISHED_ROUND; see in_order() of record_lib.py. */
struct reader {
	uint64_t used, before, newest;	/* times */
	bool seen[SAMPLES];
	size_t n_rounds, n_late;
};

static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void read_round(struct reader *reader)
{
	struct seam_perf_sample one;

	for (size_t pos = 0; pos < stacks.out.n; ) {
		read_out(&pos, &one);
		assert_true(one.time < SAMPLES);
		assert_false(reader->seen[one.time]);
		reader->seen[one.time] = true;
		/* not older than what was sorted and used before */
		assert_true(one.time >= reader->used);
		reader->n_late += one.time < reader->newest;
		if (one.time > reader->newest)
			reader->newest = one.time;
	}
}

/*
 * Threads at random depths, rounds of random lengths, samples held for one
 * round or to the end, as the recorder drains them (perf/drain.c).
 */
static void held_samples_are_written_once_and_in_the_order_of_rounds(void **s)
{
	static struct reader reader;
	uint64_t time = 0, finished = 0;
	uint32_t x = 2463534242u;

	(void)s;
	while (time < SAMPLES) {
		uint64_t end = time + next_random(&x) % 50;
		bool is_last;

		end = end < SAMPLES ? end : SAMPLES;
		is_last = end == SAMPLES;
		stacks.hold_ns = time < SAMPLES / 10 * 9 ? 1 :
				 UINT64_C(1) << 62;
		seam_live_stacks_begin_round(&stacks, is_last);
		for (; time < end; time++)
			sample(TID + (int)(next_random(&x) % 64), time,
			       next_random(&x) % 70);
		seam_live_stacks_end_round(&stacks, is_last);
		read_round(&reader);
		if (seam_live_stacks_oldest(&stacks) < finished)
			continue;
		finished = end;
		reader.used = reader.before;
		reader.before = reader.newest;
		reader.n_rounds++;
	}
	for (size_t i = 0; i < SAMPLES; i++)
		assert_true(reader.seen[i]);
	assert_true(reader.n_late > 100 && reader.n_rounds > 100);
	assert_true(counts.n_joined_later > 100);
	assert_true(counts.n_ended[SEAM_STACK_TRUNCATED] > 100);
	assert_int_equal(seam_stack_counts_total(&counts), SAMPLES);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_cut_sample_is_joined_when_its_callers_are_learned),
		T(a_held_sample_is_tried_a_few_times_not_each_round),
		T(a_cut_sample_is_written_as_it_is_after_its_time),
		T(at_the_end_cut_samples_are_written_as_they_are),
		T(samples_of_the_last_round_are_not_held),
		T(after_a_failed_write_held_samples_are_dropped),
		T(a_cut_sample_is_handed_on_once_and_at_once),
		T(memory_of_cut_samples_is_bounded),
		T(held_samples_are_written_once_and_in_the_order_of_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
