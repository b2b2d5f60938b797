/* SPDX-License-Identifier: MIT */
/*
 * kernel_chain.h - where a walk ends early, the kernel's callchain may go on
 *
 * A sample may have both: registers with a copy of the stack, and the user
 * part of the kernel's own callchain, which follows frame pointers through
 * the whole stack.  Among code that keeps them, as Go's or V8's, that chain
 * leads on where the copy ends, or where a program switched its stack.
 *
 * The chain is used only where it is known to go through the walk's last
 * frame: the frame pointers in the copy lead to the very place of its return
 * address.  It is followed as long as each function keeps the frame pointer:
 * of one that does not, the kernel skips the caller.
 *
 * Threads: nothing is shared.  Cost: one pass over the chain.
 */
#ifndef SEAM_KERNEL_CHAIN_H
#define SEAM_KERNEL_CHAIN_H

#include "unwind/walk/walk.h"

/* A callchain of the kernel's; the addresses are leaf first. */
struct seam_unwind_chain {
	const uint64_t *words;
	size_t n_kernel;	/* words before the user's marker */
	const uint64_t *user;	/* after it */
	size_t n_user;		/* addresses */
};

/* The parts of the @n @words, which are borrowed. */
struct seam_unwind_chain seam_unwind_chain_of(const uint64_t *words, size_t n);

/* How the kernel's chain goes on after a walk: its addresses from @first on. */
struct seam_unwind_rest {
	size_t first, n;	/* n 0: it does not */
	bool is_whole;		/* the last one is a root */
};

/*
 * The callers of the last frame of @stack, a walk from @start in @memory, that
 * @chain has.
 *
 * A walk that left the code went wrong a frame before, or two, as where Go
 * switches stacks (runtime.systemstack): the last frame of @stack is removed,
 * if only without it the chain leads to a root.
 */
struct seam_unwind_rest
seam_unwind_kernel_follow(const struct seam_unwind_space *space,
			  const struct seam_unwind_memory *memory,
			  const struct seam_unwind_registers *start,
			  const struct seam_unwind_chain *chain,
			  struct seam_unwind_stack *stack);

#endif /* SEAM_KERNEL_CHAIN_H */
