/* SPDX-License-Identifier: MIT */
/*
 * repair.h - a walk that begins without the frame pointer
 *
 * Of a waiting thread that is read from outside, only rsp and rip are known.
 * The walk makes a register known where a frame has saved it; rules of code
 * without frame pointers need no other.  But the rules of the innermost
 * function with a frame pointer need rbp, which often no frame below has
 * saved.  It is found once, as from there on each frame has the caller's:
 *
 *   1. The function's code has the distance from rsp to rbp (stack_height.h).
 *   2. The stack verifies it: the word above the saved rbp is an address after
 *	a call, the rules lead to the same word, and the walk from there on
 *	reaches the root, or frames that the copy of the stack ends in.
 *   3. Of a function that aligns its stack there are a few distances: exactly
 *	one may pass.
 *
 * Else the stack ends with SEAM_UNWIND_UNKNOWN_REGISTER.  Of a function with
 * alloca() or an array of variable length it always does: its frame may hold
 * the frames of earlier calls, which would pass as well.
 *
 * Cost: 1 to 20 us more for a stack that needs it, and 64 KiB of stack.
 * Threads: nothing is shared.
 */
#pragma once

#include "unwind/walk/walk.h"

/* As seam_unwind_walk(); @start may have rbp unknown. */
void seam_unwind_walk_repaired(const struct seam_unwind_space *space,
			       const struct seam_unwind_memory *memory,
			       const struct seam_unwind_registers *start,
			       struct seam_unwind_stack *stack);
