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
 * calls may be the program's own, with sleds: such a record gets no new area,
 * and no room by waiting for a lock that its thread has.
 */
extern __thread uint32_t seam_fdr_n_in_source
	__attribute__((tls_model("initial-exec")));

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

#endif /* SEAM_FDR_THREAD_AREA_H */
