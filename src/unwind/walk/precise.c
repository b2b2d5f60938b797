/* SPDX-License-Identifier: MIT */
/* precise.c - after calls and returns; the contract is in precise.h */
#include "unwind/walk/precise.h"

#include <linux/perf_event.h>

/* A prefix may be before the longest call. */
enum { MIN_CALL_BYTES = 2, MAX_CALL_BYTES = SEAM_UNWIND_CALL_BYTES + 1 };

static bool is_after_call(const struct seam_unwind_space *space, uint64_t pc)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES];
	size_t n = space->code_before(space->context, pc, bytes);

	return seam_unwind_is_call(bytes + sizeof(bytes), n);
}

/* "ret", "ret n", with "rep" or "bnd" before it. */
static bool is_return(const struct seam_unwind_space *space, uint64_t pc)
{
	uint8_t bytes[SEAM_UNWIND_CALL_BYTES] = { 0 };
	const uint8_t *code = bytes + sizeof(bytes) - 2;

	if (space->code_before(space->context, pc + 2, bytes) < 2)
		return false;
	if (code[0] == 0xf2 || code[0] == 0xf3)
		code++;
	return code[0] == 0xc3 || code[0] == 0xc2;
}

bool seam_unwind_precise(const struct seam_unwind_space *space,
			 const struct seam_unwind_memory *memory,
			 struct seam_unwind_registers *regs)
{
	uint64_t pc = regs->value[SEAM_X86_64_RIP], pushed;

	if (seam_unwind_read(memory, regs->value[SEAM_X86_64_RSP], &pushed) &&
	    pushed - pc >= MIN_CALL_BYTES && pushed - pc <= MAX_CALL_BYTES &&
	    is_after_call(space, pushed)) {
		regs->value[SEAM_X86_64_RSP] += sizeof(pushed);
		return true;
	}
	return !is_return(space, pc);
}

/* In the kernel, the user registers are those of its entry. */
static bool is_precise(uint16_t misc)
{
	return misc & PERF_RECORD_MISC_EXACT_IP &&
	       (misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
		       PERF_RECORD_MISC_USER;
}

void seam_unwind_walk_sample(const struct seam_unwind_space *space,
			     const struct seam_unwind_memory *memory,
			     const struct seam_unwind_registers *start,
			     uint16_t misc, struct seam_unwind_stack *stack)
{
	struct seam_unwind_registers regs = *start;
	size_t max = stack->max;

	if (is_precise(misc) && !seam_unwind_precise(space, memory, &regs))
		stack->max = 1;
	seam_unwind_walk(space, memory, &regs, stack);
	if (stack->max < max && stack->end == SEAM_UNWIND_TOO_DEEP)
		stack->end = SEAM_UNWIND_UNKNOWN_REGISTER;
	stack->max = max;
}
