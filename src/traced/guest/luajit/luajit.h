/* SPDX-License-Identifier: MIT */
/*
 * luajit.h - the LuaJIT adapter's parts that run in handlers
 *
 *	bridge.c	from a frame of the VM to its caller on the host's stack
 *	thread.c	lua_State, and the frames of its stack
 *	top.c		where the innermost activation is: which function runs
 *	segments.c	from activations to segments of frames
 *	names.c		ids, names and lines
 *
 * Nothing here is trusted: each object is read with checks of its type and of
 * the pointers that lead back from it.
 */
#ifndef SEAM_LUAJIT_H
#define SEAM_LUAJIT_H

#include "traced/guest/guest_walk.h"
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

enum {
	SEAM_LUAJIT_MAX_THREADS = 16,	/* in one sample */
	SEAM_LUAJIT_MAX_FRAMES = 1500,	/* of all of them */
	SEAM_LUAJIT_MAX_DEPTH = 40000,	/* frames looked at */
};

/* The stack of a thread, as far as it was walked. */
struct seam_luajit_stack {
	struct seam_luajit_thread thread;
	struct seam_luajit_frame *frames;
	/*
	 * Where there is no room for all, .n_inner from the innermost on, and
	 * of .n_outer others those that a ring after them has: the outermost.
	 */
	uint32_t room, n_inner, n_outer;
	uint32_t n_segments;
	uint32_t next;		/* segment that the next activation has */
	uint8_t end;		/* enum seam_guest_end */
	bool is_first_empty;	/* the innermost activation has no frame yet */
};

/* In the sample's scratch. */
struct seam_luajit_scratch {
	struct seam_luajit_stack stacks[SEAM_LUAJIT_MAX_THREADS];
	struct seam_luajit_frame frames[SEAM_LUAJIT_MAX_FRAMES];
	uint32_t n_stacks, n_frames;
};

/* --- bridge.c --- */

bool seam_luajit_has_code(const void *object, uint64_t pc, bool is_in_image);
enum seam_guest_bridged
seam_luajit_bridge(const void *object, struct seam_guest_walk *walk,
		   struct seam_guest_registers *regs, bool is_exact);

static inline bool seam_luajit_is_code(const struct seam_luajit *lj,
				       uint64_t pc)
{
	return pc - lj->code_start < lj->code_end - lj->code_start;
}

/* --- thread.c --- */

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

/*
 * The function at @frame, whose .addr is set: fills .object and .kind.  False:
 * there is none.  *@is_thread_mark: it is the mark of a stack's bottom.
 */
bool seam_luajit_read_function(const struct seam_luajit *lj,
			       struct seam_guest_memory *memory,
			       const struct seam_luajit_thread *thread,
			       struct seam_luajit_frame *frame,
			       bool *is_thread_mark);

/* Whether @pc is in the bytecode of the prototype, after an instruction. */
bool seam_luajit_has_pc(const struct seam_luajit *lj,
			struct seam_guest_memory *memory, uint64_t proto,
			uint64_t pc);

/* The frame of the Lua function that called, by the call's instruction. */
static inline bool seam_luajit_lua_caller(struct seam_guest_memory *memory,
					  uint64_t frame, uint64_t pc,
					  uint64_t *caller)
{
	uint32_t instruction;

	if (pc < 4096 || pc >> 47 ||
	    !seam_guest_u32(memory, pc - 4, &instruction))
		return false;
	*caller = frame - 8 * (2 + (uint64_t)(instruction >> 8 & 0xff));
	return true;
}

/*
 * Walk the stack down from the function whose first slot is @base.  @pc: its
 * next bytecode instruction, or 0; @link: its frame's link where that has not
 * been stored yet, or 0.  False: what is there is no stack of frames; the
 * stack is empty then.
 */
bool seam_luajit_walk_stack(const struct seam_luajit *lj,
			    struct seam_guest_memory *memory,
			    struct seam_luajit_stack *stack, uint64_t base,
			    uint64_t pc, uint64_t link);

/* --- top.c --- */

/* Walk the stack of the sample's innermost activation. */
void seam_luajit_walk_top(const struct seam_luajit *lj,
			  struct seam_guest_walk *walk,
			  const struct seam_guest_activation *activation,
			  struct seam_luajit_stack *stack);

/* --- segments.c --- */

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
