/* SPDX-License-Identifier: MIT */
/*
 * sample_stack.h - from registers and a copy of the stack to a callchain
 *
 * The one way from a sample to its user stack, for the recorder and the reader
 * (doc/design/stacks.md):
 *
 *	seam_sample_stack_walk()	registers, walk, the kernel's chain
 *	seam_sample_stack_chain()	the callchain
 *	seam_sample_stack_raw()		wire/perf/unwound.h
 *
 * A precise sample (PERF_RECORD_MISC_EXACT_IP) has the address of the
 * instruction that caused the event, and the registers after it.  After a call
 * the return address was pushed, which is taken back.  After a return the
 * registers are the caller's, and the address of the return's target is not in
 * the sample: the stack is one frame, and ends by SEAM_STACK_LOST_REGISTER.
 *
 * Threads: one for each struct.
 * Source: Intel SDM, volume 3B, "Precise Event Based Sampling"; Linux,
 * arch/x86/events/intel/ds.c, setup_pebs_fixed_sample_data().
 */
#pragma once

#include "unwind/walk/walk.h"
#include "wire/perf/perf_sample.h"
#include "wire/perf/unwound.h"
#include "wire/stack_counts.h"

enum {
	/* Frames of a user stack, of at least 16 bytes: a copy of 64 KiB. */
	SEAM_SAMPLE_STACK_FRAMES = 4096,
};

/*
 * A sample may have both: registers with a copy of the stack, and the user part
 * of the kernel's own callchain, which follows frame pointers through the whole
 * stack.  Among code that keeps them, as Go's or V8's, that chain leads on
 * where the copy ends, or where a program switched its stack.
 *
 * The chain is used only where it is known to go through the walk's last
 * frame: the frame pointers in the copy lead to the very place of its return
 * address.  It is followed as long as each function keeps the frame pointer:
 * of one that does not, the kernel skips the caller.
 */
struct seam_unwind_chain {
	const uint64_t *words;
	size_t n_kernel;	/* words before the user's marker */
	const uint64_t *user;	/* after it */
	size_t n_user;		/* addresses */
};

/* How the kernel's chain goes on after a walk: its addresses from @first on. */
struct seam_unwind_rest {
	size_t first, n;	/* n 0: it does not */
	bool is_whole;		/* the last one is a root */
};

/* Zeroed is valid; one struct serves one sample after the other. */
struct seam_sample_stack {
	/* Results of the walk: */
	struct seam_unwind_stack walk;		/* .n 0: there is no stack */
	enum seam_stack_end end;
	struct seam_unwind_chain recorded;	/* borrowed from the caller */
	struct seam_unwind_rest rest;		/* of .recorded, after .walk */

	SEAM_ARRAY(uint64_t) words;
	struct seam_unwind_frame frames[SEAM_SAMPLE_STACK_FRAMES];
	uint64_t cfas[SEAM_SAMPLE_STACK_FRAMES];
	uint8_t raw[SEAM_UNWOUND_MAX_BYTES];
};

/*
 * Unwind @sample, of a record with bits @misc in its header, whose callchain is
 * the @n words at @chain; look-ups in @space.  Without 64-bit registers, as
 * within exec() or of a 32-bit task, there is no stack, and .end is
 * SEAM_STACK_ABSENT or SEAM_STACK_OF_32_BIT.
 */
void seam_sample_stack_walk(struct seam_sample_stack *stack,
			    const struct seam_perf_sample *sample,
			    uint16_t misc, const uint64_t *chain, size_t n,
			    const struct seam_unwind_space *space);

/*
 * Make the callchain of a stack: the kernel's part as recorded, a marker, the
 * frames, what the recorded chain adds.  Set .words.  False: no memory.
 */
bool seam_sample_stack_chain(struct seam_sample_stack *stack);

/*
 * How the stack was unwound, as RAW data with the size before it; valid until
 * the next call.
 */
struct seam_bytes seam_sample_stack_raw(struct seam_sample_stack *stack);
