/* SPDX-License-Identifier: MIT */
/*
 * stack_height.h - how far below its frame pointer a function's stack is
 *
 * Where rbp is lost but rsp is known, the code of a function with a frame
 * pointer tells the difference: "push rbp; mov rbp, rsp" makes it 0, and each
 * push, pop, and addition of a constant changes it.  So all instructions of the
 * function are decoded, in the order of their addresses:
 *
 *   - after a return, or a jump, the difference is that of an earlier jump to
 *     the place; else that of the last jump;
 *   - a loop that changes it, as a probe of each page of a large frame, an
 *     alloca(), and an array of variable length leave it unknown;
 *   - "and rsp, -32" leaves a few values that are possible.
 *
 * Decoding has to reach the address exactly.  The result can still be wrong, as
 * where code is not reached in the order of its addresses: the caller verifies
 * it by the stack.
 *
 * Untrusted bytes: each step decodes at least one, and nothing but the sizes of
 * instructions is followed.
 * Cost: about 10 ns an instruction.  Threads: nothing is shared.
 * Source: Intel SDM, volume 2, appendix A, "Opcode Map".
 */
#pragma once

#include "base/base.h"

struct seam_stack_height {
	uint64_t bytes;		/* rbp - rsp, */
	uint64_t align;		/* or up to so much - 8 more; 0: exactly */
};

/*
 * After the first @n of the @size bytes at @code, a function of x86-64.  False:
 * it has no frame pointer there, or the height is not known.
 */
bool seam_stack_height_after(const uint8_t *code, size_t size, size_t n,
			     struct seam_stack_height *height);

/*
 * The size of the instruction at @code, within @n bytes; 0: it is none, or
 * longer.
 */
size_t seam_instruction_bytes(const uint8_t *code, size_t n);
