/* SPDX-License-Identifier: MIT */
/*
 * scan_counters.h - by how much counters increased between samples
 *
 * Samples with PERF_SAMPLE_READ have the values of counters, by id; what a
 * sample counts is the difference to the one before.  In a recording of one
 * event any id means that event: there may be as many as samples.
 */
#ifndef SEAM_SCAN_COUNTERS_H
#define SEAM_SCAN_COUNTERS_H

#include "base/array.h"
#include "base/index.h"

struct seam_scan_counter {
	uint64_t id, value;
};

/* Zeroed is valid and empty. */
struct seam_scan_counters {
	SEAM_ARRAY(struct seam_scan_counter) items;
	struct seam_index index;	/* hash of an id -> items */
};

/*
 * Set the value of counter @id, whose first one was 0; *@by is the increase.
 * 0 or -ENOMEM.
 */
int seam_scan_counters_set(struct seam_scan_counters *counters, uint64_t id,
			   uint64_t value, uint64_t *by);

void seam_scan_counters_fini(struct seam_scan_counters *counters);

#endif /* SEAM_SCAN_COUNTERS_H */
