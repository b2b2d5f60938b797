/* SPDX-License-Identifier: MIT */
/*
 * calls.h - from entries and exits to calls, with what is missing repaired
 *
 * One thread's events go in, in the order of time; calls come out, properly
 * nested.  Real logs are not whole, and each repair is counted:
 *
 *   exit missing    an exception or longjmp left frames without an exit: they
 *                   end at the next exit of a caller
 *   entry missing   a call began before the log does (a flight data recorder's
 *                   ring): it begins at the log's start
 *   stray exit      ignored: of a function that wrote a tail exit already,
 *                   because the jump was conditional and not taken; or as
 *                   the records nearby show (doc/design/xray-logs.md)
 *   unfinished      calls open at the end of the log end there
 *   entries only    of functions whose exits are not recorded, each call ends
 *                   where it begins (SEAM_TRACE_ENTRY_ONLY); not counted
 *   records lost    the thread left records out, as a mark in the log says
 *                   (SEAM_XRAY_LOST): open calls end at the last event before
 *                   it, because theirs may be any of the exits that are
 *                   missing; after it, it is as at the log's start
 *
 * A tail exit ends its function's call; the callee that it jumps to is then
 * a call of the same caller, to which it will return.
 *
 * The hot path is inline: where the sink is a constant, accounting costs no
 * call through a pointer.  stream_calls.c has a faster path for records that
 * need no repair.
 *
 * Threads: one object belongs to one thread at a time.
 */
#pragma once

#include "base/index.h"
#include "model/xray/trace.h"

enum seam_repair {
	SEAM_REPAIR_EXIT,		/* exit missing */
	SEAM_REPAIR_ENTRY,		/* entry missing */
	SEAM_REPAIR_STRAY,		/* stray exit */
	SEAM_REPAIR_UNFINISHED,
	SEAM_REPAIR_CUT,		/* open where records were lost */
	SEAM_REPAIR_GAPS,		/* runs of lost records */
	SEAM_REPAIR_LOST,		/* records in these runs */
	SEAM_REPAIR_DEPTH,		/* too deep: call left out */
	SEAM_REPAIR_CLOCK,		/* the TSC stepped back */
	SEAM_REPAIR_EXTENTS,		/* a block's length was wrong */
	SEAM_N_REPAIRS,
};

/*
 * Of each repair its name in JSON, "missing_exit"; and for people "WHAT: N ONE"
 * or "WHAT: N MANY": what became of N records or calls ("repaired", "lost"),
 * and a description of them.
 */
struct seam_repair_words {
	const char *name, *what, *one, *many;
};

extern const struct seam_repair_words seam_repairs[SEAM_N_REPAIRS];

static inline const char *seam_repair_text(enum seam_repair repair, uint64_t n)
{
	return n == 1 ? seam_repairs[repair].one : seam_repairs[repair].many;
}

/* Add @n to the repairs @sum, up to UINT64_MAX: lost records are a claim. */
static inline void seam_repairs_add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

enum {
	SEAM_CALLS_MAX_DEPTH = 1 << 20,
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	/* arrays of megabytes for each input would take all of its time */
	SEAM_CALLS_SMALL = 1 << 8,
#else
	SEAM_CALLS_SMALL = 1 << 18,	/* ids below are small */
#endif
};

/*
 * The slots of functions, which index arrays of per-function data.  Programs
 * number their functions from 1 on: a small id is its own slot, without a
 * memory access.  Larger ids are hashed; their slots follow.
 */
struct seam_call_functions {
	uint32_t n_small;		/* ids below this have room in arrays */
	SEAM_ARRAY(uint32_t) large;	/* ids, in order of appearance */
	struct seam_index index;	/* of large */
};

struct seam_call {
	uint64_t begin_ns;
	uint32_t function;		/* XRay id */
	uint32_t slot;
	uint64_t child_ns;		/* in calls that it made, so far */
	uint32_t user;			/* the sink's own */
	uint32_t tail;			/* function of the last callee to end by
					 * a tail exit, + 1; 0: none */
};

/* An exit that ends no open call. */
struct seam_unmatched_exit {
	uint64_t ns;
	uint32_t function;		/* XRay id */
};

struct seam_calls {
	/* calls[0] is not a call but the thread: all roots are its callees */
	struct seam_call *calls;
	size_t n, cap;			/* n >= 1 once begun */
	struct seam_call_functions functions;
	SEAM_ARRAY(uint32_t) active;	/* by slot: calls open now */
	/* of this thread's events; start_ns: since records were lost */
	uint64_t start_ns, last_ns;
	uint64_t before_ns;		/* of the last event before the batch */
	uint64_t too_deep;		/* entries left out, exits to ignore */
	bool by_tail;			/* in a sink's end(): the exit is a tail
					 * exit */
	uint64_t repairs[SEAM_N_REPAIRS];
	/*
	 * Functions of calls without an entry, innermost first; SEAM_NONE
	 * between those of before and after a place where records were lost.
	 */
	SEAM_ARRAY(uint32_t) unseen;
	/* the same, found by a first pass, to be opened after such places */
	SEAM_ARRAY(uint32_t) later;
	size_t next_later;
	struct seam_trace_reader *reader;	/* NULL: no looking ahead */
	const struct seam_xray_batch *batch;	/* the one fed last */
	/* stray exits in order, found by a first pass for a second one */
	SEAM_ARRAY(struct seam_unmatched_exit) strays;
	bool is_first_pass;
	size_t next_stray;		/* in strays, of the second pass */
	int error;			/* 0, or -ENOMEM: nothing counts */
};

/* A call that has ended, with what sums need. */
struct seam_ended_call {
	uint64_t ns;
	uint64_t child_ns;		/* in calls that it made */
	uint64_t slot;
	uint64_t n_open;		/* calls of the function still open */
};

enum { SEAM_ENDED_CALLS = 256 };

struct seam_ended_calls {
	size_t n;
	struct seam_ended_call items[SEAM_ENDED_CALLS];
};

struct seam_calls_sink {
	/* The top call has just begun.  NULL: ignored. */
	void (*begin)(void *context, struct seam_calls *calls);
	/*
	 * @call, which was on top, ended at @end_ns; the top is its caller.
	 * calls->active no longer counts it.  NULL: ignored.
	 */
	void (*end)(void *context, struct seam_calls *calls,
		    const struct seam_call *call, uint64_t end_ns);
	/* An argument, or a custom or typed event.  NULL: ignored. */
	void (*event)(void *context, struct seam_calls *calls,
		      const struct seam_xray_batch *batch,
		      const struct seam_xray_event *event);
	/*
	 * For sinks to which struct seam_ended_call is enough: @ended calls
	 * in place of an end() for each, where the log allows it.  NULL: end()
	 * for all.
	 */
	void (*ended)(void *context, struct seam_calls *calls,
		      const struct seam_ended_calls *ended);
};

/* Zeroed is valid.  Begin a thread; open calls of another one are dropped. */
void seam_calls_begin(struct seam_calls *calls);
void seam_calls_fini(struct seam_calls *calls);

/*
 * Open a call whose entry is not in the log, as if it had begun at @ns: the
 * outermost first, before any event.
 */
void seam_calls_preset(struct seam_calls *calls, uint32_t function,
		       uint64_t ns, const struct seam_calls_sink *sink,
		       void *context);

/* End all open calls at the last event's time. */
void seam_calls_end(struct seam_calls *calls,
		    const struct seam_calls_sink *sink, void *context);

/* The slot of function @id, new if need be; SEAM_NONE when that failed. */
uint32_t seam_calls_add_function(struct seam_calls *calls, uint32_t id);

/*
 * Reserve zeroed room for @n more calls.  False when they could be too deep, or
 * memory ran out (calls->error).  grow: for one, counted if it is too deep.
 */
bool seam_calls_reserve(struct seam_calls *calls, size_t n);
bool seam_calls_grow(struct seam_calls *calls);

/* Whether @event, of @batch, is the mark of lost records. */
static inline bool seam_calls_is_gap(const struct seam_xray_batch *batch,
				     const struct seam_xray_event *event)
{
	return event->kind == SEAM_XRAY_TYPED &&
	       seam_xray_is_lost(&batch->payloads[event->function]);
}

/* End all open calls: records were lost before @event, of @batch. */
void seam_calls_cut(struct seam_calls *calls,
		    const struct seam_xray_batch *batch,
		    const struct seam_xray_event *event,
		    const struct seam_calls_sink *sink, void *context);

/*
 * A call of a function of which only entries are recorded, of event @i of
 * @batch: open it, pass its arguments to the sink, and end it.  Returns the
 * index of the last event that was taken.
 */
size_t seam_calls_take_entry(struct seam_calls *calls,
			     const struct seam_xray_batch *batch, size_t i,
			     size_t to, const struct seam_calls_sink *sink,
			     void *context);

/*
 * Open the next calls of calls->later, the outermost first: their entries are
 * missing, and they begin at calls->start_ns.
 */
void seam_calls_open_later(struct seam_calls *calls,
			   const struct seam_calls_sink *sink, void *context);

/* An exit that is not the top call's. */
void seam_calls_repair(struct seam_calls *calls,
		       const struct seam_xray_event *event,
		       const struct seam_calls_sink *sink, void *context);

static inline uint32_t
seam_calls_slot(struct seam_calls *calls, uint32_t id)
{
	return __builtin_expect(id < calls->functions.n_small, 1) ? id :
	       seam_calls_add_function(calls, id);
}

/* The id of the function in @slot. */
static inline uint32_t
seam_calls_function(const struct seam_calls *calls, uint32_t slot)
{
	return slot < SEAM_CALLS_SMALL ? slot :
	       calls->functions.large.items[slot - SEAM_CALLS_SMALL];
}

/* Open a call; @n is calls->n.  Returns the new one. */
static inline __attribute__((always_inline)) size_t
seam_calls_enter_at(struct seam_calls *calls, size_t n, uint32_t function,
		    uint64_t ns, const struct seam_calls_sink *sink,
		    void *context)
{
	uint32_t slot;

	if (__builtin_expect(n == calls->cap, 0) && !seam_calls_grow(calls))
		return n;
	slot = seam_calls_slot(calls, function);
	if (__builtin_expect(slot == SEAM_NONE, 0))
		return n;
	calls->calls[n++] = (struct seam_call) {
		.begin_ns = ns, .function = function, .slot = slot,
	};
	calls->n = n;
	calls->active.items[slot]++;
	if (sink->begin)
		sink->begin(context, calls);
	return n;
}

static inline __attribute__((always_inline)) size_t
seam_calls_leave_at(struct seam_calls *calls, size_t n, uint64_t ns,
		    const struct seam_calls_sink *sink, void *context)
{
	struct seam_call call = calls->calls[--n];

	calls->n = n;
	calls->calls[n - 1].child_ns += ns - call.begin_ns;
	calls->active.items[call.slot]--;
	if (sink->end)
		sink->end(context, calls, &call, ns);
	return n;
}

/*
 * Events [@from, @to) of @batch, whose times are nanoseconds that rise.
 *
 * The depth is kept in a local: to the compiler, a store through a pointer
 * may change calls->n, and a load after each store would be the longest
 * dependency chain of the loop.
 */
static inline __attribute__((always_inline)) void
seam_calls_feed(struct seam_calls *calls, const struct seam_xray_batch *batch,
		size_t from, size_t to, const struct seam_calls_sink *sink,
		void *context)
{
	size_t n = calls->n;

	for (size_t i = from; i < to; i++) {
		const struct seam_xray_event *event = &batch->events[i];
		struct seam_call *top = &calls->calls[n - 1];

		/* calls[0] has no function, so no exit ends it */
		if (event->kind == SEAM_XRAY_EXIT &&
		    __builtin_expect(top->function == event->function &&
				     !calls->too_deep, 1))
			n = seam_calls_leave_at(calls, n, event->tsc, sink,
						context);
		else if (__builtin_expect(event->kind == SEAM_XRAY_ENTRY ||
					  event->kind == SEAM_XRAY_ENTRY_ARGS,
					  1))
			n = seam_calls_enter_at(calls, n, event->function,
						event->tsc, sink, context);
		else if (event->kind <= SEAM_XRAY_TAIL_EXIT) {
			seam_calls_repair(calls, event, sink, context);
			n = calls->n;
		} else if (seam_calls_is_gap(batch, event)) {
			seam_calls_cut(calls, batch, event, sink, context);
			n = calls->n;
		} else if (event->kind == SEAM_TRACE_ENTRY_ONLY) {
			i = seam_calls_take_entry(calls, batch, i, to, sink,
						  context);
		} else if (sink->event) {
			sink->event(context, calls, batch, event);
		}
	}
}
