/* SPDX-License-Identifier: MIT */
/*
 * alternate_stack.h - where a thread's handlers with SA_ONSTACK run
 *
 * sigaltstack() is interposed, because the system call itself could be what a
 * program's seccomp filter kills it for.
 */
#ifndef SEAM_FDR_ALTERNATE_STACK_H
#define SEAM_FDR_ALTERNATE_STACK_H

#include <stdbool.h>
#include <stdint.h>

struct seam_fdr_alternate_stack {
	uint64_t begin, bytes;		/* 0, 0: the thread has none */
};

extern __thread struct seam_fdr_alternate_stack seam_fdr_alternate_stack
	__attribute__((tls_model("initial-exec")));

static inline bool seam_fdr_is_alternate_stack(uint64_t address)
{
	return address - seam_fdr_alternate_stack.begin <
	       seam_fdr_alternate_stack.bytes;
}

#endif /* SEAM_FDR_ALTERNATE_STACK_H */
