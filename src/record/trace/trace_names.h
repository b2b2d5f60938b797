/* SPDX-License-Identifier: MIT */
/*
 * trace_names.h - the names beside a log: xray/PID.yaml, xray/PID.events
 *
 * Forms: wire/xray/xray_map_write.h, of the functions that were seen, and
 * wire/xray/event_names.h.  Functions without a symbol have no name.
 */
#ifndef SEAM_TRACE_NAMES_H
#define SEAM_TRACE_NAMES_H

#include "record/trace/trace_functions.h"
#include "symbol/xray/address_names.h"

struct seam_trace_name_counts {
	uint64_t n_functions;	/* seen */
	uint64_t n_unnamed;	/* of these */
	struct seam_err why;	/* the first image that could not be read */
	char path[256];		/* of that; not trusted */
};

/*
 * Write the names for each log of @logs.  0 or the first -errno of a write;
 * what has no name is counted in @counts: also what is beyond @caller's
 * max_name_bytes, and not written.  Files can take a minute each:
 * @caller (may be NULL) can have the rest left out between them.
 */
int seam_trace_names_write(const struct seam_trace_logs *logs,
			   const struct seam_trace_functions *functions,
			   struct seam_address_names *names,
			   const struct seam_trace_logs_caller *caller,
			   struct seam_trace_name_counts *counts,
			   struct seam_err *err);

#endif /* SEAM_TRACE_NAMES_H */
