/* SPDX-License-Identifier: MIT */
/*
 * waiting_samples.h - samples whose stack cannot be unwound yet
 *
 * A sample whose file has not been read yet (cfi_files.h) is copied, without
 * the unused part of its dump, so that its ring can be drained.  It holds the
 * mappings of its moment.  At most SEAM_WAITING_MAX_BYTES are held.
 *
 * Threads: one.
 */
#ifndef SEAM_WAITING_SAMPLES_H
#define SEAM_WAITING_SAMPLES_H

#include "record/stacks/process_maps.h"
#include "wire/perf/perf_sample.h"

#define SEAM_WAITING_MAX_BYTES ((size_t)16 << 20)

struct seam_waiting_sample {
	struct seam_waiting_sample *next;
	/* NULL: the mappings of its process were not known yet. */
	struct seam_process_map *map;
	uint32_t event;
	size_t bytes;			/* of the record */
	uint64_t record[];		/* a SAMPLE with its header */
};

/* Zeroed is valid and empty; oldest first. */
struct seam_waiting_samples {
	struct seam_waiting_sample *first, **last;
	size_t n, n_bytes;
};

/*
 * Hold a copy of the sample at @record, read as @sample, and use @map.  False:
 * no room or no memory.
 */
bool seam_waiting_samples_add(struct seam_waiting_samples *waiting,
			      uint32_t event, const void *record,
			      const struct seam_perf_sample *sample,
			      struct seam_process_map *map);

/* Remove the oldest, which the caller frees with its use of .map; or NULL. */
struct seam_waiting_sample *
seam_waiting_samples_take_first(struct seam_waiting_samples *waiting);

/* Put one back, at the end. */
void seam_waiting_samples_put(struct seam_waiting_samples *waiting,
			      struct seam_waiting_sample *one);

#endif /* SEAM_WAITING_SAMPLES_H */
