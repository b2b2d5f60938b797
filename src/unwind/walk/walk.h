/* SPDX-License-Identifier: MIT */
/*
 * walk.h - all frames of a stack
 *
 *	struct seam_unwind_stack stack = { .frames = frames, .max = 256 };
 *	seam_unwind_walk(&space, &memory, &regs, &stack);
 *
 * Call frame information leads from a frame to its caller.  Code that has
 * none (JIT code, hand-written assembly) is left by its frame pointer, if
 * that is plausible: the frame grows, and the return address is in an
 * executable mapping, right after a call instruction where its bytes can be
 * read.  Each frame has the way it was found, and a stack the reason why it
 * ended.
 *
 * The caller provides mappings, rules and code: from the side-band while
 * recording, from a recording, or from the process itself.
 *
 * A stack reaches its root (SEAM_UNWIND_ROOT) only at code that nothing called:
 * its rules have the return address undefined, as those of _start() and
 * clone(); or it is a file's entry point, or where a coroutine begins.  A
 * return address or a frame pointer of 0 is no root: wrong rules lead to such
 * words too.
 *
 * Cost: a look-up and a step a frame, at most @max of each; no allocation, so
 * it may run in a signal handler where the callbacks may.
 * Threads: nothing is shared.
 */
#pragma once

#include "unwind/step/step.h"

enum { SEAM_UNWIND_CALL_BYTES = 7 };	/* the longest call is no longer */

/*
 * The frames of a virtual machine, whose layout only its adapter knows.
 * @step makes @regs the caller's, by @memory, as seam_unwind_step() does; the
 * new program counter is a return address, the stack pointer is not below the
 * one before, registers that are not known are marked so.  Another end ends
 * the stack, but SEAM_UNWIND_WITHOUT_CFI leaves the frame to the rules.
 */
struct seam_unwind_adapter {
	enum seam_unwind_end (*step)(void *context,
				     const struct seam_unwind_memory *memory,
				     struct seam_unwind_registers *regs);
	void *context;
};

/* The code at an address. */
struct seam_unwind_code {
	const struct seam_unwind_rules *rules;	/* NULL: no CFI */
	const struct seam_unwind_adapter *adapter; /* NULL, or before @rules */
	uint16_t id;			/* of the rule in @rules */
	/* enum seam_stack_end, why rules are missing; 0: the code has none */
	uint8_t why;
	/*
	 * The first instructions from the entry point of its file on: where
	 * they have no call frame information, as those of dynamic loaders,
	 * nothing called them.
	 */
	bool is_entry;
};

struct seam_unwind_space {
	/* The code at @addr; false where nothing executable is mapped. */
	bool (*find)(void *context, uint64_t addr,
		     struct seam_unwind_code *code);
	/*
	 * Copy the bytes of code that end before @addr to the end of
	 * @bytes.  The number of bytes, at most SEAM_UNWIND_CALL_BYTES; 0
	 * where they cannot be read: then any step by a frame pointer to
	 * @addr is plausible.
	 */
	size_t (*code_before)(void *context, uint64_t addr, uint8_t *bytes);
	/*
	 * Copy the function that the byte before @addr is in to @bytes.  Its
	 * size, with *@before the bytes of it before @addr; 0 where it is not
	 * known, cannot be read, or has more than @max bytes.  For repair.h;
	 * may be NULL.
	 */
	size_t (*function)(void *context, uint64_t addr, uint8_t *bytes,
			   size_t max, size_t *before);
	void *context;
};

/* How a frame was found. */
enum seam_unwind_quality {
	SEAM_UNWIND_BY_REGISTERS,	/* the innermost: no step was needed */
	SEAM_UNWIND_BY_CFI,		/* or by the kernel's signal frame */
	SEAM_UNWIND_BY_FRAME_POINTER,
	SEAM_UNWIND_BY_ADAPTER,
};

struct seam_unwind_frame {
	/*
	 * A return address, but for the first and interrupted frames; where an
	 * exception goes on, the address after its landing pad's first byte.
	 */
	uint64_t pc;
	uint64_t sp;			/* the stack pointer in this frame */
	uint8_t quality;		/* enum seam_unwind_quality */
	bool is_interrupted;		/* pc is where a signal came */
};

struct seam_unwind_stack {
	struct seam_unwind_frame *frames;	/* the caller's; leaf first */
	size_t max;
	size_t n;
	uint8_t end;			/* enum seam_unwind_end */
	/*
	 * Of the frame without a caller; with SEAM_UNWIND_NO_MAPPING of its
	 * caller, which is no frame.
	 */
	uint64_t end_pc;
	/* Of the last frame, whose caller could not be read; 0: not known. */
	uint64_t end_cfa;
};

/* Walk from the frame that @regs describes.  @stack is filled anew. */
void seam_unwind_walk(const struct seam_unwind_space *space,
		      const struct seam_unwind_memory *memory,
		      const struct seam_unwind_registers *regs,
		      struct seam_unwind_stack *stack);

/*
 * Append the frames from @regs on, of which the first was found as @from says
 * (quality, is_interrupted).  @regs become those of the last frame.
 */
void seam_unwind_walk_on(const struct seam_unwind_space *space,
			 const struct seam_unwind_memory *memory,
			 struct seam_unwind_registers *regs,
			 const struct seam_unwind_frame *from,
			 struct seam_unwind_stack *stack);

/*
 * Whether @pc is no return address of a call, but one that was put on a new
 * stack, where the function returns that runs on it: glibc's __start_context(),
 * Go's runtime.goexit().  A call in __start_context() counts as well.
 *
 * Source: glibc, sysdeps/unix/sysv/linux/x86_64/__start_context.S; Go,
 * runtime/asm_amd64.s, "The top-most function running on a goroutine returns
 * to goexit+PCQuantum".
 */
bool seam_unwind_is_stack_entry(const struct seam_unwind_space *space,
				uint64_t pc);

/*
 * Whether the @n bytes that end at @end may be, or end in, a call
 * instruction of x86-64.  Source: Intel SDM, volume 2A, CALL.
 */
bool seam_unwind_is_call(const uint8_t *end, size_t n);

/*
 * The size of the operand at @modrm, from its ModRM byte on; 0: it has more
 * than the @left bytes.
 */
size_t seam_unwind_operand_bytes(const uint8_t *modrm, size_t left);
