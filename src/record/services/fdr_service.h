/* SPDX-License-Identifier: MIT */
/*
 * fdr_service.h - the calls that traced programs record, and their functions
 *
 * The two services of wire/xray/trace_service.h; calls go to xray/PID.xray.
 *
 * Memory: each ring has 4 MiB, charged to the recorder; of each program 16 are
 * free.  All rings of a recording have at most a quarter of the machine's
 * memory, and at most 1 GiB.  Threads beyond that record nothing, and their
 * records are counted.
 */
#pragma once

#include "record/services/services.h"
#include "record/trace/trace_functions.h"
#include "record/trace/trace_logs.h"
#include "wire/counts.h"
#include "wire/xray/trace_service.h"
#include "wire/xray/xray_functions.h"

struct seam_fdr_service {
	struct seam_service functions, calls;	/* to be added in this order */
	struct seam_trace_functions known;
	struct seam_tsc_clock clock;
	struct seam_counts counts;	/* "calls", as far as known here */
	uint64_t headers_ns;	/* when the logs' headers were last written */

	/* The caller's, set before the first round: */
	struct seam_trace_logs *logs;	/* NULL: calls are not written */
	/* A trigger was hit, or matches functions.  May be NULL. */
	void (*on_trigger)(void *context,
			   const struct seam_service_stream *stream,
			   const struct seam_xray_announcement *a);
	void *context;
};

/*
 * With areas that are drained, or with @flight_bytes (a power of two; 0: none)
 * free-running ones of that size, whose take_aux() and snapshot_aux() the
 * caller sets.  @fdr must stay where it is.
 */
void seam_fdr_service_init(struct seam_fdr_service *fdr, uint64_t flight_bytes);

/* The program that @stream is of. */
static inline struct seam_trace_program
seam_fdr_service_program(const struct seam_service_stream *stream)
{
	return (struct seam_trace_program) {
		.pid = stream->pid, .since_ns = stream->since_ns,
	};
}

/* Complete the counts, after the logs; their functions are @n_functions. */
void seam_fdr_service_count(struct seam_fdr_service *fdr,
			    const struct seam_trace_logs *logs,
			    const struct seam_services *services,
			    uint64_t n_functions);

/* Valid on a zeroed struct. */
void seam_fdr_service_fini(struct seam_fdr_service *fdr);
