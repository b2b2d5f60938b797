/* SPDX-License-Identifier: MIT */
/* test_fdr_link.c - what threads send in the recorder's rings */
#include <sys/time.h>

#include "ring/link/owners.h"
#include "traced/fdr/check/checked.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/rseq.h"
#include "traced/fdr/record/system.h"
#include "unit.h"
#include "wire/xray/xray_functions.h"

enum {
	N_JUMPS = 2000,
	PAUSE_US = 50,
	DATA = 1 << 24,		/* nobody reads it: all triggers have room */
	TRIGGER_BYTES = 40,
};

static sigjmp_buf outside;
static volatile int n_jumps;

static void leave(int signal)
{
	(void)signal;
	n_jumps++;
	siglongjmp(outside, 1);
}

static struct seam_owners rings;
static uint8_t *data;

/* A ring with room for all. */
static int setup(void **state)
{
	struct seam_ring_memory *m =
		&seam_fdr_link.memories[SEAM_FDR_SERVICE_CALLS];
	const struct seam_ring_geometry geometry = {
		.n_slots = 1,
		.data_bytes = DATA, .aux_bytes = 1 << 18,
		.aux_free_running = 1,
	};
	static const struct seam_fdr_options options = {
		.is_flight = true, .n_triggers = 1,
		.triggers = { { .kind = SEAM_TRIGGER_CALLS } },
	};

	if (seam_owners_open(&rings, &geometry, NULL))
		return -1;
	*m = rings.memory;
	m->slots[0].word = seam_ring_word(SEAM_RING_FREE, 0, 0);
	data = m->rings + SEAM_RING_PAGE;
	seam_fdr_rseq_init(false);
	if (seam_fdr_thread_init(&seam_fdr_source_link) ||
	    seam_fdr_check_init(&options) || !seam_fdr_thread())
		return -1;
	seam_fdr_trigger_function(0, 1);
	return 0;
}

static int teardown(void **state)
{
	seam_owners_close(&rings);
	return 0;
}

/* The number of the newest trigger in the ring, and of those in it. */
static uint32_t newest(uint64_t *n_sent)
{
	const struct seam_ring_control *control =
		seam_fdr_self.state->area.ring.control;
	uint64_t head = atomic_load(&control->data_head);
	_Alignas(8) uint8_t trigger[TRIGGER_BYTES];
	struct seam_xray_announcement a;

	*n_sent = atomic_load(&control->program.n_begun);
	memcpy(trigger, data + ((head - TRIGGER_BYTES) & (DATA - 1)),
	       TRIGGER_BYTES);
	assert_int_equal(seam_xray_read_announcement((struct seam_bytes) {
				trigger, TRIGGER_BYTES }, &a), 0);
	assert_int_equal(a.kind, SEAM_XRAY_ANNOUNCED_TRIGGER);
	return a.trigger.number;
}

/* Of a function that is trigger 0. */
static void call(void)
{
	static const uint64_t arguments[6];

	seam_fdr_check_entry(seam_xray_word(1, SEAM_XRAY_ENTRY), 0, arguments);
}

/*
 * A trigger is sent from wherever its function was called; one that is counted
 * and not sent would freeze the flight recorder for good.
 */
UNIT_TEST(handlers_that_do_not_return_lose_no_trigger)
{
	const struct itimerval often = {
		{ 0, PAUSE_US }, { 0, PAUSE_US },
	}, never = { { 0, 0 }, { 0, 0 } };
	uint64_t n_sent;
	uint32_t number;

	signal(SIGALRM, leave);
	sigsetjmp(outside, 1);
	if (n_jumps < N_JUMPS) {
		setitimer(ITIMER_REAL, &often, NULL);
		for (;;)
			call();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	call();
	number = newest(&n_sent);
	assert_int_equal(number, n_sent);
	assert_true(number > 0);
}

int main(void)
{
	return unit_run(setup, teardown, NULL, NULL);
}
