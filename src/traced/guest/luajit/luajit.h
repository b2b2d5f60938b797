/* SPDX-License-Identifier: MIT */
/*
 * luajit.h - the adapter for LuaJIT 2.1 with 64-bit pointers (GC64)
 *
 * Others are refused, with the reason.  Found by the symbols of its public
 * interface: in a library, or in a program that exports them.
 *
 *	calibrate.c	attach: the layout of a build, by experiments
 *	prove.c		samples against the public interface
 *	in handlers:
 *	bridge.c	from a frame of the VM to its caller on the host's stack
 *	stack.c		from activations to segments of frames
 *	names.c		ids, names and lines
 *
 * Handlers trust nothing: each object is read with checks of its type and of
 * the pointers that lead back from it.
 */
#pragma once

#include "traced/guest/guest_adapter.h"
#include "traced/guest/luajit/lua_api.h"

/*
 * --- where one build of LuaJIT 2.1 keeps what a walk needs
 *
 * All of it is found by experiment (calibrate.c) and checked against the VM's
 * public interface (prove.c); nothing is taken from a header of LuaJIT's.  The
 * names are those of LuaJIT's source.
 *
 * What is not an experiment's result is the design of this VM, the same in all
 * builds for x86-64 with 64-bit pointers (GC64), and checked by the proof:
 *
 *  - a value is 8 bytes, its type in the upper 17 bits, a pointer in the
 *    lower 47;
 *  - a frame of a Lua stack is two values, the function and a link: the
 *    caller's bytecode address, or a distance and a type in the low 3 bits;
 *  - the interpreter keeps BASE, the first slot of the running function, in
 *    rdx, the address of the next bytecode instruction in rbx, the address
 *    of its dispatch table, at a fixed distance from the VM's global state, in
 *    r14; each activation has a C frame of one size at rsp.
 */

/* The types of objects and values; see "type tags" in lj_obj.h. */
enum {
	SEAM_LUAJIT_STRING = 4,
	SEAM_LUAJIT_THREAD = 6,
	SEAM_LUAJIT_PROTO = 7,
	SEAM_LUAJIT_FUNCTION = 8,
	SEAM_LUAJIT_TRACE = 9,
	SEAM_LUAJIT_TYPE_SHIFT = 47,
	SEAM_LUAJIT_MAX_TRACES = 1 << 16,
};

/* Kinds of a frame's link that is no bytecode address; see lj_frame.h. */
enum {
	SEAM_LUAJIT_FRAME_C = 1,
	SEAM_LUAJIT_FRAME_CONT = 2,
	SEAM_LUAJIT_FRAME_VARG = 3,
	SEAM_LUAJIT_FRAME_CP = 5,
};

/* Values of vmstate, each its complement; from 0 on it is a trace's number. */
enum {
	SEAM_LUAJIT_INTERP, SEAM_LUAJIT_C, SEAM_LUAJIT_GC, SEAM_LUAJIT_EXIT,
	SEAM_LUAJIT_RECORD, SEAM_LUAJIT_OPT, SEAM_LUAJIT_ASM,
	SEAM_LUAJIT_N_STATES,
};

/* Offsets of fields, in bytes, of the struct whose name they begin with. */
struct seam_luajit_offsets {
	/* lua_State */
	uint16_t l_glref, l_base, l_top, l_maxstack, l_stack, l_cframe;
	uint16_t l_stacksize;
	/* global_State; trace and sizetrace are of jit_State, behind it */
	uint16_t g_vmstate, g_mainthref, g_cur_l, g_jit_base;
	uint16_t g_trace, g_sizetrace, g_dispatch;
	/* GCfunc, Lua's and C's */
	uint16_t f_pc, f_c;
	/* GCproto; pt_bytes: its size, where the bytecode begins */
	uint16_t pt_bytes, pt_sizebc, pt_k, pt_chunkname, pt_firstline;
	uint16_t pt_numline, pt_lineinfo, pt_uvinfo, pt_varinfo;
	/* GCstr; s_bytes: its size, where the text begins */
	uint16_t s_len, s_bytes;
	/* GCtrace */
	uint16_t t_startpt, t_startpc, t_number;
	/* the interpreter's C frame, from rsp on */
	uint16_t cf_l, cf_pc, cf_prev, cf_nres, cf_bytes;
};

/* Numbers of the bytecode instructions that name a called function. */
struct seam_luajit_opcodes {
	uint8_t mov, gget, uget, tgets, call;	/* CALLM is one less */
};

/* Code that changes rsp: at @addr, the caller's rsp is rsp + @bytes. */
struct seam_luajit_edge {
	uint32_t addr;			/* from code_start on */
	uint32_t bytes;
};

enum { SEAM_LUAJIT_MAX_EDGES = 256, SEAM_LUAJIT_MAX_BUILTINS = 256,
       SEAM_LUAJIT_BUILTIN_NAME = 32 };

/* Constant from the calibration on. */
struct seam_luajit {
	struct seam_luajit_offsets at;
	struct seam_luajit_opcodes op;
	/* The interpreter, as its call frame information has it. */
	uint64_t code_start, code_end;
	/* The handler of trace exits in it. */
	uint64_t exit_start, exit_end;
	/* Behind it, subroutines that C code and traces call as well. */
	uint64_t subroutines_end;
	/* Where C code enters it: all but callbacks. */
	uint64_t entry_start, entry_end;
	/* Prologues and epilogues, ascending; first bit of a byte set. */
	struct seam_luajit_edge edges[SEAM_LUAJIT_MAX_EDGES];
	size_t n_edges;
	/* By number: "string.format"; "" where none is known. */
	char builtins[SEAM_LUAJIT_MAX_BUILTINS][SEAM_LUAJIT_BUILTIN_NAME];
};

/* Whether an object of @type is at @addr: the byte after its marks says so. */
static inline bool seam_luajit_is(struct seam_guest_memory *memory,
				  uint64_t addr, uint8_t type)
{
	uint8_t found;

	return addr && !(addr & 7) &&
	       seam_guest_u8(memory, addr + 9, &found) && found == type;
}

/* What attach returns: the adapter's constants first. */
struct seam_luajit_object {
	struct seam_luajit lj;
	struct seam_lua_api api;
};

/* --- a walk --- */

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

/*
 * The id of a frame's function, with what else the sample has of the frame.
 * *@line: of the instruction before the frame's pc; 0: not known.
 */
uint32_t seam_luajit_id(const struct seam_luajit *lj,
			struct seam_guest_walk *walk,
			const struct seam_luajit_frame *frame,
			const struct seam_luajit_frame *caller,
			struct seam_guest_origin *origin, uint32_t *line);

/* The id of trace @number of the VM at @g, or 0; where it starts. */
uint32_t seam_luajit_trace(const struct seam_luajit *lj,
			   struct seam_guest_walk *walk, uint64_t g,
			   uint32_t number, struct seam_guest_origin *origin,
			   uint64_t *start_pc);

/* --- prove.c --- */

/* Compare samples of a state of its own with its public interface. */
bool seam_luajit_prove(void *object, char *reason, size_t size);
