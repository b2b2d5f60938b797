/* SPDX-License-Identifier: MIT */
/*
 * thread_states.h - the states of all threads
 *
 * They are in one mapping that a forked child finds zeroed.  Which of them are
 * in use is noted elsewhere, so a child gives none away that a thread of its
 * own may still have; those of its parent's other threads it gets back with
 * seam_fdr_states_begin_child().
 */
#ifndef SEAM_FDR_THREAD_STATES_H
#define SEAM_FDR_THREAD_STATES_H

#include "traced/fdr/record/fdr_thread.h"

/* 0 or -ENOMEM, also of a kernel before 4.14, which cannot do it. */
int seam_fdr_states_init(void);

/*
 * The process whose memory this is: in a child of vfork() its parent.  From any
 * context.  Where libc does not know of a fork, this is called in the child
 * before it calls vfork(); else that child is taken for it.
 */
uint32_t seam_fdr_states_pid(void);

/* A zeroed state; NULL: 16384 threads have one. */
struct seam_fdr_state *seam_fdr_states_take(void);
void seam_fdr_states_give(struct seam_fdr_state *state);

/*
 * In a forked child, by the thread that forked: those of its parent's other
 * threads are free.  @own is its own, from its parent; NULL: it has none, or
 * one that it has taken in this process.  From any context, also again, and
 * while threads of this process take and give.
 */
void seam_fdr_states_begin_child(const struct seam_fdr_state *own);

/*
 * Give those of threads that are no more, after @close of the areas they had.
 * Whether there were any.  Cost: a system call for each thread.
 */
bool seam_fdr_states_reap(void (*close)(struct seam_fdr_area *area));

#endif /* SEAM_FDR_THREAD_STATES_H */
