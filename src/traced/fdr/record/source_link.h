/* SPDX-License-Identifier: MIT */
/*
 * source_link.h - the recorder's rings as the source of areas
 *
 * The services of wire/xray/trace_service.h: the AUX buffers of the calls are
 * the areas, one for each thread.
 */
#ifndef SEAM_FDR_SOURCE_LINK_H
#define SEAM_FDR_SOURCE_LINK_H

#include "ring/link/link_client.h"
#include "traced/fdr/record/source.h"

/* Indices in seam_fdr_link.memories: the order of SEAM_TRACE_SERVICES. */
enum {
	SEAM_FDR_SERVICE_CALLS,
	SEAM_FDR_SERVICE_FUNCTIONS,
};

/* The connection; a child of fork has its parent's. */
extern struct seam_link_client seam_fdr_link;

/*
 * Connect to the recorder at @address, before seam_fdr_thread_init() with
 * seam_fdr_source_link.  Returns as seam_link_client_connect(); -ENOPROTOOPT
 * where the recorder does not record calls.
 */
int seam_fdr_link_connect(const char *address, int timeout_ms);

/*
 * End the connection, while no sled is patched; seam_fdr_link_connect() may
 * follow.  Threads find zeroes at the addresses of their rings, and claim anew
 * (thread_area.c).
 */
void seam_fdr_link_leave(void);

#endif /* SEAM_FDR_SOURCE_LINK_H */
