/* SPDX-License-Identifier: MIT */
/* checked.c - see checked.h; seam_fdr_check() runs in trampolines */
#include "target/fdr/checked.h"

#include "base/clock.h"
#include "target/fdr/fdr_record.h"
#include "target/fdr/put.h"
#include "target/fdr/system.h"
#include "target/fdr/take_back.h"
#include "target/fdr/thread_area.h"
#include "target/fdr/trampolines.h"
#include "target/fdr/triggers.h"

/* Of the process; set before the first sled is patched. */
uint64_t seam_fdr_min_ticks;
static uint32_t max_depth, n_arguments;

/* ---- in trampolines ---- */

static uint32_t action_of(uint32_t word)
{
	return word >> 1 & 7;
}

/* Record, and return the time. */
static uint64_t put(uint32_t word, const uint64_t *arguments, uint32_t n)
{
	uint64_t tsc = seam_fdr_put_call(word, arguments, n);

	if (tsc)
		return tsc;
	seam_fdr_record(word, arguments, n);
	return seam_fdr_tsc();
}

/* NULL: the thread has no area, and its records are counted. */
static struct seam_fdr_filter *filter(void)
{
	struct seam_fdr_state *state = seam_fdr_self.state;

	if (!state->tid)
		state = seam_fdr_thread();
	return state ? &state->filter : NULL;
}

static bool is_too_deep(uint64_t frame)
{
	struct seam_fdr_filter *f = max_depth ? filter() : NULL;

	return f && !seam_fdr_depth_enter(f, frame, max_depth);
}

static void enter(uint32_t word, const struct seam_fdr_registers *r)
{
	uint64_t frame = r->return_address_slot, tsc;
	unsigned int triggers = seam_fdr_triggers_of(word >> 4);
	uint32_t n = n_arguments;

	/* a function with xray_log_args(1) */
	if (n == 0 && action_of(word) == SEAM_XRAY_ENTRY_ARGS)
		n = 1;
	if (is_too_deep(frame))
		tsc = triggers ? seam_fdr_tsc() : 0;
	else if (n)
		tsc = put(word | SEAM_XRAY_ENTRY_ARGS << 1, &r->rdi, n);
	else
		tsc = put(word, NULL, 0);
	if (triggers)
		seam_fdr_triggers_enter(triggers, word >> 4, frame, tsc);
}

/* Record the exit, or take the entry back; the time. */
static uint64_t put_end(uint32_t word)
{
	/* a tail exit is taken back with the call that it goes on to */
	if (!seam_fdr_min_ticks || action_of(word) != SEAM_XRAY_EXIT)
		return put(word, NULL, 0);
	if (!seam_fdr_put_end(word) &&
	    !seam_fdr_take_back(word >> 4, seam_fdr_min_ticks))
		return put(word, NULL, 0);
	return seam_fdr_tsc();
}

static void leave(uint32_t word, uint64_t frame)
{
	unsigned int triggers = seam_fdr_triggers_of(word >> 4);
	struct seam_fdr_filter *f = max_depth ? filter() : NULL;
	uint64_t tsc;

	if (f && !seam_fdr_depth_leave(f, frame))
		tsc = triggers ? seam_fdr_tsc() : 0;
	else
		tsc = put_end(word);
	if (triggers)
		seam_fdr_triggers_leave(triggers, word >> 4, frame, tsc);
}

void seam_fdr_check(uint32_t word, const struct seam_fdr_registers *registers)
{
	uint32_t action = action_of(word);

	if (action == SEAM_XRAY_ENTRY || action == SEAM_XRAY_ENTRY_ARGS)
		enter(word, registers);
	else
		leave(word, registers->return_address_slot);
}

/* ---- at the start ---- */

/* To 0.1 %: two readings of both clocks. */
static uint64_t measure_ticks_per_s(void)
{
	uint64_t begin_ns = seam_clock_ns(), begin = seam_fdr_tsc(), ns;

	do
		ns = seam_clock_ns() - begin_ns;
	while (ns < SEAM_NS_PER_MS);
	return (seam_fdr_tsc() - begin) * SEAM_NS_PER_S / ns;
}

static bool has_time(const struct seam_fdr_options *o)
{
	return o->min_ns || o->n_triggers;
}

int seam_fdr_check_init(const struct seam_fdr_options *o)
{
	uint64_t ticks_per_s = has_time(o) ? measure_ticks_per_s() : 0;

	seam_fdr_min_ticks = seam_fdr_ticks_of(o->min_ns, ticks_per_s);
	max_depth = o->depth < SEAM_FDR_MAX_DEPTH ? o->depth :
						    SEAM_FDR_MAX_DEPTH;
	n_arguments = o->n_arguments < SEAM_XRAY_MAX_ARGUMENTS ?
		      o->n_arguments : SEAM_XRAY_MAX_ARGUMENTS;
	return seam_fdr_triggers_init(o, ticks_per_s);
}

struct seam_fdr_trampolines seam_fdr_trampolines(uint32_t function)
{
	bool all = max_depth || seam_fdr_triggers_of(function);
	bool entry = all || n_arguments;
	bool end = all || seam_fdr_min_ticks;

	return (struct seam_fdr_trampolines) {
		.entry = entry ? seam_fdr_checked_entry : seam_fdr_entry,
		.exit = end ? seam_fdr_checked_exit : seam_fdr_exit,
		.tail = all ? seam_fdr_checked_tail : seam_fdr_tail,
	};
}
