/* SPDX-License-Identifier: MIT */
/*
 * hidden_callers.h - callers of a frame that ends beyond the copy
 *
 * Where a stack is cut, the walk still has the place of the next frame: the
 * frame's CFA.  Its return address, which is there, is not known, and if the
 * frame is larger than the copy, as a parser's with its own stack, no sample
 * ever has it.  But samples taken while that caller had called something else,
 * less deep, have the frame at this place, and those beyond it:
 *
 *	(thread, place) -> some address in the caller, its two callers
 *
 * The return address is then that after the caller's only call of the cut
 * function, if it has just one (sample_code.h).
 *
 * Estimator: as in stack_joins.h, with a call instruction for the frames that
 * have to be equal there.
 *
 * Learned are only threads that lately had such a frame of a fourth of the
 * copy or more: it is that much work again (stack_joins.h).
 *
 * Threads: one.
 */
#ifndef SEAM_HIDDEN_CALLERS_H
#define SEAM_HIDDEN_CALLERS_H

#include "record/stacks/sample_code.h"
#include "unwind/walk/stack_joins.h"

enum {
	SEAM_HIDDEN_CALLERS_MAX = 16384,	/* entries: 1 MiB */
	SEAM_HIDDEN_CALLERS_WAYS = 8,		/* callers of one place */
	SEAM_HIDDEN_CALLERS_THREADS = 256,
	/* Learned stacks, of all threads, after which none is wanted. */
	SEAM_HIDDEN_CALLERS_WANTED = 4096,
};

/* A frame at a place, and its callers. */
struct seam_hidden_caller {
	uint64_t place;			/* a hash; 0: free */
	uint64_t pc;			/* in the frame, the last time */
	struct {
		uint64_t pc, sp;
	} callers[2];
	uint32_t used;			/* when: n_learned */
	uint16_t n_equal;		/* times, since it changed */
	uint8_t n_changed;		/* times, up to MAX_CHANGES */
	uint8_t root;			/* which of callers; 2: none of them */
};

/* Zeroed is valid and empty; the table is allocated when it is needed. */
struct seam_hidden_callers {
	struct seam_hidden_caller *items;
	/* n_learned until which a thread's stacks are learned. */
	uint32_t wanted[SEAM_HIDDEN_CALLERS_THREADS];
	uint32_t n_learned;
	struct seam_found_calls calls;
};

/* Learn stacks of thread @tid from now on. */
void seam_hidden_callers_want(struct seam_hidden_callers *hidden, int32_t tid);

/* Once a round: its code may be read again. */
static inline void
seam_hidden_callers_begin_round(struct seam_hidden_callers *hidden)
{
	hidden->calls.n_bytes = 0;
}

bool seam_hidden_callers_is_wanted(const struct seam_hidden_callers *hidden,
				   int32_t tid);

/* Enter the frames of a stack of thread @tid, if it is wanted. */
void seam_hidden_callers_learn(struct seam_hidden_callers *hidden, int32_t tid,
			       const struct seam_unwind_stack *stack);

/*
 * Append the missing frames to @stack, which was cut and whose next frame is at
 * @place, as far as its root, by @joins from the third one on.  How many; 0,
 * and nothing was appended: they are not known.
 */
size_t seam_hidden_callers_complete(struct seam_hidden_callers *hidden,
				    struct seam_stack_joins *joins,
				    int32_t tid, struct seam_sample_code *code,
				    uint64_t place,
				    struct seam_unwind_stack *stack);

void seam_hidden_callers_fini(struct seam_hidden_callers *hidden);

#endif /* SEAM_HIDDEN_CALLERS_H */
