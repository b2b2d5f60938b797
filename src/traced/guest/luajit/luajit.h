/* SPDX-License-Identifier: MIT */
/*
 * luajit.h - the LuaJIT adapter's parts that run in handlers
 *
 *	bridge.c	from a frame of the VM to its caller on the host's stack
 *	stack.c		from activations to segments of frames
 *	names.c		ids, names and lines
 *
 * Nothing here is trusted: each object is read with checks of its type and of
 * the pointers that lead back from it.
 */
#ifndef SEAM_LUAJIT_H
#define SEAM_LUAJIT_H

#include "traced/guest/guest_adapter.h"
#include "traced/guest/luajit/luajit_layout.h"

/* Kinds of activations: how the host's stack ran into the VM. */
enum seam_luajit_activation {
	/* interrupted in the interpreter: all registers are known */
	SEAM_LUAJIT_AT_INSTRUCTION,
	/* the interpreter called C code */
	SEAM_LUAJIT_AT_CALL,
	/* in a trace, or on the way out of one, interrupted or in C code */
	SEAM_LUAJIT_IN_TRACE,
};

/* Notes of an activation. */
enum {
	SEAM_LUAJIT_NOTE_CFRAME,
	SEAM_LUAJIT_NOTE_PC,		/* the machine's, not bytecode's */
	SEAM_LUAJIT_NOTE_RBX,
	SEAM_LUAJIT_NOTE_RBP,
	SEAM_LUAJIT_NOTE_RDX,
};

/* lua_State, read once and checked. */
struct seam_luajit_thread {
	uint64_t addr, g, base, stack, maxstack, cframe;
};

/* A function that runs, with the bytecode that is next in it. */
struct seam_luajit_frame {
	uint64_t addr;		/* of the link; the function is before it */
	uint64_t object;	/* prototype, C function, or number */
	uint64_t pc;		/* after the current instruction; or 0 */
	uint32_t segment;	/* which of the thread's, from 0 */
	uint8_t kind;		/* enum seam_guest_frame_kind */
};

/* --- bridge.c --- */

bool seam_luajit_has_code(const void *object, uint64_t pc, bool is_in_image);
enum seam_unwind_end
seam_luajit_bridge(const void *object, struct seam_guest_walk *walk,
		   struct seam_unwind_registers *regs, bool is_exact);

static inline bool seam_luajit_is_code(const struct seam_luajit *lj,
				       uint64_t pc)
{
	return pc - lj->code_start < lj->code_end - lj->code_start;
}

/* --- stack.c --- */

/* Read the lua_State at @addr; false: it is none, or its VM is none. */
bool seam_luajit_read_thread(const struct seam_luajit *lj,
			     struct seam_guest_memory *memory, uint64_t addr,
			     struct seam_luajit_thread *thread);

/* Whether @base may be the first slot of a function of @thread. */
static inline bool
seam_luajit_is_base(const struct seam_luajit_thread *thread, uint64_t base)
{
	return (base & 7) == 0 && base >= thread->stack + 16 &&
	       base <= thread->maxstack;
}

/* Whether @pc is in the bytecode of the prototype, after an instruction. */
bool seam_luajit_has_pc(const struct seam_luajit *lj,
			struct seam_guest_memory *memory, uint64_t proto,
			uint64_t pc);

void seam_luajit_walk(const void *object, struct seam_guest_walk *walk,
		      size_t first);

/* --- names.c --- */

/* The id of a frame's function, with what else the sample has of it. */
uint32_t seam_luajit_id(const struct seam_luajit *lj,
			struct seam_guest_walk *walk,
			const struct seam_luajit_frame *frame,
			const struct seam_luajit_frame *caller,
			struct seam_guest_origin *origin);

/* The line of the instruction before @pc; 0: not known. */
uint32_t seam_luajit_line(const struct seam_luajit *lj,
			  struct seam_guest_memory *memory, uint64_t proto,
			  uint64_t pc);

/* The id of trace @number of the VM at @g, or 0; where it starts. */
uint32_t seam_luajit_trace(const struct seam_luajit *lj,
			   struct seam_guest_walk *walk, uint64_t g,
			   uint32_t number, struct seam_guest_origin *origin,
			   uint64_t *start_pc);

#endif /* SEAM_LUAJIT_H */
