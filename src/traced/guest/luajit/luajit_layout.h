/* SPDX-License-Identifier: MIT */
/*
 * luajit_layout.h - where one build of LuaJIT 2.1 keeps what a walk needs
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
#ifndef SEAM_LUAJIT_LAYOUT_H
#define SEAM_LUAJIT_LAYOUT_H

#include "traced/guest/guest_memory.h"

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

#endif /* SEAM_LUAJIT_LAYOUT_H */
