/* SPDX-License-Identifier: MIT */
/*
 * programs.h - the recorder's own services, and what the command gets of them
 *
 *	jit	code of JITs (jit_service.h)
 *	guest	samples of libseam-agent, where the command runs a VM
 *		(guest_service.h, --layers)
 *	calls	of instrumented programs (tracing.h, --trace)
 *
 * This is the only file that names them: the rest of the recorder has
 * session->services (service.h).
 */
#ifndef SEAM_PROGRAMS_H
#define SEAM_PROGRAMS_H

#include "record/session.h"

/*
 * Add the services and open their link; then fork the command, with its
 * address and libraries in its environment.  0 or -errno.
 */
int seam_programs_fork_command(struct seam_session *s, struct seam_err *err);

/* Without a command: why there are no Lua stacks of processes that run. */
void seam_programs_report_running(const struct seam_session *s);

/* The rings are closed: complete what the services write, and report. */
void seam_programs_finish(struct seam_session *s);

/* Valid on a zeroed session. */
void seam_programs_fini(struct seam_session *s);

#endif /* SEAM_PROGRAMS_H */
