/* SPDX-License-Identifier: MIT */
/*
 * pager.h - long text on a terminal goes through a pager, as git does it
 *
 * Which one: SEAM_PAGER, else PAGER, else less where it is installed.  An
 * empty one or "cat" means none, and so do --no-pager, a terminal that is
 * dumb, and a standard output that is no terminal.  less ends by itself
 * where the text fits the screen (LESS=FRX, unless LESS is set).
 *
 * Width and colours of the terminal are asked for before the pager starts.
 * Threads: none may be running.
 */
#ifndef SEAM_PAGER_H
#define SEAM_PAGER_H

#include <stdbool.h>

/*
 * Send standard output to the pager from here, and standard error where it
 * is a terminal.  @status is what to exit with where the user leaves the
 * pager before the end.  Does nothing where no pager is to run, or none can.
 */
void seam_pager_start(int status);

/* Flush, and wait until the user has left the pager; again does nothing. */
void seam_pager_finish(void);

/* Whether there is one.  May be called by a signal handler. */
bool seam_pager_runs(void);

/*
 * The reader of standard output has gone: wait for the pager, and give the
 * status to exit with; 0 without a pager.  May be called by a signal handler.
 */
int seam_pager_left(void);

#endif /* SEAM_PAGER_H */
