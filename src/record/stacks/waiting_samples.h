/* SPDX-License-Identifier: MIT */
/*
 * waiting_samples.h - samples that cannot be written yet
 *
 * A sample in a file that has not been read yet (cfi_files.h) is copied, with
 * the used part of its dump, so that its ring can be drained.  It holds the
 * mappings of its moment.
 *
 * Threads: one.
 */
#ifndef SEAM_WAITING_SAMPLES_H
#define SEAM_WAITING_SAMPLES_H

#include "record/stacks/process_maps.h"
#include "wire/perf/perf_sample.h"

struct seam_waiting_sample {
	struct seam_waiting_sample *next;
	/* NULL: the mappings of its process were not known yet. */
	struct seam_process_map *map;
	uint32_t event;
	uint64_t time;			/* of the sample */
	size_t bytes;			/* of all that was copied */
	uint64_t record[];		/* a SAMPLE with its header */
};

/* Zeroed is valid and empty; in the order in which they were added. */
struct seam_waiting_samples {
	struct seam_waiting_sample *first, **last;
	size_t n, n_bytes;
};

/*
 * Hold a copy of the sample of @event at @record, read as @sample, and use its
 * @map.  False, and nothing was done: it would be more than @max_bytes, or no
 * memory.
 */
bool seam_waiting_samples_add(struct seam_waiting_samples *waiting,
			      struct seam_process_map *map, uint32_t event,
			      const void *record,
			      const struct seam_perf_sample *sample,
			      size_t max_bytes);

/* Remove the first, which the caller frees with its use of .map; or NULL. */
struct seam_waiting_sample *
seam_waiting_samples_take_first(struct seam_waiting_samples *waiting);

/* Put one back, at the end. */
void seam_waiting_samples_put(struct seam_waiting_samples *waiting,
			      struct seam_waiting_sample *one);

/* The time of the oldest sample; UINT64_MAX: there is none.  Cost: O(n). */
uint64_t
seam_waiting_samples_oldest(const struct seam_waiting_samples *waiting);

#endif /* SEAM_WAITING_SAMPLES_H */
