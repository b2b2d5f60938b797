/* SPDX-License-Identifier: MIT */
/*
 * vmstate.h - what a LuaJIT VM did at a sample
 *
 * The numbers are those of sysprof's streams and of guest records.
 *
 * Source: LuaJIT 2.1, lj_obj.h, LJ_VMST_*; in the VM a number that is not
 * negative is a trace's, hence TRACE.
 */
#pragma once

#include "base/base.h"

enum seam_vmstate {
	SEAM_VMSTATE_INTERP,	/* the interpreter, between functions */
	SEAM_VMSTATE_LFUNC,	/* a Lua function, interpreted */
	SEAM_VMSTATE_FFUNC,	/* a fast function: built in, in assembly */
	SEAM_VMSTATE_CFUNC,	/* a C function */
	SEAM_VMSTATE_GC,
	SEAM_VMSTATE_EXIT,	/* leaving a trace */
	SEAM_VMSTATE_RECORD,	/* the JIT compiler: recording a trace */
	SEAM_VMSTATE_OPT,	/* optimizing it */
	SEAM_VMSTATE_ASM,	/* assembling it */
	SEAM_VMSTATE_TRACE,	/* compiled code */
	SEAM_N_VMSTATES,
	SEAM_VMSTATE_NONE = UINT8_MAX,	/* not known, or no VM */
};

/* Whether a sample of sysprof's in this state has a Lua stack. */
static inline bool seam_vmstate_has_stack(enum seam_vmstate state)
{
	return state == SEAM_VMSTATE_LFUNC || state == SEAM_VMSTATE_FFUNC ||
	       state == SEAM_VMSTATE_CFUNC;
}

/* "INTERP", ...; NULL for other numbers. */
static inline const char *seam_vmstate_name(enum seam_vmstate state)
{
	static const char *const names[SEAM_N_VMSTATES] = {
		[SEAM_VMSTATE_INTERP] = "INTERP",
		[SEAM_VMSTATE_LFUNC] = "LFUNC",
		[SEAM_VMSTATE_FFUNC] = "FFUNC",
		[SEAM_VMSTATE_CFUNC] = "CFUNC",
		[SEAM_VMSTATE_GC] = "GC",
		[SEAM_VMSTATE_EXIT] = "EXIT",
		[SEAM_VMSTATE_RECORD] = "RECORD",
		[SEAM_VMSTATE_OPT] = "OPT",
		[SEAM_VMSTATE_ASM] = "ASM",
		[SEAM_VMSTATE_TRACE] = "TRACE",
	};

	return state < SEAM_N_VMSTATES ? names[state] : NULL;
}
