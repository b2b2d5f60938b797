/* SPDX-License-Identifier: MIT */
/* test_off_cpu.c - waits as samples, of switches and stacks that are made up */
#include "model/perf/off_cpu.h"
#include "built.h"
#include "unit.h"
#include "wire/perf/wait_events.h"

enum { TID = 7, MS = 1000000, SWITCH_STACK = 1, BLOCKED_STACK = 2 };

static const char *const names[] = {
	"cpu-clock", SEAM_SWITCH_STACK_EVENT, SEAM_BLOCKED_STACK_EVENT,
	SEAM_SWITCH_EVENT,
};

static struct made {
	struct seam_profile profile;
	struct seam_perf_event events[SEAM_ARRAY_SIZE(names)];
	struct seam_perf_data data;
	struct seam_perf_scan scans[2];
	struct seam_tasks tasks;
	uint32_t key;
	uint64_t begin_ns;
} m;

static int set_up(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	m.profile = built();
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		m.events[i].name = (char *)(uintptr_t)names[i];
		built_event(&m.profile, names[i]);
		m.profile.events.items[i].n_samples = 0;
	}
	m.data.events.items = m.events;
	m.data.events.n = SEAM_ARRAY_SIZE(names);
	m.key = seam_tasks_key(&m.tasks, TID, TID);
	m.tasks.changes.n = 0;
	assert_int_equal(seam_tasks_seal(&m.tasks, &m.profile), 0);
	m.profile.threads.items[0].name = built_string(&m.profile, "app");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(m.scans); i++)
		seam_perf_scan_fini(&m.scans[i]);
	seam_tasks_fini(&m.tasks);
	seam_profile_fini(&m.profile);
	return 0;
}

/* A sample of the thread. */
static void sample(uint64_t time_ns, uint16_t event, const char *stack)
{
	struct seam_samples *s = &m.profile.samples;

	assert_true(seam_samples_reserve(s, 1));
	s->time_ns[s->n] = time_ns;
	s->thread[s->n] = 0;
	s->stack[s->n] = built_stack(&m.profile, stack);
	s->cpu[s->n] = 0;
	s->event[s->n] = event;
	assert_true(seam_samples_set_weight(s, s->n, 1000 + s->n));
	assert_true(seam_samples_set_end(s, s->n, SEAM_STACK_COMPLETE));
	m.profile.events.items[event].n_samples++;
	s->n++;
}

static void on(size_t scan, uint64_t time_ns, enum seam_switch_kind kind)
{
	assert_true(SEAM_ARRAY_ADD(&m.scans[scan].switches.items,
				   (struct seam_switch) {
		.time_ns = time_ns, .thread = m.key, .kind = (uint8_t)kind }));
}

static void add(uint64_t end_ns)
{
	assert_int_equal(seam_off_cpu_add(&m.profile, &(struct seam_off_cpu) {
		.scans = m.scans, .n_scans = 2, .data = &m.data,
		.tasks = &m.tasks, .begin_ns = m.begin_ns, .end_ns = end_ns }), 0);
}

/* The stack of sample @i, leaf last, as it was built. */
static const char *stack_of(size_t i)
{
	static char text[512];
	uint32_t stack = m.profile.samples.stack[i];
	size_t at = sizeof(text) - 1;

	text[at] = '\0';
	for (; stack; stack = m.profile.stacks.items[stack].parent) {
		const char *name = seam_profile_text(&m.profile,
				seam_profile_leaf(&m.profile, stack)->name);

		if (text[at])
			text[--at] = ';';
		at -= strlen(name);
		memcpy(text + at, name, strlen(name));
	}
	return text + at;
}

static const char *reason_of(size_t i)
{
	return seam_profile_text(&m.profile,
				 seam_samples_wait(&m.profile.samples, i));
}

static const char *event_of(size_t i)
{
	return seam_profile_text(&m.profile, m.profile.events.items[
				 m.profile.samples.event[i]].name);
}

UNIT_TEST(a_wait_has_the_stack_with_which_its_thread_lost_the_cpu)
{
	const struct seam_samples *s = &m.profile.samples;

	on(0, 10 * MS, SEAM_SWITCH_IN);
	sample(11 * MS, SWITCH_STACK, "main;a;do_nap.isra.0_[k];schedule_[k]");
	on(0, 11 * MS + 5, SEAM_SWITCH_OUT);
	on(1, 20 * MS, SEAM_SWITCH_IN);
	/* a stack of its own was not recorded: the one before is not its */
	on(1, 21 * MS, SEAM_SWITCH_OUT);
	on(0, 30 * MS, SEAM_SWITCH_IN);
	sample(31 * MS, SWITCH_STACK, "main;b;__cond_resched_[k]");
	on(0, 31 * MS + 5, SEAM_SWITCH_OUT_RUNNABLE);
	on(0, 40 * MS, SEAM_SWITCH_IN);
	add(50 * MS);
	assert_int_equal(s->n, 3);
	assert_string_equal(stack_of(0), "main;a;do_nap.isra.0;schedule");
	assert_string_equal(event_of(0), "off-cpu");
	assert_string_equal(reason_of(0), "do_nap");
	assert_int_equal(s->time_ns[0], 11 * MS + 5);
	assert_int_equal(seam_samples_weight(s, 0), 9 * MS - 5);
	assert_int_equal(s->end[0], SEAM_STACK_COMPLETE);
	assert_string_equal(stack_of(1), "[stack not recorded]");
	assert_string_equal(reason_of(1), "");
	assert_int_equal(s->end[1], SEAM_STACK_UNREPORTED);
	assert_string_equal(stack_of(2), "main;b;__cond_resched");
	assert_string_equal(event_of(2), "preempted");
	assert_string_equal(reason_of(2), "");
	assert_int_equal(m.profile.events.items[SWITCH_STACK].n_samples, 0);
}

UNIT_TEST(a_stack_that_was_read_is_that_of_the_wait_it_lies_in)
{
	const struct seam_wait_counts *counts;

	on(0, 10 * MS, SEAM_SWITCH_IN);
	on(0, 11 * MS, SEAM_SWITCH_OUT);
	sample(12 * MS, BLOCKED_STACK, "main;a");
	on(0, 20 * MS, SEAM_SWITCH_IN);
	/* raced: the thread ran already */
	sample(20 * MS + 1, BLOCKED_STACK, "main;no");
	on(0, 21 * MS, SEAM_SWITCH_OUT);
	on(0, 30 * MS, SEAM_SWITCH_IN);
	/* what was recorded is better than what was read */
	sample(31 * MS, SWITCH_STACK, "main;b;nap_[k];schedule_[k]");
	on(0, 31 * MS + 1, SEAM_SWITCH_OUT);
	sample(32 * MS, BLOCKED_STACK, "main;b");
	on(0, 40 * MS, SEAM_SWITCH_IN);
	add(50 * MS);
	assert_int_equal(m.profile.samples.n, 3);
	assert_string_equal(stack_of(0), "main;a;[read while it waited]");
	/* a sample weighs 1000 and its position here */
	assert_string_equal(reason_of(0), "[system call 1000]");
	assert_string_equal(stack_of(1), "[stack not recorded]");
	assert_string_equal(stack_of(2), "main;b;nap;schedule");
	counts = &m.profile.events.items[m.profile.samples.event[0]].waits;
	assert_int_equal(counts->ns[SEAM_WAIT_STACK_READ], 9 * MS);
	assert_int_equal(counts->ns[SEAM_WAIT_STACK_UNKNOWN], 9 * MS);
	assert_int_equal(counts->ns[SEAM_WAIT_STACK_RECORDED], 9 * MS - 1);
}

UNIT_TEST(a_wait_from_before_the_recording_has_the_stack_that_was_read)
{
	const struct seam_samples *s = &m.profile.samples;
	const struct seam_wait_counts *counts;

	m.begin_ns = 10 * MS;
	sample(12 * MS, BLOCKED_STACK, "main;a");
	on(0, 20 * MS, SEAM_SWITCH_IN);
	add(30 * MS);
	assert_int_equal(s->n, 1);
	assert_string_equal(stack_of(0), "main;a;[read while it waited]");
	assert_int_equal(s->time_ns[0], 10 * MS);
	assert_int_equal(seam_samples_weight(s, 0), 10 * MS);
	assert_int_equal(m.profile.start_ns, 10 * MS);
	assert_int_equal(m.profile.thread_times.items[0].running_ns, 10 * MS);
	counts = &m.profile.events.items[s->event[0]].waits;
	assert_int_equal(counts->n_open, 1);
}

UNIT_TEST(a_wait_that_was_only_seen_has_no_stack)
{
	struct seam_samples *s = &m.profile.samples;

	m.begin_ns = 10 * MS;
	sample(12 * MS, BLOCKED_STACK, "x");
	assert_true(seam_samples_set_weight(s, 0, SEAM_BLOCKED_NOT_READ));
	add(30 * MS);
	assert_int_equal(s->n, 1);
	assert_string_equal(stack_of(0), "[stack not recorded]");
	assert_string_equal(reason_of(0), "");
	assert_int_equal(seam_samples_weight(s, 0), 20 * MS);
}

UNIT_TEST(other_samples_stay_as_they_are)
{
	const struct seam_samples *s = &m.profile.samples;

	on(0, 10 * MS, SEAM_SWITCH_IN);
	sample(10 * MS + 1, SWITCH_STACK, "x");
	sample(10 * MS + 2, 0, "main;one");
	sample(11 * MS, SWITCH_STACK, "y");
	on(0, 11 * MS, SEAM_SWITCH_OUT);
	on(0, 20 * MS, SEAM_SWITCH_IN);
	sample(20 * MS + 3, 0, "main;two");
	add(20 * MS + 4);
	assert_int_equal(s->n, 3);
	assert_string_equal(stack_of(0), "main;one");
	assert_string_equal(stack_of(1), "main;two");
	assert_int_equal(s->time_ns[1], 20 * MS + 3);
	/* each had its position as its weight */
	assert_int_equal(seam_samples_weight(s, 0), 1001);
	assert_int_equal(seam_samples_weight(s, 1), 1003);
	assert_int_equal(seam_samples_running(s, 1), 1);
	assert_int_equal(s->end[1], SEAM_STACK_COMPLETE);
	assert_string_equal(stack_of(2), "y");
	assert_int_equal(seam_samples_running(s, 2), 0);
}

UNIT_TEST(short_waits_are_added_up_by_the_time_they_begin_in)
{
	const struct seam_samples *s = &m.profile.samples;

	on(0, 10 * MS, SEAM_SWITCH_IN);
	for (uint64_t t = 11 * MS; t < 25 * MS; t += MS) {
		on(0, t, SEAM_SWITCH_OUT);
		on(0, t + 1000, SEAM_SWITCH_IN);
	}
	on(0, 26 * MS, SEAM_SWITCH_OUT);
	/* short, but it lasted until the end: nobody knows how long it is */
	add(26 * MS + 7);
	assert_int_equal(s->n, 3);
	assert_int_equal(seam_samples_count(s, 0) + seam_samples_count(s, 2),
			 14);
	for (size_t i = 0; i < 3; i += 2) {
		assert_string_equal(stack_of(i), "[waits shorter than 1ms]");
		assert_string_equal(reason_of(i), "[waits shorter than 1ms]");
		assert_int_equal(seam_samples_weight(s, i),
				 1000 * seam_samples_count(s, i));
	}
	assert_int_equal(seam_samples_count(s, 0), 9);
	assert_int_equal(s->time_ns[2], 20 * MS);
	assert_string_equal(stack_of(1), "[stack not recorded]");
	assert_int_equal(m.profile.end_ns, 26 * MS + 7);
}

UNIT_TEST(a_wait_has_its_last_waker)
{
	const struct seam_samples *s = &m.profile.samples;

	on(0, 10 * MS, SEAM_SWITCH_IN);
	on(0, 11 * MS, SEAM_SWITCH_OUT);
	on(0, 20 * MS, SEAM_SWITCH_IN);
	on(0, 21 * MS, SEAM_SWITCH_OUT);
	on(0, 30 * MS, SEAM_SWITCH_IN);
	on(0, 31 * MS, SEAM_SWITCH_OUT);
	on(0, 40 * MS, SEAM_SWITCH_IN);
	for (uint64_t t = 12 * MS; t <= 19 * MS; t += 7 * MS)
		assert_true(SEAM_ARRAY_ADD(&m.scans[1].wakings,
					   (struct seam_waking) {
			.time_ns = t, .tid = TID,
			.by = t == 12 * MS ? SEAM_NONE : m.key }));
	assert_true(SEAM_ARRAY_ADD(&m.scans[0].wakings, (struct seam_waking) {
		.time_ns = 22 * MS, .tid = TID, .by = SEAM_NONE }));
	/* while the thread was on its way out */
	assert_true(SEAM_ARRAY_ADD(&m.scans[0].wakings, (struct seam_waking) {
		.time_ns = 41 * MS - 1, .tid = TID, .by = SEAM_NONE }));
	on(0, 41 * MS, SEAM_SWITCH_OUT);
	on(0, 50 * MS, SEAM_SWITCH_IN);
	/* of another thread */
	assert_true(SEAM_ARRAY_ADD(&m.scans[0].wakings, (struct seam_waking) {
		.time_ns = 32 * MS, .tid = TID + 1, .by = m.key }));
	add(50 * MS);
	assert_int_equal(s->n, 4);
	assert_string_equal(seam_profile_text(&m.profile,
				seam_samples_waker(s, 0)), "app");
	assert_string_equal(seam_profile_text(&m.profile,
				seam_samples_waker(s, 1)), "[interrupt]");
	assert_int_equal(seam_samples_waker(s, 2), 0);
	assert_string_equal(seam_profile_text(&m.profile,
				seam_samples_waker(s, 3)), "[interrupt]");
}

UNIT_TEST(nothing_changes_without_switches)
{
	sample(10 * MS, SWITCH_STACK, "x");
	m.data.events.n--;
	add(20 * MS);
	assert_int_equal(m.profile.samples.n, 1);
	assert_int_equal(m.profile.events.n, SEAM_ARRAY_SIZE(names));
	assert_int_equal(m.profile.thread_times.n, 0);
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
