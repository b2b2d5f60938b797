/* SPDX-License-Identifier: MIT */
/*
 * scan_counters.h - by how much counters increased between samples
 *
 * Samples with PERF_SAMPLE_READ have the values of counters, by id; what a
 * sample counts is the difference to the one before in time, which may come
 * later in the file: a recorder that unwinds stacks writes a sample when its
 * stack is known.  So all values are collected first.
 */
#ifndef SEAM_SCAN_COUNTERS_H
#define SEAM_SCAN_COUNTERS_H

#include "base/array.h"

struct seam_scan_counter {
	uint64_t id, time_ns, value;
	uint64_t order;		/* in the file */
};

/* Zeroed is valid and empty. */
struct seam_scan_counters {
	SEAM_ARRAY(struct seam_scan_counter) items;
	size_t next;
};

/* Add the next value of the file.  0 or -ENOMEM. */
int seam_scan_counters_add(struct seam_scan_counters *counters, uint64_t id,
			   uint64_t time_ns, uint64_t value);

/*
 * After the last value: make increases of them.  Each counter began at 0.
 * Values of equal time are in the order of the file.  0 or -ENOMEM.
 */
int seam_scan_counters_seal(struct seam_scan_counters *counters);

/* The next increase, in the order of the file; 0 after the last. */
uint64_t seam_scan_counters_next(struct seam_scan_counters *counters);

void seam_scan_counters_fini(struct seam_scan_counters *counters);

#endif /* SEAM_SCAN_COUNTERS_H */
