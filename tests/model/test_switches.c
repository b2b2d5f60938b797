/* SPDX-License-Identifier: MIT */
/* test_switches.c - what threads did, of records that are made up */
#include "model/perf/switches.h"
#include "unit.h"

enum { IN, OUT, RUNNABLE, SEEN = SEAM_SWITCH_SEEN, LOST = SEAM_SWITCH_LOST, BEGIN = 1000, END = 9000 };

/* A thread that lives from 0 to the end, unless a test says otherwise. */
static struct made {
	struct seam_profile profile;
	struct seam_switches switches;
	struct seam_waits waits;
} m;

static int set_up(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	return seam_profile_init(&m.profile);
}

static int tear_down(void **state)
{
	(void)state;
	seam_profile_fini(&m.profile);
	free(m.switches.items.items);
	free(m.waits.items.items);
	return 0;
}

static uint32_t thread(uint64_t start_ns, uint64_t end_ns)
{
	assert_true(SEAM_ARRAY_ADD(&m.profile.threads, (struct seam_thread) {
		.tid = 1, .start_ns = start_ns, .end_ns = end_ns }));
	return (uint32_t)m.profile.threads.n - 1;
}

static void add(uint64_t time_ns, uint32_t t, uint16_t cpu, uint8_t kind)
{
	assert_true(SEAM_ARRAY_ADD(&m.switches.items, (struct seam_switch) {
		.time_ns = time_ns, .thread = t, .cpu = cpu, .kind = kind }));
}

static void replay(void)
{
	assert_int_equal(seam_switches_replay(&m.switches, &m.profile, BEGIN,
					      END, &m.waits), 0);
}

static void times_are(uint32_t t, uint64_t running, uint64_t blocked,
		      uint64_t preempted, uint64_t unknown)
{
	const struct seam_thread_time *time = &m.profile.thread_times.items[t];

	assert_int_equal(time->running_ns, running);
	assert_int_equal(time->blocked_ns, blocked);
	assert_int_equal(time->preempted_ns, preempted);
	assert_int_equal(time->unknown_ns, unknown);
}

static void wait_is(size_t i, uint64_t from_ns, uint64_t to_ns,
		    bool is_preempted)
{
	assert_true(i < m.waits.items.n);
	assert_int_equal(m.waits.items.items[i].from_ns, from_ns);
	assert_int_equal(m.waits.items.items[i].to_ns, to_ns);
	assert_int_equal(m.waits.items.items[i].is_preempted, is_preempted);
}

UNIT_TEST(tells_running_blocked_and_preempted)
{
	uint32_t t = thread(0, 5000);

	add(2000, t, 0, IN);
	add(2100, t, 0, OUT);
	add(2400, t, 0, IN);
	add(2500, t, 0, RUNNABLE);
	add(2900, t, 0, IN);
	replay();
	times_are(t, 100 + 100 + 2100, 300, 400, 0);
	assert_int_equal(m.waits.items.n, 2);
	wait_is(0, 2100, 2400, false);
	wait_is(1, 2500, 2900, true);
	assert_int_equal(m.waits.items.items[0].ran_ns, 2000);
	assert_int_equal(m.waits.items.items[1].ran_ns, 2400);
}

/* Each ring is in order; the file has them one after the other. */
UNIT_TEST(follows_a_thread_from_ring_to_ring)
{
	uint32_t t = thread(0, 5000);

	add(2100, t, 0, OUT);
	add(3100, t, 0, OUT);
	add(2000, t, 1, IN);
	add(3000, t, 1, IN);
	add(4000, t, 1, IN);
	replay();
	times_are(t, 100 + 100 + 1000, 900 + 900, 0, 0);
	wait_is(0, 2100, 3000, false);
	wait_is(1, 3100, 4000, false);
	assert_int_equal(m.waits.items.items[0].cpu, 0);
}

UNIT_TEST(does_not_mix_threads_of_one_ring)
{
	uint32_t a = thread(0, UINT64_MAX), b = thread(0, UINT64_MAX);

	add(2000, a, 0, IN);
	add(2100, a, 0, OUT);
	add(2110, b, 0, IN);
	add(2200, b, 0, RUNNABLE);
	add(2210, a, 0, IN);
	add(2300, a, 0, OUT);
	add(2310, b, 0, IN);
	replay();
	times_are(a, 100 + 90, 110 + (END - 2300), 0, 0);
	times_are(b, 90 + (END - 2310), 0, 110, 0);
}

/* The command runs when it is enabled: no "in" comes first. */
UNIT_TEST(a_first_out_ran_since_the_recording_began)
{
	uint32_t t = thread(0, UINT64_MAX), later = thread(1500, UINT64_MAX);

	add(2000, t, 0, OUT);
	add(2500, later, 0, OUT);
	replay();
	times_are(t, 2000 - BEGIN, END - 2000, 0, 0);
	times_are(later, 1000, END - 2500, 0, 0);
}

/* A new thread, or one that was blocked before: its wait is not invented. */
UNIT_TEST(invents_no_wait_before_a_first_in)
{
	uint32_t t = thread(1200, 3000);

	add(2000, t, 0, IN);
	replay();
	times_are(t, 1000, 0, 0, 0);
	assert_int_equal(m.waits.items.n, 0);
}

/* What was attached to, and waited before. */
UNIT_TEST(a_thread_that_was_seen_to_wait_did_from_the_begin_on)
{
	uint32_t always = thread(0, UINT64_MAX), woken = thread(0, UINT64_MAX);
	uint32_t ended = thread(0, 4000), ran = thread(0, UINT64_MAX);

	add(1500, always, 0, SEEN);
	add(1500, woken, 0, SEEN);
	add(1500, ended, 0, SEEN);
	add(1400, ran, 0, IN);
	add(1500, ran, 0, SEEN);
	add(2000, woken, 0, IN);
	add(2100, woken, 0, OUT);
	add(2300, woken, 0, IN);
	replay();
	times_are(always, 0, END - BEGIN, 0, 0);
	times_are(woken, 100 + END - 2300, 1000 + 200, 0, 0);
	times_are(ended, 0, 3000, 0, 0);
	times_are(ran, END - 1400, 0, 0, 0);
	assert_int_equal(m.waits.items.n, 4);
	wait_is(0, BEGIN, 2000, false);
	assert_true(m.waits.items.items[0].is_open);
	wait_is(1, 2100, 2300, false);
	assert_false(m.waits.items.items[1].is_open);
}

/* The kernel does not report the last "out" of a thread. */
UNIT_TEST(an_exit_ends_what_a_thread_did)
{
	uint32_t t = thread(0, 3000), killed = thread(0, 4000);
	uint32_t early = thread(0, 1500);

	add(2000, t, 0, IN);
	add(2000, killed, 1, OUT);
	/* after its end, by an event of a whole CPU */
	add(3010, t, 0, OUT);
	add(3500, t, 0, IN);
	add(3500, early, 0, IN);
	replay();
	times_are(early, 0, 0, 0, 0);
	times_are(t, 1000, 0, 0, 0);
	times_are(killed, 1000, 2000, 0, 0);
	assert_int_equal(m.waits.items.n, 1);
	assert_false(m.waits.items.items[0].is_open);
}

UNIT_TEST(a_wait_lasts_at_most_until_the_recording_ends)
{
	uint32_t t = thread(0, UINT64_MAX);

	add(2000, t, 0, RUNNABLE);
	replay();
	times_are(t, 1000, 0, END - 2000, 0);
	assert_int_equal(m.waits.items.n, 1);
	wait_is(0, 2000, END, true);
	assert_true(m.waits.items.items[0].is_open);
}

UNIT_TEST(after_two_outs_the_time_to_the_next_in_is_not_known)
{
	uint32_t t = thread(0, 5000);

	add(2000, t, 0, IN);
	add(2100, t, 0, OUT);
	add(2500, t, 0, RUNNABLE);
	add(3000, t, 0, IN);
	add(3100, t, 0, OUT);
	add(3300, t, 0, IN);
	replay();
	times_are(t, 100 + 100 + 1700, 200, 0, 900);
	assert_int_equal(m.waits.items.n, 1);
	wait_is(0, 3100, 3300, false);
}

UNIT_TEST(between_two_ins_nothing_is_known)
{
	uint32_t t = thread(0, 5000);

	add(2000, t, 0, IN);
	add(2600, t, 1, IN);
	add(2700, t, 1, OUT);
	add(2900, t, 1, IN);
	replay();
	times_are(t, 100 + 2100, 200, 0, 600);
	assert_int_equal(m.waits.items.n, 1);
}

/*
 * Ring 0 lost records between 2300 and 2600: thread a may have run in its wait,
 * thread b may have waited; c did all it did before and after.
 */
UNIT_TEST(while_records_of_any_ring_are_lost_nothing_is_known)
{
	uint32_t a = thread(0, 5000), b = thread(0, 5000), c = thread(0, 5000);

	add(2000, a, 1, IN);
	add(2000, b, 2, IN);
	add(2000, c, 0, IN);
	add(2100, a, 1, OUT);
	add(2200, c, 0, OUT);
	add(2300, c, 0, IN);
	add(2600, SEAM_NONE, 0, LOST);
	add(2600, c, 0, OUT);
	add(2700, c, 0, IN);
	add(2800, a, 1, IN);
	add(3000, b, 2, OUT);
	add(3100, b, 2, IN);
	replay();
	times_are(a, 100 + 2200, 0, 0, 700);
	times_are(b, 1900, 100, 0, 1000);
	times_are(c, 200 + 2300, 200, 0, 300);
	assert_int_equal(m.waits.items.n, 3);
}

UNIT_TEST(a_loss_at_the_begin_of_a_ring_counts_from_the_recordings)
{
	uint32_t t = thread(0, 5000);

	add(1500, t, 1, OUT);
	add(1600, SEAM_NONE, 0, LOST);
	add(1700, t, 1, IN);
	replay();
	times_are(t, 3300, 0, 0, 700);
}

UNIT_TEST(counts_the_threads_that_run)
{
	uint32_t a = thread(0, 5000), b = thread(0, UINT64_MAX);

	add(2000, a, 0, IN);
	add(3000, b, 1, OUT);
	add(4000, b, 1, IN);
	replay();
	/* b ran from the start: its first record is an "out" */
	assert_int_equal(seam_switches_running(&m.switches, 2500), 2);
	assert_int_equal(seam_switches_running(&m.switches, 3500), 1);
	assert_int_equal(seam_switches_running(&m.switches, 4500), 2);
	assert_int_equal(seam_switches_running(&m.switches, 5500), 1);
}

/* Each ns of a life is in one of the four, whatever the records are. */
UNIT_TEST(the_times_of_a_thread_are_its_life)
{
	uint64_t random = 88172645463325252u;

	for (int round = 0; round < 300; round++) {
		uint64_t first[4] = { 0 }, now = BEGIN;

		tear_down(NULL);
		set_up(NULL);
		for (uint32_t t = 0; t < 4; t++)
			thread(0, t % 2 ? UINT64_MAX : 8000 + t);
		for (int i = 0; i < 200; i++) {
			uint32_t t;
			uint8_t kind;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			t = random % 4;
			kind = random >> 8 & 63 ?
			       (uint8_t)((random >> 16) % 3) : LOST;
			now += random >> 24 & 63;
			add(now, kind == LOST ? SEAM_NONE : t,
			    (uint16_t)((random >> 32) % 3), kind);
			if (kind != LOST && !first[t])
				first[t] = kind == IN ? now : BEGIN;
		}
		replay();
		for (uint32_t t = 0; t < 4; t++) {
			const struct seam_thread_time *time =
				&m.profile.thread_times.items[t];
			uint64_t end = t % 2 ? END : 8000 + t;

			assert_int_equal(time->running_ns + time->blocked_ns +
					 time->preempted_ns + time->unknown_ns,
					 first[t] && first[t] < end ?
					 (end > first[t] ? end - first[t] : 0) :
					 0);
		}
	}
}

UNIT_MAIN(NULL, NULL, set_up, tear_down)
