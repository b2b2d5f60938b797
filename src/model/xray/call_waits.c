/* SPDX-License-Identifier: MIT */
/* call_waits.c - a cursor over waits beside open calls; see call_waits.h */
#include "model/xray/call_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "model/xray/stream_calls.h"

/* The thread of @stream in @profile; SEAM_NONE: it is not there. */
static uint32_t find_thread(const struct seam_profile *profile,
			    const struct seam_trace_stream *stream,
			    uint64_t start_ns)
{
	for (uint32_t i = 0; i < profile->threads.n; i++) {
		const struct seam_thread *t = &profile->threads.items[i];
		int32_t pid = profile->processes.items[t->process].pid;

		if (t->tid == stream->tid &&
		    (!stream->pid || stream->pid == pid) &&
		    start_ns < t->end_ns)
			return i;
	}
	return SEAM_NONE;
}

void seam_open_waits_begin(struct seam_open_waits *open,
			   const struct seam_thread_waits *waits,
			   const struct seam_trace *trace, uint32_t stream)
{
	uint32_t thread = find_thread(waits->profile,
				      &trace->streams.items[stream],
				      seam_trace_start_ns(trace, stream));

	open->cursor = seam_waits_of(waits->waits, thread);
	open->open.n = 0;
}

void seam_open_waits_fini(struct seam_open_waits *open)
{
	free(open->open.items);
	*open = (struct seam_open_waits) { .open.n = 0 };
}

/* The call on top is number calls->n - 1: calls[0] is the thread. */
bool seam_open_waits_enter(struct seam_open_waits *open,
			   const struct seam_calls *calls)
{
	while (open->open.n < calls->n)
		if (!SEAM_ARRAY_ADD(&open->open,
				    (struct seam_open_wait) { .before = { 0 } }))
			return false;
	open->open.items[calls->n - 1] = (struct seam_open_wait) {
		.before = seam_waits_until(&open->cursor,
				calls->calls[calls->n - 1].begin_ns),
	};
	return true;
}

struct seam_off_time seam_open_waits_leave(struct seam_open_waits *open,
					   const struct seam_calls *calls,
					   uint64_t end_ns,
					   struct seam_off_time *self)
{
	struct seam_open_wait *call = &open->open.items[calls->n];
	struct seam_off_time in =
		seam_off_time_less(seam_waits_until(&open->cursor, end_ns),
				   call->before);

	*self = seam_off_time_less(in, call->callees);
	seam_off_time_add(&call[-1].callees, in);
	return in;
}

/* -- rows --------------------------------------------------------------- */

struct wait_pass {
	struct seam_account *account;
	struct seam_index *rows;	/* by function */
	struct seam_open_waits open;
	const struct seam_time_range *range;
};

static void begin_call(void *context, struct seam_calls *calls)
{
	struct wait_pass *pass = context;

	if (!seam_open_waits_enter(&pass->open, calls))
		calls->error = -ENOMEM;
}

static void end_call(void *context, struct seam_calls *calls,
		     const struct seam_call *call, uint64_t end_ns)
{
	struct wait_pass *pass = context;
	struct seam_account_row *rows = pass->account->rows.items;
	struct seam_off_time self, in =
		seam_open_waits_leave(&pass->open, calls, end_ns, &self);
	uint32_t row = SEAM_INDEX_FIND(pass->rows,
				       seam_hash_u64(call->function), i,
				       rows[i].function == call->function);

	if (row == SEAM_NONE ||
	    !seam_time_range_has(pass->range, call->begin_ns))
		return;
	/* as its total: of outermost calls */
	if (!calls->active.items[call->slot])
		seam_off_time_add(&rows[row].off, in);
	seam_off_time_add(&rows[row].self_off, self);
}

static const struct seam_calls_sink waits_sink = {
	.begin = begin_call, .end = end_call,
};

int seam_account_add_waits(struct seam_account *account,
			   const struct seam_trace *trace,
			   const struct seam_thread_waits *waits)
{
	struct seam_index rows = { 0 };
	struct wait_pass pass = {
		.account = account, .rows = &rows, .range = &trace->range,
	};
	struct seam_xray_problems problems = { 0 };
	int r = 0;

	for (uint32_t i = 0; i < account->rows.n && r == 0; i++)
		r = seam_index_add(&rows, seam_hash_u64(
				   account->rows.items[i].function), i);
	for (uint32_t s = 0; s < trace->streams.n && r == 0; s++) {
		struct seam_calls calls = { 0 };

		seam_open_waits_begin(&pass.open, waits, trace, s);
		r = seam_stream_calls(&calls, trace, s, &waits_sink, &pass,
				      &problems);
		seam_calls_fini(&calls);
	}
	seam_open_waits_fini(&pass.open);
	seam_index_fini(&rows);
	account->waits = waits;
	return r;
}
