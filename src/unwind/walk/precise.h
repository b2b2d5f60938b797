/* SPDX-License-Identifier: MIT */
/*
 * precise.h - the registers of a precise event
 *
 * A precise sample (PERF_RECORD_MISC_EXACT_IP) has the address of the
 * instruction that caused the event, and the registers after it.  The two
 * agree where the instruction left the stack pointer as it was.  After a call
 * the return address has been pushed; after a return the registers are the
 * caller's, and where it returned to is not in the sample.
 *
 * Threads: nothing is shared.
 * Source: Intel SDM, volume 3B, "Precise Event Based Sampling"; Linux,
 * arch/x86/events/intel/ds.c, setup_pebs_fixed_sample_data().
 */
#ifndef SEAM_UNWIND_PRECISE_H
#define SEAM_UNWIND_PRECISE_H

#include "unwind/walk/walk.h"

/*
 * Make @regs agree: those before the call.  False where that cannot be done:
 * after a return the frame has no callers that can be known.
 */
bool seam_unwind_precise(const struct seam_unwind_space *space,
			 const struct seam_unwind_memory *memory,
			 struct seam_unwind_registers *regs);

/*
 * As seam_unwind_walk(), for a sample with bits @misc in its header: of a
 * precise one in user mode, @regs are made to agree first.  After a return the
 * stack is one frame, and ends with SEAM_UNWIND_UNKNOWN_REGISTER.
 */
void seam_unwind_walk_sample(const struct seam_unwind_space *space,
			     const struct seam_unwind_memory *memory,
			     const struct seam_unwind_registers *regs,
			     uint16_t misc, struct seam_unwind_stack *stack);

#endif /* SEAM_UNWIND_PRECISE_H */
