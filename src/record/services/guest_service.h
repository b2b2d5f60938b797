/* SPDX-License-Identifier: MIT */
/*
 * guest_service.h - services "guest" and "guest_symtab"
 *
 * Threads of a program with libseam-sampler write samples with their host stack
 * and a guest record (wire/guest), and the names of the functions in them.
 * Both become samples of "data": events seam:guest and seam:guest_symtab.  All
 * of a record is checked; its period is the weight times the period of this
 * recording, and weights beyond the program's time make a record invalid.
 *
 * The recorder samples the same threads, if less often (perf/sparse.h), because
 * children inherit its events.  Of two samples of CPU time for one moment the
 * recorder's is dropped, and counted as superseded.  A thread whose sampler is
 * silent is the recorder's again.
 *
 * Threads: one, the recorder's.
 */
#pragma once

#include "base/array.h"
#include "base/index.h"
#include "record/services/service.h"
#include "wire/counts.h"

#define SEAM_GUEST_SERVICE "guest"
#define SEAM_GUEST_SYMTAB_SERVICE "guest_symtab"
#define SEAM_GUEST_EVENT "seam:guest"
#define SEAM_GUEST_SYMTAB_EVENT "seam:guest_symtab"

enum {
	SEAM_GUEST_DEFAULT_NS = 1000 * 1000,	/* of CPU time, to a sample */
	SEAM_GUEST_MIN_NS = 100 * 1000,
};

/* A thread whose sampler samples it, from the first sample to the last. */
struct seam_guest_stream {
	uint32_t tid;
	uint64_t first_ns, last_ns;
	uint64_t until_ns;	/* of its exec; UINT64_MAX: none yet */
	uint64_t n_ticks;	/* weights of its samples */
	bool has_ended;
};

struct seam_guest_service {
	struct seam_service guest, symtab;
	uint64_t period_ns;
	struct seam_counts counts;	/* "guest", and invalid bytes */
	/* Owned; ended ones too, for samples that come late. */
	SEAM_ARRAY(struct seam_guest_stream *) streams;
	struct seam_index by_tid;	/* of streams; a tid may have several */
	size_t n_ended;
};

/*
 * With @period_ns between two samples, at least SEAM_GUEST_MIN_NS, and rings
 * for it; 0: SEAM_GUEST_DEFAULT_NS.  @g must stay where it is.
 */
void seam_guest_service_init(struct seam_guest_service *g, uint64_t period_ns);

/* Valid on a zeroed struct. */
void seam_guest_service_fini(struct seam_guest_service *g);
