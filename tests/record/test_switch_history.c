/* SPDX-License-Identifier: MIT */
/* test_switch_history.c - what a copy has, and what of what was forgotten */
#include "record/perf/switch_history.h"

#include "record/perf/sources.h"
#include "unit.h"

#include <linux/perf_event.h>
#include <stdlib.h>

enum {
	OUT = PERF_RECORD_MISC_SWITCH_OUT, IN = 0, SWITCH_BYTES = 40,
	SAMPLE_BYTES = 56, ROOM = SEAM_SWITCH_HISTORY_BYTES / SWITCH_BYTES,
	OTHER = 99,		/* a thread that fills the room */
};

static struct made {
	struct seam_switch_history history;
	struct seam_switch_copy copy;
	uint64_t from_ns;
} m;

static int set_up(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	return seam_switch_history_init(&m.history, &seam_sources_common, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	free(m.copy.records.items);
	seam_switch_history_fini(&m.history);
	return 0;
}

/* SWITCH, EXIT and LOST, as far as their trailers go. */
static void add(uint32_t type, uint16_t misc, uint32_t tid, uint64_t time_ns)
{
	struct {
		struct seam_perf_header header;
		uint32_t pid, tid;
		uint64_t time, cpu, id;
	} record = {
		{ type, misc, SWITCH_BYTES }, tid, tid, time_ns, 0, 77,
	};

	_Static_assert(sizeof(record) == SWITCH_BYTES, "as the kernel's");
	assert_true(seam_switch_history_add(&m.history, &record));
}

static void add_stack(uint32_t tid, uint64_t time_ns)
{
	struct {
		struct seam_perf_header header;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time, cpu, period;
	} record = {
		{ PERF_RECORD_SAMPLE, 2, SAMPLE_BYTES }, 78, 0, tid, tid,
		time_ns, 0, 1,
	};

	_Static_assert(sizeof(record) == SAMPLE_BYTES, "as ours");
	assert_true(seam_switch_history_add(&m.history, &record));
}

/* Records of another thread until all that were added before are forgotten. */
static uint64_t fill(uint64_t time_ns)
{
	for (size_t i = 0; i <= ROOM; i++)
		add(PERF_RECORD_SWITCH, i % 2 ? OUT : IN, OTHER, time_ns + i);
	return time_ns + ROOM + 1;
}

/* The records of the copy, without those of OTHER: "type misc tid time;". */
static const char *copied(void)
{
	static char text[512];
	size_t n = 0, size;

	free(m.copy.records.items);
	m.copy = (struct seam_switch_copy) { .records.n = 0 };
	assert_int_equal(seam_switch_history_copy(&m.history, &m.copy,
						  &m.from_ns, NULL), 0);
	text[0] = '\0';
	for (size_t at = 0; at < m.copy.records.n; at += size) {
		const uint8_t *record = m.copy.records.items + at;
		struct seam_perf_header header;
		uint32_t tid;
		uint64_t time;

		memcpy(&header, record, sizeof(header));
		size = header.size;
		record += header.type == PERF_RECORD_SAMPLE ? 24 : 8;
		memcpy(&tid, record + 4, sizeof(tid));
		memcpy(&time, record + 8, sizeof(time));
		if (tid != OTHER)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"%s%s %u %lu;", header.type ==
				PERF_RECORD_SAMPLE ? "stack" : header.type ==
				PERF_RECORD_LOST ? "lost" :
				header.misc & OUT ? "out" : "in",
				header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
				? "!" : "", tid, time);
	}
	return text;
}

UNIT_TEST_WITH(what_fits_is_copied_as_it_came, set_up, tear_down)
{
	add(PERF_RECORD_SWITCH, IN, 7, 1000);
	add(PERF_RECORD_SWITCH, OUT, 7, 1100);
	add_stack(7, 1200);
	add(PERF_RECORD_LOST, 0, 8, 1250);
	add(PERF_RECORD_EXIT, 0, 7, 1300);
	assert_string_equal(copied(), "in 7 1000;out 7 1100;stack 7 1200;"
			    "lost 8 1250;");
	assert_int_equal(m.from_ns, 0);
}

UNIT_TEST_WITH(of_what_is_forgotten_the_state_of_each_thread_stays, set_up,
	       tear_down)
{
	add(PERF_RECORD_SWITCH, IN, 7, 1000);
	add_stack(7, 1050);			/* of the wait before */
	add(PERF_RECORD_SWITCH, OUT, 7, 1100);
	add_stack(7, 1200);
	add(PERF_RECORD_SWITCH, OUT, 8, 1300);
	add_stack(8, 1310);
	add(PERF_RECORD_SWITCH, IN, 8, 1400);
	add(PERF_RECORD_SWITCH, OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, 9,
	    1500);
	/* attached to: it waits, without a switch */
	add_stack(10, 1600);
	fill(2000);
	/* the last that was forgotten is the first of OTHER's */
	assert_string_equal(copied(), "out 7 2000;stack 7 2001;in 8 2000;"
			    "out! 9 2000;stack 10 2001;");
	assert_int_equal(m.from_ns, 2000);
}

UNIT_TEST_WITH(a_thread_that_ended_has_no_state, set_up, tear_down)
{
	add(PERF_RECORD_SWITCH, OUT, 7, 1100);
	add_stack(7, 1200);
	add(PERF_RECORD_EXIT, 0, 7, 1300);
	add(PERF_RECORD_SWITCH, IN, 8, 1400);
	fill(2000);
	assert_string_equal(copied(), "in 8 2000;");
}

UNIT_TEST_WITH(after_a_loss_no_state_is_known, set_up, tear_down)
{
	add(PERF_RECORD_SWITCH, OUT, 7, 1100);
	add(PERF_RECORD_SWITCH, OUT, 8, 1150);
	add(PERF_RECORD_LOST, 0, 7, 1200);
	add(PERF_RECORD_SWITCH, IN, 8, 1300);
	fill(2000);
	assert_string_equal(copied(), "in 8 2000;");
}

UNIT_TEST_WITH(threads_that_share_a_slot_do_not_share_a_state, set_up,
	       tear_down)
{
	uint32_t later = 7 + SEAM_SWITCH_HISTORY_THREADS;

	add(PERF_RECORD_SWITCH, OUT, 7, 1100);
	add_stack(7, 1200);
	add_stack(later, 1300);
	fill(2000);
	assert_string_equal(copied(), "stack 16391 2001;");
}

UNIT_TEST_WITH(memory_is_bounded, set_up, tear_down)
{
	uint64_t time_ns = 1000;

	for (int i = 0; i < 8; i++)
		time_ns = fill(time_ns);
	assert_in_range(m.history.records.bytes.n - m.history.records.first, 0,
			SEAM_SWITCH_HISTORY_BYTES);
	assert_in_range(m.history.records.bytes.n, 0,
			2 * SEAM_SWITCH_HISTORY_BYTES + SWITCH_BYTES);
	copied();
	/* the oldest record that is left is the one after from_ns */
	assert_int_equal(m.copy.records.n, SEAM_SWITCH_HISTORY_BYTES /
			 SWITCH_BYTES * SWITCH_BYTES + SWITCH_BYTES);
	assert_int_equal(m.from_ns, time_ns - 1 - ROOM);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
