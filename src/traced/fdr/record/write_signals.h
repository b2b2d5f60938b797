/* SPDX-License-Identifier: MIT */
/*
 * write_signals.h - a write of ours that fails raises no signal
 *
 * A write past RLIMIT_FSIZE raises SIGXFSZ, and one to a pipe that nobody reads
 * SIGPIPE: the program would end, for files that are not its own.  Of the
 * calling thread, for some writes; errno may change.
 */
#ifndef SEAM_FDR_WRITE_SIGNALS_H
#define SEAM_FDR_WRITE_SIGNALS_H

#include "traced/fdr/record/system.h"

#include <time.h>

#define SEAM_FDR_WRITE_SIGNALS \
	(UINT64_C(1) << (SIGXFSZ - 1) | UINT64_C(1) << (SIGPIPE - 1))

struct seam_fdr_write_signals {
	uint64_t blocked;		/* before */
	uint64_t pending;
};

static inline struct seam_fdr_write_signals seam_fdr_write_signals_block(void)
{
	struct seam_fdr_write_signals s = {
		.blocked = seam_fdr_block_some(SEAM_FDR_WRITE_SIGNALS),
	};

	seam_fdr_syscall4(SYS_rt_sigpending, (long)&s.pending,
			  sizeof(s.pending), 0, 0);
	return s;
}

/* One that was pending before stays. */
static inline void
seam_fdr_write_signals_unblock(struct seam_fdr_write_signals s)
{
	const uint64_t taken = SEAM_FDR_WRITE_SIGNALS & ~s.pending;
	const struct timespec now = { 0, 0 };

	while (seam_fdr_syscall4(SYS_rt_sigtimedwait, (long)&taken, 0,
				 (long)&now, sizeof(taken)) > 0)
		;
	seam_fdr_unblock(s.blocked);
}

#endif /* SEAM_FDR_WRITE_SIGNALS_H */
