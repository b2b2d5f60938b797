/* SPDX-License-Identifier: MIT */
/*
 * fdr_interpose.c - what the program does that recording depends on
 *
 * In the shared library only: a static program has no libc after us to call.
 */
#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/record/system.h"
#include "traced/interpose/interpose.h"

bool seam_interpose_wants_loads(void)
{
	return seam_fdr_process.is_armed;
}

void seam_interpose_loads(void *handle)
{
	(void)handle;
	seam_fdr_refresh();
}

bool seam_interpose_is_own_process(void)
{
	return seam_fdr_states_pid() ==
	       (uint32_t)seam_fdr_syscall4(SYS_getpid, 0, 0, 0, 0);
}

void seam_interpose_before_filter(void)
{
	seam_fdr_end("it installs a seccomp filter");
}

void seam_interpose_filter_refused(void)
{
	seam_fdr_resume();
}
