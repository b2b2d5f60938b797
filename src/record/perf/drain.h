/* SPDX-License-Identifier: MIT */
/*
 * drain.h - from the rings to the file, in rounds
 *
 * A round takes all whole records of all rings and appends them in one
 * batch, straight from the mappings; then it gives the space back.  The
 * batch ends with FINISHED_ROUND: whatever comes later is younger than all
 * that the round before held, so readers may sort and let go up to there.
 *
 * Rings that run backward are left alone; see snapshot.h.  There are no ends
 * of rounds then, because what is older is still to come.
 *
 * The records are walked only to count them and to show the side-band to
 * whoever wants to see it.
 */
#ifndef SEAM_DRAIN_H
#define SEAM_DRAIN_H

#include "base/index.h"
#include "record/perf/auxtrace.h"
#include "record/perf/compress.h"
#include "record/perf/sources.h"
#include "wire/perf/perf_writer.h"

struct seam_drain {
	struct seam_sources *sources;	/* borrowed */
	struct seam_perf_writer *writer;	/* borrowed */
	struct seam_compress *compress;	/* borrowed; may be off */
	struct seam_auxtrace *aux;	/* borrowed; NULL: areas are left */
	/*
	 * Sees each side-band record, in one piece and in the ring's order,
	 * before it is written.  May be NULL.
	 */
	void (*on_sideband)(void *context,
			    const struct seam_ring_header *record);
	/* The same for samples, with the number of their event. */
	void (*on_sample)(void *context, uint32_t event,
			  const struct seam_ring_header *record);
	void *context;

	struct iovec *pieces;		/* two for each live ring, and one */
	struct seam_ring_span *spans;	/* one for each live ring */
	size_t room;			/* rings that the two are for */
	uint8_t *scratch;		/* for a record that wraps */
	bool is_last;			/* nothing comes after the next round */
	bool no_ends;			/* of rounds: older records will come */
	struct seam_index ids;		/* of the sources, by id */
	size_t n_ids;			/* sources that are in it */
	uint64_t *n_by_event;		/* samples in the file */
	/* The same before this round; for when no file takes it. */
	uint64_t *n_by_event_before;

	/* Of the fullest ring, if it held what wakes us; or -1. */
	int fullest_cpu;

	uint64_t n_rounds;
	uint64_t n_records;		/* drained, of all kinds */
	uint64_t n_sideband;		/* names, mappings, births and deaths */
	uint64_t n_throttled;		/* THROTTLE records */
	uint64_t n_unwritten;		/* records that no file took */
	struct seam_drain_counts {	/* of what is in the file */
		uint64_t n_samples;
		uint64_t n_kernel_samples;	/* while the kernel ran */
		uint64_t first_ns, last_ns;	/* of samples; 0: none yet */
	} in_file;
};

/* The seven first members are the caller's.  0 or -ENOMEM. */
int seam_drain_init(struct seam_drain *d, struct seam_err *err);
void seam_drain_fini(struct seam_drain *d);

/*
 * One round.  Returns the bytes written, 0 when the rings were empty, or
 * -errno of the write; the rings are drained even then, and the records
 * counted in n_unwritten.
 */
ssize_t seam_drain_round(struct seam_drain *d, struct seam_err *err);

/* Count a record that came out of @ring in another way than by a round. */
void seam_drain_count(struct seam_drain *d, struct seam_source_ring *ring,
		      const struct seam_ring_span *span, size_t pos,
		      const struct seam_ring_header *header);

/* After a write has failed: empty the rings, counting what is in them. */
void seam_drain_discard(struct seam_drain *d);

#endif /* SEAM_DRAIN_H */
