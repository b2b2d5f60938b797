/* SPDX-License-Identifier: MIT */
/* vmstate.c - the names; see vmstate.h */
#include "wire/vmstate.h"

const char *seam_vmstate_name(enum seam_vmstate state)
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
