/* SPDX-License-Identifier: MIT */
/*
 * trace_service.h - names and numbers that recorder and program share
 *
 * Two services of the recorder's link (ring/link/link.h):
 *
 *	calls		a ring a thread.  Its AUX buffer has the calls, in
 *			chunks (xray_chunk.h); its data has hits of triggers
 *			(xray_functions.h)
 *	functions	a ring a process: its functions (xray_functions.h)
 *
 * The environment variable has the options of seam-fdr(3).
 */
#pragma once

#include <stdint.h>

#define SEAM_TRACE_VARIABLE "SEAM_TRACE"

#define SEAM_TRACE_CALLS "fdr"
#define SEAM_TRACE_FUNCTIONS "fdr_functions"
#define SEAM_TRACE_SERVICES SEAM_TRACE_CALLS " " SEAM_TRACE_FUNCTIONS

/* Why a record is not in the calls: an index of n_skipped (ring/layout.h). */
enum seam_trace_skip {
	SEAM_TRACE_SKIPPED_FULL,	/* the AUX buffer had no room */
	SEAM_TRACE_SKIPPED_FROZEN,	/* a trigger had frozen the recording */
};

/*
 * The recorder that a program starts for itself (doc/design/standalone.md): the
 * file seam, with this name as argv[0] and the path of the bundle as argv[1]; of
 * a flight recorder a tie of its start as argv[2], "TSC:NS".
 * Descriptor 3 is its end of a pair of sockets of packets.  It sends a reply
 * when it listens, with the address of the link, and one to each request.
 */
#define SEAM_TRACE_RECORDER "seam-fdr-recorder"

enum { SEAM_TRACE_RECORDER_FD = 3 };

enum seam_trace_request_kind {
	SEAM_TRACE_STOP = 1,		/* complete the bundle */
	SEAM_TRACE_EXIT,		/* unless another process records */
	SEAM_TRACE_FORKED,		/* the sender was; it gets no reply */
};

struct seam_trace_request {
	uint32_t kind;
	int32_t pid, parent;
};

struct seam_trace_reply {
	int32_t code;			/* 0 or -errno */
	char text[256];			/* the address; or the cause */
};
