/* SPDX-License-Identifier: MIT */
/*
 * jit_service.h - service "jit": the code of JITs becomes jit/jit-PID.dump
 *
 * A program with libseam-jitdump writes into its rings what it would otherwise
 * write to a file (wire/jit/jit_chunk.h); jit_stream.h makes dumps of it.
 * Each dump is named in the recording by a record as of a mapping of its file,
 * which is how every reader of perf.data finds one.
 */
#ifndef SEAM_JIT_SERVICE_H
#define SEAM_JIT_SERVICE_H

#include "record/bundle/bundle.h"
#include "record/services/jit_stream.h"
#include "record/services/service.h"

enum { SEAM_RECORD_JIT_RING_BYTES = 1 << 20 };

struct seam_jit_service {
	struct seam_service service;
	struct seam_jit_dumps dumps;
	const struct seam_bundle *bundle;	/* borrowed */
	uint64_t sideband_id;		/* of the records that name dumps */
};

/*
 * With rings of @ring_bytes, a power of two.  @jit must stay where it is.
 *
 * The caller may set dumps.on_code then, which is called with code as soon as
 * it was copied: before the samples of the round are, but for groups of several
 * chunks.  These bytes were not checked.
 */
void seam_jit_service_init(struct seam_jit_service *jit, size_t ring_bytes);

/* Close the dumps; the counts stay.  Valid on a zeroed struct. */
void seam_jit_service_fini(struct seam_jit_service *jit);

#endif /* SEAM_JIT_SERVICE_H */
