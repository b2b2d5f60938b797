/* SPDX-License-Identifier: MIT */
/*
 * doctor_program.h - how the stacks of a program can be recorded
 *
 * Reads a program or a library as the recorder reads files that are mapped
 * (cfi_file.h): bounded, without running it.
 */
#ifndef SEAM_DOCTOR_PROGRAM_H
#define SEAM_DOCTOR_PROGRAM_H

#include "base/err.h"
#include "record/events/event.h"

struct seam_doctor_program {
	char path[4096];	/* of the file that was read */
	char script[4096];	/* the script that it runs; "": none */
	uint64_t cfi_bytes;	/* .eh_frame and .debug_frame; 0: none */
	uint64_t n_functions;	/* with call frame information */
	/*
	 * Of functions that were looked at, those that begin with a frame
	 * pointer, in percent; -1: none was.
	 */
	int frame_pointer_percent;
	bool is_go, is_jvm;

	enum seam_call_graph needs;	/* NONE: nothing unwinds its code */
	char why[200];
	char cost[200];
};

/*
 * Look at the program @name: a path, or a name in PATH; for a script at its
 * interpreter.  0, or -errno with the reason.
 */
int seam_doctor_program(struct seam_doctor_program *program, const char *name,
			struct seam_err *err);

#endif /* SEAM_DOCTOR_PROGRAM_H */
