/* SPDX-License-Identifier: MIT */
/*
 * waiting_samples.h - samples that cannot be written yet
 *
 * A sample is copied, so that its ring can be drained, and holds the mappings
 * of its moment.  There are two kinds:
 *
 *   - One whose file has not been read yet (cfi_files.h) keeps the used part
 *     of its dump.
 *   - One whose stack is deeper than its copy, whose callers are not known yet
 *     (stack_joins.h), keeps the frames of the walk and no dump.
 *
 * A list has a limit of bytes, which is the caller's.
 *
 * Threads: one.
 */
#ifndef SEAM_WAITING_SAMPLES_H
#define SEAM_WAITING_SAMPLES_H

#include "record/stacks/process_maps.h"
#include "unwind/walk/kernel_chain.h"
#include "wire/perf/perf_sample.h"

struct seam_waiting_sample {
	struct seam_waiting_sample *next;
	/* NULL: the mappings of its process were not known yet. */
	struct seam_process_map *map;
	uint32_t event;
	uint64_t time;			/* of the sample */
	uint64_t since_ns, next_ns;	/* the caller's: held, tried again */
	/* The frames of a stack that was cut; .n 0: it was not walked yet. */
	struct seam_unwind_stack stack;
	struct seam_unwind_rest rest;	/* of the kernel's chain, as .stack */
	uint64_t place;			/* of the frame that comes next, or 0 */
	size_t bytes;			/* of all that was copied */
	uint64_t record[];		/* a SAMPLE with its header */
};

/* Zeroed is valid and empty; in the order in which they were added. */
struct seam_waiting_samples {
	struct seam_waiting_sample *first, **last;
	size_t n, n_bytes;
};

/*
 * Hold a copy of the sample at @record, read as @sample, with the members up to
 * .place as in @like; its map is used, its frames are copied.  False, and
 * nothing was done: it would be more than @max_bytes, or no memory.
 */
bool seam_waiting_samples_add(struct seam_waiting_samples *waiting,
			      const struct seam_waiting_sample *like,
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
