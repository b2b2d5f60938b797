/* SPDX-License-Identifier: MIT */
/*
 * thread_area.h - a thread's area, from its first record to its end
 */
#ifndef SEAM_FDR_THREAD_AREA_H
#define SEAM_FDR_THREAD_AREA_H

#include "traced/fdr/record/fdr_thread.h"

/*
 * Prepare for threads that get their areas from @source.  Called before the
 * first sled is patched, once; 0 or -errno.
 */
int seam_fdr_thread_init(const struct seam_fdr_source *source);

/* What threads use; NULL before seam_fdr_thread_init(). */
extern const struct seam_fdr_source *seam_fdr_source;

/*
 * Not 0 while the thread is in the source, with signals blocked.  What that
 * calls may be the program's own, with sleds: such a record gets no new area.
 */
extern __thread uint32_t seam_fdr_n_in_source
	__attribute__((tls_model("initial-exec")));

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
 * The caller's state, with an area.  NULL: there is none, and the caller counts
 * its record in seam_fdr_n_lost.  From any context; in fdr_record.c.
 */
struct seam_fdr_state *seam_fdr_thread(void);

/*
 * The thread writes no further record; it would claim an area anew.  Called at
 * the end of each thread that has an area, but not at the end of the process.
 */
void seam_fdr_thread_end(void);

/*
 * In a forked child, by the thread that forked: its parent's other threads are
 * not here.  Where libc does not know of the fork, its first record does this.
 */
void seam_fdr_thread_begin_child(void);

/*
 * ---- the states of all threads ----
 *
 * They are in memory that a forked child finds zeroed.
 */

/*
 * The process whose memory this is: in a child of vfork() its parent.  From any
 * context.  Where libc does not know of a fork, this is called in the child
 * before it calls vfork(); else that child is taken for it.
 */
uint32_t seam_fdr_states_pid(void);

/* A zeroed state; NULL: 16384 threads have one. */
struct seam_fdr_state *seam_fdr_states_take(void);

#endif /* SEAM_FDR_THREAD_AREA_H */
