/* SPDX-License-Identifier: MIT */
/*
 * step.h - from a frame's registers to its caller's
 *
 * One step: the rules for the frame's code give the CFA and the place of each
 * saved register; what the ABI lets a callee change is unknown in the caller.
 * A walk (walk.h) finds the rules for the next program counter and steps again.
 *
 * A step calls nothing but the memory's read function, allocates nothing and
 * does bounded work, so it may run in a signal handler.
 *
 * Threads: nothing is shared.
 * Source: DWARF 5, 6.4.4 "Call Frame Calling Address"; System V ABI for AMD64
 * 1.0, figure 3.4 "Register Usage" for the registers that are preserved.
 */
#pragma once

#include "unwind/rules.h"

/* Registers by column; bit i of .known: value[i] is valid. */
struct seam_unwind_registers {
	uint64_t value[SEAM_UNWIND_COLUMNS];
	uint64_t known;
	uint64_t cfa;	/* found by the last step; 0: it found none */
};

/*
 * Readable memory: a copied part of the stack, else through @read, which may be
 * NULL.  @read returns false where nothing can be read at @addr.
 */
struct seam_unwind_memory {
	const uint8_t *stack;
	uint64_t stack_addr;
	size_t stack_bytes;
	bool (*read)(void *context, uint64_t addr, uint64_t *word);
	void *context;
};

/* An address so far above the end of a copied stack may be on the stack. */
enum { SEAM_UNWIND_MAX_STACK = 64 << 20 };

/* How a step, or a stack, ended. */
enum seam_unwind_end {
	SEAM_UNWIND_CALLER,		/* the registers are the caller's now */
	SEAM_UNWIND_ROOT,		/* the frame has no caller */
	SEAM_UNWIND_UNREADABLE,		/* a word that cannot be read */
	SEAM_UNWIND_UNKNOWN_REGISTER,	/* a rule needs a value that is lost */
	SEAM_UNWIND_WITHOUT_CFI,	/* no rules for this address */
	SEAM_UNWIND_BROKEN_CFI,		/* rules that break the format */
	SEAM_UNWIND_NO_PROGRESS,	/* the caller's frame is not above */
	SEAM_UNWIND_TRUNCATED,		/* the copy of the stack ends before */
	SEAM_UNWIND_NO_MAPPING,		/* nothing executable is mapped there */
	SEAM_UNWIND_TOO_DEEP,		/* more frames than there is room for */
	SEAM_UNWIND_OTHER_STACK,	/* a signal came on another stack */
};

/*
 * Step from the frame that @regs describes to its caller's, by rule @id.
 * Unless the result is SEAM_UNWIND_CALLER, @regs is as it was, but for .cfa.
 * SEAM_UNWIND_ROOT: the rules have the return address undefined.  An address of
 * 0 is a caller like any other.
 */
enum seam_unwind_end
seam_unwind_step(const struct seam_unwind_rules *rules, uint16_t id,
		 const struct seam_unwind_memory *memory,
		 struct seam_unwind_registers *regs);

/* The word at @addr; false where it cannot be read. */
bool seam_unwind_read(const struct seam_unwind_memory *memory, uint64_t addr,
		      uint64_t *word);

/* Why the word at @addr cannot be read: beyond a copied stack, or else. */
enum seam_unwind_end
seam_unwind_unreadable(const struct seam_unwind_memory *memory, uint64_t addr);

static inline bool seam_unwind_has(const struct seam_unwind_registers *regs,
				   unsigned int column)
{
	return column < SEAM_UNWIND_COLUMNS && regs->known >> column & 1;
}
