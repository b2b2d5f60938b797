/* SPDX-License-Identifier: MIT */
/*
 * jit_service.h - service "jit": the code of JITs becomes jit/jit-PID.dump
 *
 * A program with libseam-jitdump writes into its rings what it would otherwise
 * write to a file (ring/link/jit_chunk.h); jit_stream.h makes dumps of it.
 * Each dump is named in the recording by a record as of a mapping of its file,
 * which is how every reader of perf.data finds one.
 */
#ifndef SEAM_JIT_SERVICE_H
#define SEAM_JIT_SERVICE_H

#include "record/bundle/bundle.h"
#include "record/services/jit_stream.h"
#include "record/services/service.h"
#include "wire/counts.h"

enum { SEAM_RECORD_JIT_RING_BYTES = 1 << 20 };

struct seam_jit_service {
	struct seam_service service;
	struct seam_jit_dumps dumps;
	/*
	 * The caller's, set before the first round; also dumps.on_code, which
	 * is called with code as soon as it was copied: before the samples of
	 * the round are, but for groups of several chunks.  These bytes were
	 * not checked.
	 */
	const struct seam_bundle *bundle;
	uint64_t sideband_id;		/* of the records that name dumps */
};

/* With rings of @ring_bytes, a power of two.  @jit must stay where it is. */
void seam_jit_service_init(struct seam_jit_service *jit, size_t ring_bytes);

/* Copy the dumps as they are into the jit/ of another bundle.  0 or -errno. */
int seam_jit_service_copy(const struct seam_jit_service *jit,
			  const struct seam_bundle *bundle,
			  struct seam_err *err);

/* Add the counts of JIT code so far to @counts. */
void seam_jit_service_count(const struct seam_jit_service *jit,
			    struct seam_counts *counts);

/* Close the dumps; the counts stay.  Valid on a zeroed struct. */
void seam_jit_service_fini(struct seam_jit_service *jit);

#endif /* SEAM_JIT_SERVICE_H */
