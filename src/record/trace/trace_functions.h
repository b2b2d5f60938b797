/* SPDX-License-Identifier: MIT */
/*
 * trace_functions.h - the map of the ids in a log: xray/PID.yaml, PID.events
 *
 * Programs announce their functions (wire/xray/xray_functions.h).  At the end a
 * map is written beside each log: of each function in the log the id, the
 * address, and the path and build id of the binary.  Only functions in no
 * binary, which the program has registered, have names there.
 *
 * A forked child that has announced nothing has its parent's functions, or
 * those of the process that connected (struct seam_trace_program, since_ns).
 *
 * Nothing that a program announces is trusted.  Threads: one, the recorder's.
 */
#pragma once

#include "base/index.h"
#include "record/trace/trace_logs.h"
#include "wire/xray/xray_functions.h"

enum {
	/* of all programs; announcements beyond it are counted, not kept */
	SEAM_TRACE_MAX_ANNOUNCED_BYTES = 256 << 20,
	SEAM_TRACE_MAX_IMAGES = 4096,	/* of a program */
	SEAM_TRACE_MAX_FORKS = 1 << 16,		/* of programs with functions */
};

/* A process whose functions may be its parent's. */
struct seam_trace_fork { uint32_t pid, parent; };

/* Zeroed is valid and empty. */
struct seam_trace_functions {
	SEAM_ARRAY(struct seam_trace_announced *) programs;
	struct seam_index by_pid;	/* of programs */
	SEAM_ARRAY(struct seam_trace_fork) forks;	/* one of a pid */
	struct seam_index by_child;	/* of forks */
	uint64_t n_bytes;
	uint64_t n_left_out;		/* announcements, beyond the limits */
	/*
	 * Set by the caller, or NULL: called for each announced range of
	 * functions in the mapping of a file, with the first @address.
	 */
	void (*found)(void *context, uint64_t address);
	void *context;
};

/* Keep announcements of images, functions, names and event types. */
void seam_trace_functions_add(struct seam_trace_functions *f,
			      const struct seam_trace_program *program,
			      const struct seam_xray_announcement *a);

/* Process @pid was forked from @parent. */
void seam_trace_functions_fork(struct seam_trace_functions *f, uint32_t pid,
			       uint32_t parent);

/*
 * Write what was announced beside each log of @logs, @max_bytes in all (0: no
 * limit).  0 or the first -errno of a write.  @n_functions: how many different
 * functions the logs have; a binary's function of many processes is one.
 */
int seam_trace_functions_write(const struct seam_trace_functions *f,
			       const struct seam_trace_logs *logs,
			       uint64_t max_bytes, uint64_t *n_functions,
			       struct seam_err *err);

void seam_trace_functions_fini(struct seam_trace_functions *f);
