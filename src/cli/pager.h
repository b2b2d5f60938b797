/* SPDX-License-Identifier: MIT */
/*
 * pager.h - long text on a terminal goes through a pager, as git does it
 *
 * The pager is SEAM_PAGER, else PAGER, else less if it is installed.  There is
 * none if that is empty or "cat", with --no-pager, TERM=dumb, or a standard
 * output that is no terminal.  less exits by itself if the text fits the
 * screen (LESS=FRX, unless LESS is set).
 *
 * The caller queries width and colours of the terminal before the start.
 * Threads: none may be running.
 */
#pragma once

#include <stdbool.h>

/*
 * Send standard output to the pager from here, and standard error where it
 * is a terminal.  @status is the exit status if the user quits the pager
 * before the end.  Does nothing if there is no pager.
 */
void seam_pager_start(int status);

/* The same with the shell's @command as the pager; NULL: none. */
void seam_pager_start_as(const char *command, int status);

/* Flush, and wait until the pager exits.  Nothing without a pager. */
void seam_pager_finish(void);

/* Whether a pager runs.  A signal handler may call it. */
bool seam_pager_runs(void);

/*
 * The pager, which runs, closed its end of the pipe: wait until it exits.
 * Returns the exit status.  A signal handler may call it.
 */
int seam_pager_left(void);
