/* SPDX-License-Identifier: MIT */
/* test_live.c - what a live profile has after each step, from made records */
#include "model/live/live.c"
#include "unit.h"

static const struct seam_perf_attr attr = {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
	.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
		       PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
		       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
	.flags = UINT64_C(1) << SEAM_PERF_ATTR_SAMPLE_ID_ALL,
};

static struct seam_live *live;

static int set_up(void **state)
{
	const struct seam_symbols_options options = { .no_lines = true };
	const struct seam_kernel kernel = { .boot_id = "none" };
	const struct seam_live_event event = { "cpu-clock", attr };

	(void)state;
	live = seam_live_new(&options, &kernel);
	return live && !seam_live_add_event(live, &event) &&
	       !seam_live_add_id(live, 7, 0) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	seam_live_free(live);
	return 0;
}

static void take(const void *bytes, size_t size)
{
	assert_int_equal(seam_live_take(live, (struct seam_bytes) {
					bytes, size }), 0);
}

static void take_fields(uint32_t type, uint16_t misc, const void *fields,
			int pid, uint64_t ns)
{
	const struct seam_perf_sample_id id = {
		.pid = pid, .tid = pid, .time = ns, .id = 7,
	};
	uint8_t bytes[512];
	size_t n = seam_perf_sideband_write(&attr, SEAM_NATIVE, type, misc,
					    fields, &id, bytes, sizeof(bytes));

	assert_true(n > 0);
	take(bytes, n);
}

static void executed(int pid, const char *name, uint64_t ns)
{
	const struct seam_perf_comm comm = { pid, pid, name };

	take_fields(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &comm, pid,
		    ns);
}

static void of_task(uint32_t type, int pid, int ppid, uint64_t ns)
{
	const struct seam_perf_task task = {
		.pid = pid, .ppid = ppid, .tid = pid, .ptid = ppid, .time = ns,
	};

	take_fields(type, 0, &task, pid, ns);
}

static void mapped(int pid, uint64_t addr, uint64_t len, const char *path,
		   uint64_t ns)
{
	const struct seam_perf_mmap2 m = {
		.pid = pid, .tid = pid, .addr = addr, .len = len,
		.prot = PROT_READ | PROT_EXEC, .filename = path,
	};

	take_fields(PERF_RECORD_MMAP2, 0, &m, pid, ns);
}

static void sampled_of(uint64_t event_id, int pid, uint64_t addr, uint64_t ns)
{
	const struct {
		struct seam_perf_header header;
		uint64_t id, ip;
		int32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint64_t period, n, chain[2];
	} record = {
		{ PERF_RECORD_SAMPLE, 0, sizeof(record) }, event_id, addr, pid,
		pid, ns, 0, 0, 1000, 2, { PERF_CONTEXT_USER, addr },
	};

	take(&record, sizeof(record));
}

static void sampled(int pid, uint64_t addr, uint64_t ns)
{
	sampled_of(7, pid, addr, ns);
}

/* The leaf function of sample @i. */
static const char *leaf(size_t i)
{
	const struct seam_profile *p = seam_live_profile(live);
	const struct seam_function *f;

	assert_true(i < p->samples.n);
	f = seam_profile_leaf(p, p->samples.stack[i]);
	return seam_profile_text(p, f->name);
}

static size_t step(void)
{
	assert_int_equal(seam_live_step(live, 0), 0);
	return seam_live_profile(live)->samples.n;
}

UNIT_TEST_WITH(a_sample_is_in_one_step, set_up, tear_down)
{
	executed(10, "one", 100);
	sampled(10, 0x1000, 200);
	sampled(10, 0x1000, 300);
	assert_int_equal(step(), 2);
	assert_int_equal(step(), 0);
	sampled(10, 0x1000, 400);
	assert_int_equal(step(), 1);
	/* and all of them are in the sum, once */
	seam_live_select(live, true);
	assert_int_equal(seam_live_profile(live)->samples.n, 1);
	assert_int_equal(seam_samples_count(
		&seam_live_profile(live)->samples, 0), 3);
	assert_int_equal(seam_samples_weight(
		&seam_live_profile(live)->samples, 0), 3000);
	sampled(10, 0x1000, 500);
	assert_int_equal(step(), 1);
	assert_int_equal(seam_samples_count(
		&seam_live_profile(live)->samples, 0), 4);
	seam_live_select(live, false);
	assert_int_equal(seam_live_profile(live)->samples.n, 1);
}

UNIT_TEST_WITH(the_sum_of_each_stack_is_that_of_all_steps, set_up, tear_down)
{
	enum { N = 5, STEPS = 4 };
	const struct seam_samples *s;

	executed(10, "one", 100);
	mapped(10, 0x5000, 0x1000, "/none/first", 110);
	/* place i has i + 1 samples a step, and all but the last all steps */
	for (uint64_t k = 0; k < STEPS; k++) {
		for (uint64_t n = 0; n < N; n++)
			for (uint64_t i = n; i < N - !k; i++)
				sampled(10, 0x5000 + 16 * i, 200 + k);
		step();
	}
	seam_live_select(live, true);
	s = &seam_live_profile(live)->samples;
	assert_int_equal(s->n, N);
	for (size_t i = 0; i < N; i++) {
		uint64_t n = (i + 1) * (i < N - 1 ? STEPS : STEPS - 1);

		assert_int_equal(seam_samples_count(s, i), n);
		assert_int_equal(seam_samples_weight(s, i), 1000 * n);
	}
}

UNIT_TEST_WITH(an_address_is_what_was_mapped_at_the_time, set_up, tear_down)
{
	executed(10, "one", 100);
	sampled(10, 0x5100, 190);
	mapped(10, 0x5000, 0x1000, "/none/first", 150);
	mapped(10, 0x5000, 0x1000, "/none/second", 200);
	sampled(10, 0x5100, 210);
	executed(10, "two", 300);
	sampled(10, 0x5100, 310);
	assert_int_equal(step(), 3);
	assert_string_equal(leaf(0), "[first+0x100]");
	assert_string_equal(leaf(1), "[second+0x100]");
	assert_string_equal(leaf(2), "[unknown]");
}

UNIT_TEST_WITH(a_fork_has_the_maps_of_its_parent, set_up, tear_down)
{
	executed(10, "one", 100);
	mapped(10, 0x5000, 0x1000, "/none/first", 150);
	of_task(PERF_RECORD_FORK, 11, 10, 200);
	mapped(10, 0x5000, 0x1000, "/none/second", 210);
	sampled(11, 0x5100, 220);
	assert_int_equal(step(), 1);
	assert_string_equal(leaf(0), "[first+0x100]");
	assert_string_equal(seam_profile_text(seam_live_profile(live),
		seam_live_profile(live)->threads.items[
		seam_live_profile(live)->samples.thread[0]].name), "one");
}

UNIT_TEST_WITH(what_is_left_of_a_mapping_keeps_its_offsets, set_up, tear_down)
{
	executed(10, "one", 100);
	mapped(10, 0x5000, 0x3000, "/none/first", 150);
	mapped(10, 0x6000, 0x1000, "/none/second", 160);
	sampled(10, 0x5fff, 200);
	sampled(10, 0x6000, 201);
	sampled(10, 0x7000, 202);
	sampled(10, 0x8000, 203);
	assert_int_equal(step(), 4);
	assert_string_equal(leaf(0), "[first+0xfff]");
	assert_string_equal(leaf(1), "[second+0x0]");
	assert_string_equal(leaf(2), "[first+0x2000]");
	assert_string_equal(leaf(3), "[unknown]");
}

UNIT_TEST_WITH(own_processes_are_left_out_until_they_execute, set_up,
	       tear_down)
{
	assert_int_equal(seam_live_exclude(live, 10), 0);
	sampled(10, 0x1000, 100);
	of_task(PERF_RECORD_FORK, 11, 10, 110);
	sampled(11, 0x1000, 120);
	executed(11, "command", 130);
	sampled(11, 0x1000, 140);
	assert_int_equal(step(), 1);
}

UNIT_TEST_WITH(an_ended_process_keeps_no_maps, set_up, tear_down)
{
	executed(10, "one", 100);
	mapped(10, 0x5000, 0x1000, "/none/first", 150);
	of_task(PERF_RECORD_EXIT, 10, 1, 200);
	step();
	/* a sample that had to wait for its file */
	sampled(10, 0x5100, 190);
	step();
	step();
	for (size_t i = 0; i < live->processes.n; i++)
		assert_int_equal(live->processes.items[i].maps.vmas.n, 0);
	/* another one with the pid */
	executed(10, "two", 300);
	sampled(10, 0x5100, 310);
	assert_int_equal(step(), 1);
	assert_string_equal(leaf(0), "[unknown]");
}

UNIT_TEST_WITH(stacks_beyond_the_limit_are_one_function, set_up, tear_down)
{
	executed(10, "one", 100);
	for (uint64_t i = 0; i < SEAM_LIVE_MAX_CHAINS + 100; i++)
		sampled(10, 0x100000 + 16 * i, 200 + i);
	assert_int_equal(step(), SEAM_LIVE_MAX_CHAINS + 100);
	assert_int_equal(seam_live_n_other(live), 100);
	assert_string_equal(leaf(SEAM_LIVE_MAX_CHAINS + 99), "[other]");
	/* the next step has room again */
	sampled(10, 0x9, 300000);
	assert_int_equal(step(), 1);
	assert_string_equal(leaf(0), "[unknown]");
}

UNIT_TEST_WITH(many_processes_take_bounded_memory, set_up, tear_down)
{
	enum { N = SEAM_LIVE_MAX_THREADS / 1000 * 1200 };

	for (int i = 0; i < N; i++) {
		uint64_t ns = 1000 + 10 * (uint64_t)i;
		int pid = 2 + i % 30000;

		of_task(PERF_RECORD_FORK, pid, 1, ns);
		executed(pid, "short", ns + 1);
		sampled(pid, 0x1000, ns + 2);
		of_task(PERF_RECORD_EXIT, pid, 1, ns + 3);
		if (i % 1000 == 999)
			assert_int_equal(step(), 1000);
	}
	assert_true(live->profile.threads.n <= SEAM_LIVE_MAX_THREADS);
	/* a new one has a name and rows of its own */
	executed(99999, "new", 100000000);
	sampled(99999, 0x1000, 100000001);
	assert_int_equal(step(), 1);
	assert_string_equal(seam_profile_text(&live->profile,
		live->profile.threads.items[live->profile.samples.thread[0]]
		.name), "new");
}

static void switched(int pid, uint16_t misc, uint64_t ns)
{
	take_fields(PERF_RECORD_SWITCH, misc, NULL, pid, ns);
}

/* The times of the thread of sample @i. */
static struct seam_thread_time times_of(size_t i)
{
	const struct seam_profile *p = seam_live_profile(live);

	assert_true(p->samples.thread[i] < p->thread_times.n);
	return p->thread_times.items[p->samples.thread[i]];
}

/* Event @event has waits of @ns in the samples of the profile. */
static uint64_t waited(uint16_t event)
{
	const struct seam_samples *s = &seam_live_profile(live)->samples;
	uint64_t ns = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->event[i] == event)
			ns += seam_samples_weight(s, i);
	return ns;
}

UNIT_TEST_WITH(a_wait_counts_in_each_step_with_its_part, set_up, tear_down)
{
	const struct seam_live_event event = { "seam:switches", attr };
	const uint16_t out = PERF_RECORD_MISC_SWITCH_OUT;

	assert_int_equal(seam_live_add_event(live, &event), 0);
	switched(8, 0, 100);
	switched(8, out, 130);
	sampled(8, 0x1000, 120);
	assert_int_equal(seam_live_step(live, 200), 0);
	assert_int_equal(waited(1), 70);
	assert_int_equal(times_of(0).running_ns, 30);
	assert_int_equal(times_of(0).blocked_ns, 70);
	/* the wait goes on, and ends; then the thread is preempted */
	switched(8, 0, 250);
	switched(8, out | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, 260);
	assert_int_equal(seam_live_step(live, 300), 0);
	assert_int_equal(waited(1), 50);
	assert_int_equal(waited(2), 40);
	assert_int_equal(times_of(0).running_ns, 10);
	of_task(PERF_RECORD_EXIT, 8, 8, 330);
	assert_int_equal(seam_live_step(live, 400), 0);
	assert_int_equal(waited(2), 30);
	seam_live_select(live, true);
	assert_int_equal(waited(1), 120);
	assert_int_equal(waited(2), 70);
	assert_int_equal(times_of(0).running_ns, 40);
	/* a sample that counts nothing has given the thread its rows */
	assert_int_equal(waited(0), 1000);
}

/* Before its switch, or read while it waits; not that of the wait before. */
UNIT_TEST_WITH(a_wait_has_the_stack_of_its_time, set_up, tear_down)
{
	const struct seam_live_event events[] = {
		{ "seam:switch_stack", attr }, { "seam:switches", attr },
	};
	const uint16_t out = PERF_RECORD_MISC_SWITCH_OUT;
	static const char *const leaves[] = {
		"[one+0x10]", "[stack not recorded]", "[one+0x20]",
	};
	const struct seam_samples *s = &seam_live_profile(live)->samples;
	size_t n = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(events); i++)
		assert_int_equal(seam_live_add_event(live, &events[i]), 0);
	assert_int_equal(seam_live_add_id(live, 9, 1), 0);
	mapped(8, 0x1000, 0x1000, "/one", 90);
	switched(8, 0, 100);
	sampled_of(9, 8, 0x1010, 119);
	switched(8, out, 120);
	switched(8, 0, 140);
	switched(8, out, 150);
	switched(8, 0, 160);
	switched(8, out, 170);
	sampled_of(9, 8, 0x1020, 175);
	switched(8, 0, 180);
	assert_int_equal(seam_live_step(live, 200), 0);
	for (size_t i = 0; i < s->n; i++) {
		if (s->event[i] != 1)
			continue;
		assert_true(n < SEAM_ARRAY_SIZE(leaves));
		assert_string_equal(leaf(i), leaves[n++]);
	}
	assert_int_equal(n, SEAM_ARRAY_SIZE(leaves));
}

UNIT_TEST_WITH(a_short_wait_is_none_and_a_long_one_counts_whole, set_up,
	       tear_down)
{
	const struct seam_live_event event = { "seam:switches", attr };
	const uint16_t out = PERF_RECORD_MISC_SWITCH_OUT;

	assert_int_equal(seam_live_add_event(live, &event), 0);
	seam_live_set_min_wait(live, 50);
	switched(8, 0, 100);
	switched(8, out, 130);
	switched(8, 0, 179);
	switched(8, out, 180);
	assert_int_equal(seam_live_step(live, 200), 0);
	/* one of 49, and one that goes on with 20 */
	assert_int_equal(waited(1), 0);
	assert_int_equal(seam_live_step(live, 240), 0);
	assert_int_equal(waited(1), 60);
	switched(8, 0, 250);
	assert_int_equal(seam_live_step(live, 300), 0);
	assert_int_equal(waited(1), 10);
}

static void renew(void)
{
	const struct seam_symbols_options options = { .no_lines = true };
	const struct seam_kernel kernel = { .boot_id = "none" };
	struct seam_live *next = seam_live_renewed(live, &options, &kernel);

	assert_non_null(next);
	seam_live_free(live);
	live = next;
}

UNIT_TEST_WITH(a_renewed_profile_goes_on_with_what_runs_and_no_more, set_up,
	       tear_down)
{
	const struct seam_live_event event = { "seam:switches", attr };
	const struct seam_profile *p;

	assert_int_equal(seam_live_add_event(live, &event), 0);
	assert_int_equal(seam_live_exclude(live, 12), 0);
	executed(10, "one", 100);
	mapped(10, 0x5000, 0x3000, "/none/first", 110);
	mapped(10, 0x6000, 0x1000, "/none/second", 120);
	of_task(PERF_RECORD_FORK, 11, 10, 130);
	executed(13, "gone", 140);
	of_task(PERF_RECORD_EXIT, 13, 1, 150);
	sampled(10, 0x5100, 160);
	sampled(12, 0x5100, 160);
	switched(10, PERF_RECORD_MISC_SWITCH_OUT, 170);
	assert_int_equal(seam_live_step(live, 200), 0);
	assert_int_equal(waited(1), 30);
	renew();
	p = seam_live_profile(live);
	/* "[other]", 10, 11, 12 */
	assert_int_equal(p->processes.n, 4);
	assert_int_equal(p->samples.n, 0);
	/* maps, also what is left of them; a wait that goes on */
	sampled(10, 0x5100, 210);
	sampled(11, 0x6100, 220);
	sampled(10, 0x7100, 230);
	sampled(12, 0x5100, 240);
	assert_int_equal(seam_live_step(live, 300), 0);
	assert_string_equal(leaf(0), "[first+0x100]");
	assert_string_equal(leaf(1), "[second+0x100]");
	assert_string_equal(leaf(2), "[first+0x2100]");
	assert_string_equal(seam_profile_text(p, p->threads.items[
			p->samples.thread[1]].name), "one");
	assert_int_equal(waited(0), 3000);
	assert_int_equal(waited(1), 100);
	/* threads end as before */
	of_task(PERF_RECORD_EXIT, 10, 1, 310);
	executed(10, "two", 320);
	sampled(10, 0x5100, 330);
	assert_int_equal(seam_live_step(live, 400), 0);
	assert_string_equal(leaf(0), "[unknown]");
}

UNIT_TEST_WITH(forgotten_files_and_no_sum_change_no_step, set_up, tear_down)
{
	seam_live_without_sum(live);
	executed(10, "one", 100);
	mapped(10, 0x5000, 0x1000, "/none/first", 110);
	for (uint64_t i = 0; i < 20; i++) {
		sampled(10, 0x5000 + i, 200 + i);
		assert_int_equal(step(), 1);
		seam_live_forget_files(live);
	}
	assert_string_equal(leaf(0), "[first+0x13]");
	seam_live_select(live, true);
	assert_int_equal(seam_live_profile(live)->samples.n, 0);
}

UNIT_TEST_WITH(damaged_records_are_counted, set_up, tear_down)
{
	struct {
		struct seam_perf_header header;
		uint64_t words[4];
	} record = { { PERF_RECORD_SAMPLE, 0, sizeof(record) }, { 7 } };

	take(&record, sizeof(record));
	take(&record, 20);
	record.header.type = PERF_RECORD_MMAP2;
	take(&record, sizeof(record));
	record.header.size = 3;
	take(&record, sizeof(record));
	assert_int_equal(step(), 0);
	assert_int_equal(seam_live_n_damaged(live), 4);
}

/* ---- maps, beside one byte a page ---- */

UNIT_TEST(maps_are_those_of_an_array)
{
	enum { N_PAGES = 64, N_STEPS = 4000 };
	struct seam_live_maps maps = { .n_changes = 0 };
	int truth[N_PAGES];

	srand(1);
	memset(truth, -1, sizeof(truth));
	for (int i = 0; i < N_STEPS; i++) {
		int begin = rand() % N_PAGES;
		int end = begin + 1 + rand() % (N_PAGES - begin);
		const struct seam_vma vma = {
			.begin = (uint64_t)begin, .end = (uint64_t)end,
			.mapping = (uint32_t)i,
		};

		assert_int_equal(seam_live_maps_add(&maps, &vma), 0);
		for (int k = begin; k < end; k++)
			truth[k] = i;
		for (uint64_t k = 0; k < N_PAGES; k++) {
			size_t at = seam_live_maps_at(&maps, k);
			bool is_in = at < maps.vmas.n &&
				     maps.vmas.items[at].begin <= k;

			assert_int_equal(is_in ?
				(int)maps.vmas.items[at].mapping : -1,
				truth[k]);
		}
	}
	seam_live_maps_clear(&maps);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
