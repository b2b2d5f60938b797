/* SPDX-License-Identifier: MIT */
/* calls_run.c - the loop without branches; see calls_run.h */
#include "model/xray/calls_run.h"

/*
 * A record's low word, rotated so that the function id is in the low bits and
 * the action in the high ones.  Without the bit in which an exit differs from
 * an entry, it is the function id; of any other record it is a large number.
 */
static inline uint32_t function_of(uint64_t record)
{
	uint32_t word = (uint32_t)record;

	return (word >> 4 | word << 28) & ~(UINT32_C(1) << 29);
}

/* Ids below it are slots after run->ids->first is added. */
static uint32_t end_of_small(const struct seam_calls *calls,
			     const struct seam_trace_ids *ids)
{
	uint32_t n = calls->functions.n_small;

	if (ids->others == 0)
		return n;
	n = n > ids->first ? n - ids->first : 0;
	return n < ids->n ? n : ids->n;
}

/*
 * For each record, exit is all ones or 0, and call is
 *
 *	on exit:  the top, which ends; what is written to it is not used
 *	on entry: the place above the top, of the new call; what is read from
 *		  it is not used
 *
 * so that call - 1 is the caller in both cases.  @is_wide is a constant.
 */
static inline __attribute__((always_inline)) size_t
follow(struct seam_calls *calls, struct seam_trace_run *run,
       struct seam_ended_calls *ended, bool is_wide)
{
	const struct seam_ticks clock = *run->clock;
	uint32_t n_small = end_of_small(calls, run->ids);
	uint32_t first = run->ids->first;
	uint32_t *active = calls->active.items;
	struct seam_call *next = calls->calls + calls->n;
	struct seam_ended_call *out = ended->items;
	uint64_t ticks = run->ticks;
	size_t i;

	for (i = 0; i < run->wire.n; i++) {
		uint64_t record = seam_xray_run_record(&run->wire, i), ns;
		int64_t exit = (int64_t)(record << 62) >> 63;
		uint32_t id = function_of(record), function = first + id;
		struct seam_call *call = next + exit;

		/* small ids are slots; calls[0] has the slot of none */
		if (__builtin_expect(id >= n_small, 0) ||
		    __builtin_expect(((function ^ call->slot) &
				      (uint32_t)exit) != 0, 0))
			break;
		ticks += record >> 32;
		ns = run->origin_ns + seam_ticks_scale(&clock, ticks, is_wide);
		active[function] += 2 * (uint32_t)exit + 1;

		out->ns = ns - call->begin_ns;
		out->child_ns = call->child_ns;
		out->slot = function;
		out->n_open = active[function];
		call[-1].child_ns += out->ns & (uint64_t)exit;
		out -= exit;

		*call = (struct seam_call) {
			.begin_ns = ns, .function = function, .slot = function,
		};
		next = call + 1 + exit;
	}
	calls->n = (size_t)(next - calls->calls);
	ended->n = (size_t)(out - ended->items);
	run->ticks = ticks;
	return i;
}

_Static_assert((int)SEAM_ENDED_CALLS >= (int)SEAM_TRACE_RUN,
	       "a run may end as many calls as it has records");

size_t seam_calls_run(struct seam_calls *calls, struct seam_trace_run *run,
		      struct seam_ended_calls *ended)
{
	ended->n = 0;
	if (calls->too_deep || !seam_calls_reserve(calls, run->wire.n))
		return 0;
	return seam_ticks_is_wide(run->clock) ?
	       follow(calls, run, ended, true) :
	       follow(calls, run, ended, false);
}
