/* SPDX-License-Identifier: MIT */
/*
 * fdr_thread.h - the state in which a thread records its calls
 *
 * Three places:
 *
 *	seam_fdr_self	thread-local: where the area and the state are
 *	state		a page that a forked child finds zeroed
 *	area, cursor	memory that the recorder holds (wire/xray/xray_chunk.h)
 *
 * The cursor is the only thing that a record changes for good, and storing it
 * is the last step: that step, and all before it, are a restartable sequence
 * (rseq(2)).  A signal, or another thread on this CPU, in between makes the
 * thread begin again, with the records of the handler before its own.  What the
 * thread stored before the cursor is not used: the record is after the cursor,
 * and the state is kept twice.  state.at[i] is of a cursor with i =
 * (cursor / 8) % 2, and a commit moves the cursor by an odd number of words, so
 * it writes the state that is not in use.
 *
 * A step that moves the cursor without a record is such a sequence too: it may
 * copy the other state to state.at[i] of the new cursor.
 *
 * In a forked child the state is zeroes, and cpu 0 is no CPU: its first record
 * takes the slow path, which finds that the child has no area of its own.  So
 * does a thread that has recorded nothing yet.
 */
#pragma once

#include "traced/fdr/record/source.h"

#include <stddef.h>

enum {
	/* cpu is the CPU's number XOR this; 0: none */
	SEAM_FDR_CPU = 1 << 30,
};

/* As of the last record before the cursor. */
struct seam_fdr_at {
	uint64_t tsc;
	uint32_t cpu;
	uint32_t unused;
};

/* The calls that are open, by their frames (check/checked.c). */
enum {
	SEAM_FDR_MAX_DEPTH = 256,
	SEAM_FDR_MAX_TIMED = 64,	/* more: the oldest is not timed */
};

/* All zeroes: no call is open. */
struct seam_fdr_filter {
	/* recorded calls, outermost first: addresses of return addresses */
	_Atomic uint32_t n_open;
	_Atomic uint32_t n_timed;
	_Atomic uint64_t open[SEAM_FDR_MAX_DEPTH];
	/* calls that are timed, in no order */
	struct seam_fdr_timed {
		uint64_t frame, tsc;
		uint32_t function;
	} timed[SEAM_FDR_MAX_TIMED];
};

/*
 * Records that were lost, and how many of these are in marks of the log (type
 * SEAM_XRAY_LOST).  A mark is committed with the preamble of its chunk, and
 * noted as written after that: a handler in between sees @mark_at.
 */
struct seam_fdr_gaps {
	_Atomic uint64_t n_lost, n_marked;
	/* the last try to write a mark: its chunk, and n_lost at that time */
	_Atomic uint64_t mark_at, mark_n_lost;
};

struct seam_fdr_state {
	struct seam_fdr_at at[2];
	/* the rest is of the slow path; fdr_record.c, checked.c */
	uint32_t tid, pid;		/* 0: free, or a fork's */
	uint32_t cpu;			/* as in at, where rseq is refused */
	bool has_area;			/* false: no area was free */
	uint64_t retry_tsc;		/* when to look for an area again */
	uint64_t event_end;		/* cursor after the last event */
	uint64_t entry_end;		/* and call with metadata before it */
	struct seam_fdr_area area;
	struct seam_fdr_gaps gaps;
	uint32_t follows;		/* a trigger that freezes: its number */
	uint64_t follows_from;		/* the first position after it */
	struct seam_fdr_filter filter;
};

struct seam_fdr_self {
	_Atomic uint64_t *cursor;
	uint8_t *area;
	uint64_t mask;			/* bytes of the area - 1 */
	struct seam_fdr_state *state;
};

/* At most 128 bytes of initial-exec TLS: the library may be dlopen'ed. */
extern __thread struct seam_fdr_self seam_fdr_self
	__attribute__((tls_model("initial-exec")));

/* ---- an area, from the first record of its thread on (thread_area.c) ---- */

/*
 * Prepare for threads that get their areas from @source.  Called before the
 * first sled is patched, at each start.  0 or -ENOMEM, also before Linux 4.14.
 */
int seam_fdr_thread_init(const struct seam_fdr_source *source);

/* The source in use; NULL before seam_fdr_thread_init(). */
extern const struct seam_fdr_source *seam_fdr_source;

static inline bool seam_fdr_is_connected(const struct seam_fdr_area *area)
{
	/* relaxed: see seam_fdr_link_leave() */
	return !area->wakeup || area->connection ==
	       atomic_load_explicit(&seam_fdr_connection, memory_order_relaxed);
}

static inline bool seam_fdr_has_area(const struct seam_fdr_state *state)
{
	return state->has_area && seam_fdr_is_connected(&state->area);
}

/*
 * The caller's state, with an area.  NULL: no area is free, and the caller
 * counts its record in seam_fdr_n_lost.  From any context; in fdr_record.c.
 */
struct seam_fdr_state *seam_fdr_thread(void);

/*
 * The thread writes no further record; a further record claims an area anew.
 * Called at the end of each thread that has an area, but not at the end of the
 * process.
 */
void seam_fdr_thread_end(void);

/*
 * The process whose memory this is: in a child of vfork() its parent.  From any
 * context.  Where libc does not know of a fork, the child calls this before
 * vfork(), or vfork's child is taken for the child.
 */
uint32_t seam_fdr_states_pid(void);
