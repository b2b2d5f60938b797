/* SPDX-License-Identifier: MIT */
/*
 * stack_joins.h - outer frames of a stack from other samples of its thread
 *
 * A sample has the top of the user stack only.  The rest of a deeper one is
 * often known from samples in which the thread was less deep: a table leads
 * from a frame to its caller.
 *
 *	(thread, return address and CFA of SEAM_STACK_JOIN_FRAMES frames)
 *		-> (return address, CFA) of the next
 *
 * A stack that the copy cuts is joined where the table leads from its last
 * frames to the root.  Where three frames have had different callers, as the
 * function of an interpreter that two of its places call, an entry of
 * SEAM_STACK_JOIN_MORE_FRAMES frames decides.  On the last try, gaps of the
 * table are bridged by a recursion (recursion.h): what the stack repeats is
 * repeated further, until callers of other samples agree for
 * SEAM_STACK_JOIN_MORE_FRAMES frames at the very same addresses.
 *
 * Estimator: nothing proves that the frames beyond the copy are still those
 * of the other sample: a function may have been called again from elsewhere,
 * at the same depth.  Several equal frames make that rare, and a caller counts
 * only when a second sample had it; where it was seen to change, when more had
 * it since.  In threads where callers hardly ever change, the first counts.
 * False, of all stacks, with copies of 48 KiB: of g++, clang++, php, python3,
 * vim, cmake and bash 0 to 0.08 % against copies of 64 KiB of the same samples
 * (./dev bench joins); of 13 more programs (emacs, ocaml, ruby, node...) 0 to
 * 0.1 %, and against the whole stacks of the stopped programs
 * (bench/whole_stacks --joins) 0 to 0.7 %.  With copies of 24 KiB up to 0.7 %,
 * with 16 KiB up to 1.1 %.  The thresholds were compared on recordings of the
 * same programs.
 *
 * Where the stacks that the copy cuts have another caller at the same depth
 * than all that it holds, no sample shows it.  A node program made for that (a
 * recursion 900 and 450 deep from two places, less deep ones from a third)
 * has 0 to 0.6 % false stacks with copies of 48 KiB, up to 10 % with 24 KiB.
 * So has a recursion of JIT code that is compiled anew while it runs, until a
 * sample has seen its outer frames again.
 *
 * The recorder and the reader of recordings with copies of stacks enter all
 * stacks in the order of the records.
 *
 * Threads: one.
 * Source: the idea is simpleperf's (callchain joiner).
 */
#ifndef SEAM_STACK_JOINS_H
#define SEAM_STACK_JOINS_H

#include "unwind/walk/walk.h"

enum {
	SEAM_STACK_JOINS_MAX = 65536,	/* entries: 2 MiB */
	SEAM_STACK_JOIN_WAYS = 4,	/* places for an entry */
	SEAM_STACK_JOIN_FRAMES = 3,	/* that must be equal */
	SEAM_STACK_JOIN_MORE_FRAMES = 12,
	/*
	 * Further samples with the same caller; the same after the caller
	 * has changed, for each time that it did, up to a limit.
	 */
	SEAM_STACK_JOIN_EQUAL = 1,
	SEAM_STACK_JOIN_EQUAL_AGAIN = 4,
	SEAM_STACK_JOIN_MAX_CHANGES = 4,
	/*
	 * The first caller counts where at most one of so many has changed.
	 * Measured: clang++ and vim one of 1,100 and more, g++ one of 100,
	 * bash of 28, a recursion at random of 2.
	 */
	SEAM_STACK_JOIN_STEADY = 256,
	SEAM_STACK_JOIN_THREADS = 1024,
	/* A stack that is less deep than this part of a copy is not entered. */
	SEAM_STACK_JOIN_PART = 8,
};

struct seam_stack_join {
	uint64_t key;			/* a hash; 0: free */
	uint64_t pc, sp;		/* of the caller */
	uint32_t used;			/* when: n_learned */
	uint16_t n_equal;		/* times, since it changed */
	uint8_t n_changed;		/* times, up to MAX_CHANGES */
	bool is_root;			/* the caller is the root */
};

/* How often a caller that was seen again was the same, in some threads. */
struct seam_stack_join_thread {
	uint32_t n_equal, n_changed;
};

/* Zeroed is valid and empty; the table is allocated when it is needed. */
struct seam_stack_joins {
	struct seam_stack_join *items;
	struct seam_stack_join_thread threads[SEAM_STACK_JOIN_THREADS];
	uint32_t n_learned;		/* stacks */
};

/*
 * Whether @stack, of a sample with a copy of @copy_bytes, was cut, or may lead
 * one that was cut to the root.
 */
bool seam_stack_joins_want(const struct seam_unwind_stack *stack,
			   size_t copy_bytes);

/* Enter the frames of a stack of thread @tid. */
void seam_stack_joins_learn(struct seam_stack_joins *joins, int32_t tid,
			    const struct seam_unwind_stack *stack);

/*
 * Append the missing frames to @stack, which was cut, as far as its root.
 * @is_last_try: no later samples will have its callers, gaps are bridged.
 * Returns how many; 0, and nothing was appended: they are not known.
 */
size_t seam_stack_joins_complete(struct seam_stack_joins *joins, int32_t tid,
				 bool is_last_try,
				 struct seam_unwind_stack *stack);

void seam_stack_joins_fini(struct seam_stack_joins *joins);

#endif /* SEAM_STACK_JOINS_H */
