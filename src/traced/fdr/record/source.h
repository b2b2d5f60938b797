/* SPDX-License-Identifier: MIT */
/*
 * source.h - where threads get the memory for their records
 *
 * One source is in use, from before the first sled is patched: the recorder's
 * rings (source_link.c), or memory of the program's own (flight/flight.c).
 *
 * A thread claims an area at its first record and closes the area when the
 * thread ends.  Trampolines call a source by saved.h only, so a source may call
 * libc; a source takes no lock that another thread may hold at a fork.
 */
#pragma once

#include "ring/link/link.h"
#include "ring/producer/producer.h"

/* Memory of one thread, with chunks as in wire/xray/xray_chunk.h. */
struct seam_fdr_area {
	uint8_t *bytes;
	/*
	 * Not 0 while the area is copied: no record is taken back.  NULL: the
	 * area is never copied.
	 */
	const _Atomic uint32_t *held;
	uint64_t size;			/* a power of two, 2 chunks or more */
	_Atomic uint64_t *cursor;	/* at the start of a chunk */
	_Atomic uint64_t *reserved;
	const _Atomic uint64_t *tail;	/* the reader's; NULL: free-running */
	_Atomic uint64_t *n_lost;	/* records, for want of room */
	/* records, after a trigger; NULL: counted in @n_lost */
	_Atomic uint64_t *n_paused;
	const struct seam_ring_wakeup *wakeup;	/* NULL: no recorder */
	uint64_t wakeup_at;		/* a position the recorder has seen */
	uint32_t connection;		/* seam_fdr_connection when claimed */
	uint32_t slot;			/* the source's own */
	uint64_t word;			/* the source's own */
	struct seam_ring_producer ring;	/* the source's own: other records */
};

struct seam_fdr_source {
	/*
	 * 0 with @area for thread @tid, the caller; or -ENOSPC.  All signals
	 * are blocked, also in close().
	 */
	int (*claim)(uint32_t tid, struct seam_fdr_area *area);
	/* the thread writes no further record */
	void (*close)(struct seam_fdr_area *area);
	/*
	 * Send @bytes of @payload with the area, which the caller has, and wake
	 * the recorder; from any context.  NULL: there is no recorder.
	 */
	bool (*send)(struct seam_fdr_area *area, const void *payload,
		     size_t bytes);
};

/*
 * The count of records of threads without an area, changed in any context; set
 * by the source.  NULL: such records are not counted.
 */
extern _Atomic uint64_t *seam_fdr_n_lost;

/* Areas that were claimed with another number are no longer used. */
extern _Atomic uint32_t seam_fdr_connection;

/*
 * ---- the recorder's rings (source_link.c) ----
 *
 * The services of wire/xray/trace_service.h: the AUX buffers of the calls are
 * the areas, one for each thread.
 */

extern const struct seam_fdr_source seam_fdr_source_link;

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
