/* SPDX-License-Identifier: MIT */
/* triggers.c - see triggers.h */
#include "traced/fdr/check/triggers.h"

#include "base/clock.h"
#include "traced/fdr/record/fdr_record.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/saved.h"
#include "traced/fdr/record/system.h"
#include "wire/xray/xray_functions.h"

#include <errno.h>
#include <sys/mman.h>

enum {
	MAX_PER_S = 1000,		/* of each trigger */
	FUNCTIONS_BYTES = SEAM_FDR_MAX_TRIGGER_FUNCTION *
			  sizeof(*seam_fdr_trigger_functions),
};

/* Of the process; set before the first sled is patched. */
static struct {
	uint64_t limit;			/* ticks */
	_Atomic uint64_t next_tsc;	/* no hit before; any thread */
} triggers[SEAM_TRIGGER_MAX];
/* bit i: trigger i is of this kind */
static unsigned int are_calls, are_slow;
static uint64_t least_limit;		/* of the slow triggers */
static uint64_t pause_ticks;
static bool is_flight;

_Atomic uint16_t *seam_fdr_trigger_functions;

/* any thread adds; a number without a record is taken back */
static _Atomic uint32_t n_fired;
/* written by the recorder; NULL: no recorder */
static const _Atomic uint32_t *_Atomic resumed;

uint64_t seam_fdr_ticks_of(uint64_t ns, uint64_t ticks_per_s)
{
	uint64_t whole = ns / SEAM_NS_PER_S, rest = ns % SEAM_NS_PER_S;

	/* a TSC has less than 18 GHz */
	if (whole >= 1 << 28)
		return INT64_MAX;
	return whole * ticks_per_s + rest * ticks_per_s / SEAM_NS_PER_S;
}

/* Functions of a start before; memory locked into RAM is not given back. */
static void forget_functions(void)
{
	if (seam_fdr_syscall4(SYS_madvise, (long)seam_fdr_trigger_functions,
			      FUNCTIONS_BYTES, MADV_DONTNEED, 0) == 0)
		return;
	for (size_t i = 0; i < SEAM_FDR_MAX_TRIGGER_FUNCTION; i++)
		/* relaxed: no sled is patched */
		atomic_store_explicit(&seam_fdr_trigger_functions[i], 0,
				      memory_order_relaxed);
}

int seam_fdr_triggers_init(const struct seam_fdr_options *o,
			   uint64_t ticks_per_s)
{
	is_flight = o->is_flight;
	pause_ticks = ticks_per_s / MAX_PER_S;
	are_calls = are_slow = 0;
	least_limit = UINT64_MAX;
	for (uint32_t i = 0; i < o->n_triggers; i++) {
		uint64_t limit = seam_fdr_ticks_of(o->triggers[i].limit_ns,
						   ticks_per_s);

		triggers[i].limit = limit;
		if (o->triggers[i].kind == SEAM_TRIGGER_CALLS) {
			are_calls |= 1u << i;
			continue;
		}
		are_slow |= 1u << i;
		least_limit = limit < least_limit ? limit : least_limit;
	}
	if (seam_fdr_trigger_functions)
		forget_functions();
	else if (o->n_triggers)
		seam_fdr_trigger_functions = seam_fdr_map(FUNCTIONS_BYTES);
	return seam_fdr_trigger_functions || !o->n_triggers ? 0 : -ENOMEM;
}

void seam_fdr_trigger_function(unsigned int trigger, uint32_t function)
{
	if (trigger < SEAM_TRIGGER_MAX && seam_fdr_trigger_functions &&
	    function < SEAM_FDR_MAX_TRIGGER_FUNCTION)
		atomic_fetch_or(&seam_fdr_trigger_functions[function],
				(uint16_t)(1u << trigger));
}

void seam_fdr_triggers_resume_at(const _Atomic uint32_t *n_resumed)
{
	atomic_store(&n_fired, 0);
	atomic_store(&resumed, n_resumed);
}

/* ---- freeze ---- */

bool seam_fdr_may_begin_chunk(struct seam_fdr_state *state, uint64_t at)
{
	/* relaxed: a chunk begun before the trigger need not be stopped */
	uint32_t fired = atomic_load_explicit(&n_fired, memory_order_relaxed);
	const _Atomic uint32_t *word = atomic_load(&resumed);
	uint32_t done;

	if (!fired || !is_flight || !word)
		return true;
	/* acquire: the recorder's copies come before the number */
	done = atomic_load_explicit(word, memory_order_acquire);
	/* the largest number is SEAM_FDR_NO_MORE_SNAPSHOTS */
	if (done >= fired)
		return true;
	/* the oldest trigger is not copied: the calls before it must stay */
	if (state->follows != done + 1) {
		state->follows = done + 1;
		state->follows_from = at;
	}
	return at - state->follows_from < state->area.size / 2;
}

/* ---- fire ---- */

/* Rate-limit each trigger to MAX_PER_S. */
static bool may_fire(uint32_t trigger, uint64_t tsc)
{
	_Atomic uint64_t *next = &triggers[trigger].next_tsc;
	uint64_t from = atomic_load_explicit(next, memory_order_relaxed);

	/* relaxed, all: of two threads any may fire */
	return tsc >= from && atomic_compare_exchange_strong_explicit(
			next, &from, tsc + pause_ticks, memory_order_relaxed,
			memory_order_relaxed);
}

/*
 * Signals are blocked: a handler that does not return would leave a trigger
 * counted and not sent, and a record begun in a ring.
 */
static void fire(const struct seam_xray_trigger *t)
{
	struct seam_fdr_state *state;
	uint64_t blocked;

	if (!may_fire(t->trigger, t->tsc))
		return;
	blocked = seam_fdr_block();
	state = seam_fdr_thread();
	if (state) {
		uint32_t number = atomic_fetch_add(&n_fired, 1) + 1;
		struct seam_xray_announcement a = { .trigger = *t };

		a.kind = SEAM_XRAY_ANNOUNCED_TRIGGER;
		a.trigger.tid = state->tid;
		a.trigger.number = number;
		/* undo only if no later trigger has taken a number */
		if (!seam_fdr_call_saved(seam_fdr_send_trigger, &a))
			atomic_compare_exchange_strong(&n_fired, &number,
						       number - 1);
	}
	seam_fdr_unblock(blocked);
}

static __attribute__((noinline, cold))
void fire_calls(unsigned int of, uint32_t function, uint64_t tsc)
{
	for (; of; of &= of - 1)
		fire(&(struct seam_xray_trigger) {
			.trigger = (unsigned int)__builtin_ctz(of),
			.tsc = tsc, .function = function });
}

static __attribute__((noinline, cold))
void fire_slow(unsigned int of, uint32_t function, uint64_t tsc, uint64_t ticks)
{
	for (; of; of &= of - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(of);

		if (ticks > triggers[i].limit)
			fire(&(struct seam_xray_trigger) {
				.trigger = i, .tsc = tsc, .ticks = ticks,
				.function = function });
	}
}

void seam_fdr_triggers_enter(unsigned int of, uint32_t function,
			     uint64_t frame, uint64_t tsc)
{
	if (__builtin_expect(of & are_calls, 0))
		fire_calls(of & are_calls, function, tsc);
	if (of & are_slow && seam_fdr_self.state->tid)
		seam_fdr_timed_enter(&seam_fdr_self.state->filter, frame,
				     function, tsc);
}

void seam_fdr_triggers_leave(unsigned int of, uint32_t function,
			     uint64_t frame, uint64_t tsc)
{
	uint64_t begin;

	if (!(of & are_slow))
		return;
	begin = seam_fdr_timed_leave(&seam_fdr_self.state->filter, frame,
				     function);
	if (__builtin_expect(begin && tsc - begin > least_limit, 0))
		fire_slow(of & are_slow, function, tsc, tsc - begin);
}
