/* SPDX-License-Identifier: MIT */
/*
 * trigger_signals.h - triggers that are signals
 *
 * Ours is the handler of such a signal where the default action ends the
 * program, or where the program has a handler, which it then calls, with the
 * program's own flags and mask.  What ends the program does so as before: the
 * same status, and a core of the same instruction.  sigaction() and signal()
 * are interposed; they show and set what is the program's.
 *
 * A signal that is ignored, by the program or by default, is not delivered, and
 * triggers nothing: a handler would interrupt system calls.  Not covered:
 * sigwait(3), signalfd(2), and system calls without libc.
 */
#ifndef SEAM_FDR_TRIGGER_SIGNALS_H
#define SEAM_FDR_TRIGGER_SIGNALS_H

#include "traced/fdr/options.h"

/*
 * Install the handlers for those of @options that are signals, at the start of
 * the program.  0 or -errno; -EINVAL: a signal that stops, or SIGKILL.
 */
int seam_fdr_trigger_signals_init(const struct seam_fdr_options *options);

/* The kernel has the program's own actions again. */
void seam_fdr_trigger_signals_fini(void);

#endif /* SEAM_FDR_TRIGGER_SIGNALS_H */
