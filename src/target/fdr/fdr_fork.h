/* SPDX-License-Identifier: MIT */
/*
 * fdr_fork.h - what a fork copies
 *
 * A fork waits for a thread that patches or reads the list of images; so no
 * child finds a lock taken, of ours or, because of us, of the loader, nor half
 * of a list.  The child has the patched code of its parent, and records by its
 * own pid from its first call on (fdr_thread.h).
 *
 * vfork() and posix_spawn() do not come here.
 */
#ifndef SEAM_FDR_FORK_H
#define SEAM_FDR_FORK_H

/* Install the handlers, once.  0 or -errno. */
int seam_fdr_fork_init(void);

/* start.c: with the lock. */
void seam_fdr_fork_begin_child(void);

#endif /* SEAM_FDR_FORK_H */
