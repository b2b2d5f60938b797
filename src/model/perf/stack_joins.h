/* SPDX-License-Identifier: MIT */
/*
 * stack_joins.h - outer frames of a stack from other samples of its thread
 *
 * A sample has a copy of the top of the user stack only.  Of a deeper stack, or
 * of one that a signal left, the rest is often known from samples in which the
 * thread was less deep.  All stacks of a thread make a table:
 *
 *	(return address, CFA) -> (return address, CFA) of the caller; or root
 *
 * where the CFA, that of the frame itself, is also the place in memory that the
 * caller's return address was read from.  A stack that was cut goes on along
 * the table to the root, or stays as it is.
 * Nothing proves that the callers were the same, so:
 *
 *   - A second caller that any sample of the recording has for an entry forbids
 *     the entry.
 *   - A caller that fewer than SEAM_STACK_JOIN_SAMPLES samples have is not
 *     used; of code that is called from several places of the process, wherever
 *     its frames are, as a recursion, SEAM_STACK_JOIN_MORE_SAMPLES.
 *   - Joined frames stand after the marker SEAM_CALLCHAIN_JOINED, which every
 *     view shows, and the stack does not count as complete.
 *
 * A thread that executes another program, and an address at which other code
 * was mapped or compiled, begin anew.  The order of samples has no influence.
 *
 * Estimator: a stack is joined wrongly where all samples that hold the outer
 * frames came there from one caller, and the deeper ones from another.
 *
 * The positions of frames come from RAW data (wire/perf/unwound.h), which the
 * recorder wrote, or the reader for stacks that it unwound (stack_dumps.h).
 *
 * Threads: one.  Cost: without a stack that was cut, four bytes of each sample;
 * else a hash of the RAW data of each sample of the threads that have one, and
 * some look-ups for each frame of their distinct stacks.
 */
#pragma once

#include "model/perf/callchains.h"
#include "model/perf/tasks.h"
#include "symbol/jit/jit_code.h"

enum {
	SEAM_STACK_JOIN_SAMPLES = 2,	/* that agree */
	/* Of two callers in turn, one in 4096 would not have been seen. */
	SEAM_STACK_JOIN_MORE_SAMPLES = 12,
	SEAM_STACK_JOIN_FRAMES = 4096,	/* of a stack */
};

/* How the stack of a sample was unwound. */
struct seam_stack_walk {
	const uint8_t *raw;		/* wire/perf/unwound.h */
	uint32_t raw_bytes;
	uint32_t sample;		/* in the columns */
	uint32_t stack;			/* a distinct one; while joining */
};

struct seam_stack_walks {
	struct seam_stack_walk *items;
	size_t n, cap;
};

/*
 * Set how the stack of each sample of @walks ended, in @profile's samples,
 * whose stack is a chain of @chains, their thread a key of @tasks.  @does_join:
 * join those that were cut; @jit is indexed, or NULL.  0 or -ENOMEM.
 */
int seam_stack_joins(struct seam_profile *profile,
		     struct seam_callchains *chains,
		     const struct seam_tasks *tasks,
		     struct seam_jit_code *jit, struct seam_stack_walks *walks,
		     bool does_join);
