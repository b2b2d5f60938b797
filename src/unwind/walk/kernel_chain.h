/* SPDX-License-Identifier: MIT */
/*
 * kernel_chain.h - where a walk ends early, the kernel's callchain may go on
 *
 * A sample may have both: registers with a copy of the stack, and the user
 * part of the kernel's own callchain, which follows frame pointers through
 * the whole stack.  Among code that keeps them, as Go's or V8's, that chain
 * leads on where the copy ends, or where a program switched its stack.
 *
 * The two meet at the return address at which the walk ended.  A recursion
 * has that address many times: the place is the one before which the most
 * frames are equal, and of several the innermost.
 *
 * Threads: nothing is shared.  Cost: one pass over the chain; in recursions at
 * most 256 comparisons for each of its addresses.
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
	bool has_more;		/* a word that is no address, as a frame */
				/* pointer may lead to */
};

/* The parts of the @n @words, which are borrowed. */
struct seam_unwind_chain seam_unwind_chain_of(const uint64_t *words, size_t n);

/* Whether it was cut, by the limit @max, which does not count the markers. */
bool seam_unwind_chain_is_cut(const struct seam_unwind_chain *chain,
			      size_t max);

/*
 * The index in @chain, the @n user addresses of the kernel's callchain, leaf
 * first, of the caller of @stack's last frame.  @n where the walk needs no
 * more, or where the chain does not lead on from it.
 */
size_t seam_unwind_kernel_rest(const struct seam_unwind_stack *stack,
			       const uint64_t *chain, size_t n);

/* How the kernel's chain goes on after a walk: its addresses from @first on. */
struct seam_unwind_rest {
	size_t first, n;	/* those that are in code; n 0: it does not */
	bool is_whole;		/* they lead to a root, as far as is known */
};

/*
 * As above, but only as far as the chain is in code: the kernel follows any
 * value of rbp.  It leads to a root if it ends where nothing called the code,
 * or in code without CFI, as Go's; @is_cut: the kernel's limit ended it
 * (kernel.perf_event_max_stack, sample_max_stack).
 *
 * A walk that left the code went wrong a frame before, or two, as where Go
 * switches stacks (runtime.systemstack): the last frame of @stack is removed,
 * if only without it the chain leads to a root.
 */
struct seam_unwind_rest
seam_unwind_kernel_follow(const struct seam_unwind_space *space,
			  struct seam_unwind_stack *stack,
			  const uint64_t *chain, size_t n, bool is_cut);

#endif /* SEAM_KERNEL_CHAIN_H */
