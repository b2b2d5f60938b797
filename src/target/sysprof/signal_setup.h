/* SPDX-License-Identifier: MIT */
/*
 * signal_setup.h - the profiler's signal handler, before the program's
 *
 * Other signals are passed on to the handler that was there.  A handler that
 * the program installs meanwhile replaces this one, and ends the samples.
 *
 * Threads: one at a time.
 */
#ifndef SEAM_SYSPROF_SIGNAL_SETUP_H
#define SEAM_SYSPROF_SIGNAL_SETUP_H

#include "target/sysprof/profiler_run.h"

/* Install it.  0, or the negative errno of sigaction(2). */
int seam_sysprof_signal_install(struct seam_sysprof_run *run);

/*
 * Put back what was there, unless the program installed another since; or the
 * signal is blocked in this thread, because then one may be pending.  In the
 * sampled thread, after its tick was stopped.
 */
void seam_sysprof_signal_remove(struct seam_sysprof_run *run);

#endif /* SEAM_SYSPROF_SIGNAL_SETUP_H */
