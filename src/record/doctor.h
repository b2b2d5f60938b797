/* SPDX-License-Identifier: MIT */
/*
 * doctor.h - check what this user can record on this machine
 *
 * Each check opens an event or maps a ring of its own; it does not infer the
 * result from settings.  Settings are named where changing them would change
 * the result.
 */
#ifndef SEAM_DOCTOR_H
#define SEAM_DOCTOR_H

#include "base/err.h"
#include "record/events/event.h"

enum seam_verdict {
	SEAM_VERDICT_YES,
	SEAM_VERDICT_LIMITED,	/* works with restrictions */
	SEAM_VERDICT_NO,
};

/* A check and its result. */
struct seam_doctor {
	const char *key;	/* for scripts: "kernel-samples" */
	const char *title;	/* for people */
	enum seam_verdict verdict;
	char found[200];	/* details of the verdict; may be "" */
	char remedy[240];	/* how to change it; "" where impossible */
};

/* "yes", "limited", "no" */
const char *seam_verdict_name(enum seam_verdict verdict);

/* How many checks there are. */
size_t seam_doctor_count(void);

/* Run check @i.  Check 0 is whether anything can be recorded at all. */
void seam_doctor_run(size_t i, struct seam_doctor *check);

/* Whether event @i of seam_event_name() can be opened here, in user code. */
bool seam_doctor_event(size_t i);

/*
 * ---- how the stacks of a program can be recorded ----
 *
 * Reads a program or a library as the recorder reads files that are mapped
 * (cfi_file.h): bounded, without running it.
 */
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
	const char *why;	/* static */
	char cost[200];
};

/*
 * Look at the program @name: a path, or a name in PATH; for a script at its
 * interpreter.  0, or -errno with the reason.
 */
int seam_doctor_program(struct seam_doctor_program *program, const char *name,
			struct seam_err *err);

#endif /* SEAM_DOCTOR_H */
