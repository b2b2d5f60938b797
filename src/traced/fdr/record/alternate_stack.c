/* SPDX-License-Identifier: MIT */
/* alternate_stack.c - sigaltstack(), interposed; see filter.h */
#include "traced/fdr/record/filter.h"

#include "traced/interpose/interpose.h"

#include <signal.h>

SEAM_INTERPOSED
int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
	int r = SEAM_REAL(sigaltstack)(new, old);

	if (r == 0 && new)
		seam_fdr_alternate_stack = (struct seam_fdr_alternate_stack) {
			.begin = (uint64_t)(uintptr_t)new->ss_sp,
			.bytes = new->ss_flags & SS_DISABLE ? 0 : new->ss_size,
		};
	return r;
}
