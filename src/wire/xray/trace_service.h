/* SPDX-License-Identifier: MIT */
/*
 * trace_service.h - what a recorder and a traced program have agreed on
 *
 * Two services of the recorder's link (ring/link/link.h):
 *
 *	calls		a ring a thread.  Its AUX buffer has the calls, in
 *			chunks (xray_chunk.h); its data has triggers that were
 *			met (xray_functions.h)
 *	functions	a ring a process: what its ids mean (xray_functions.h)
 *
 * The environment variable says what to record; seam-fdr(3) has its form.
 */
#ifndef SEAM_TRACE_SERVICE_H
#define SEAM_TRACE_SERVICE_H

#define SEAM_TRACE_VARIABLE "SEAM_TRACE"

#define SEAM_TRACE_CALLS "fdr"
#define SEAM_TRACE_FUNCTIONS "fdr_functions"
#define SEAM_TRACE_SERVICES SEAM_TRACE_CALLS " " SEAM_TRACE_FUNCTIONS

/* Why a record is not in the calls: an index of n_skipped (ring/layout.h). */
enum seam_trace_skip {
	SEAM_TRACE_SKIPPED_FULL,	/* the AUX buffer had no room */
	SEAM_TRACE_SKIPPED_FROZEN,	/* a trigger had frozen the recording */
};

#endif /* SEAM_TRACE_SERVICE_H */
