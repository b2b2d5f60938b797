/* SPDX-License-Identifier: MIT */
/*
 * expression.h - DWARF operations that call frame information may use
 *
 * For the few functions whose rules are no register and offset: stubs of the
 * PLT, where the CFA depends on the program counter; signal trampolines, whose
 * registers are in the kernel's frame; functions that align their stack.
 *
 * Work is bounded: at most SEAM_UNWIND_MAX_OPERATIONS operations, on a stack
 * of SEAM_UNWIND_MAX_DEPTH words; the operations are untrusted.
 *
 * Source: DWARF 5, 2.5.1 and 7.7.1; 6.4.2 lists what is not allowed here.
 */
#ifndef SEAM_UNWIND_EXPRESSION_H
#define SEAM_UNWIND_EXPRESSION_H

#include "unwind/step/step.h"

enum {
	SEAM_UNWIND_MAX_OPERATIONS = 256,
	SEAM_UNWIND_MAX_DEPTH = 32,
};

/*
 * Run @expression; @first, unless NULL, is on its stack at the start (the CFA,
 * for registers).  Returns SEAM_UNWIND_CALLER with *@value, or why not.
 */
enum seam_unwind_end
seam_unwind_evaluate(struct seam_bytes expression, const uint64_t *first,
		     const struct seam_unwind_memory *memory,
		     const struct seam_unwind_registers *regs,
		     uint64_t *value);

#endif /* SEAM_UNWIND_EXPRESSION_H */
