/* SPDX-License-Identifier: MIT */
/*
 * perf_features.h - the header features of perf.data, encoded
 *
 * A feature is a numbered section after the data: host, command line, events.
 * A builder holds their payloads one after the other.  Each
 * seam_perf_features_*() call adds one, in ascending order of bits, which is
 * the order of their sections in the file.
 *
 * A failed allocation is remembered and reported once, by the writer.
 *
 * Source: tools/perf/util/header.c of Linux 6.1, the write_*() functions.
 */
#ifndef SEAM_PERF_FEATURES_H
#define SEAM_PERF_FEATURES_H

#include "base/array.h"
#include "wire/perf/perf_file.h"

/* Zeroed is valid and empty. */
struct seam_perf_features {
	SEAM_ARRAY(uint8_t) bytes;	/* all payloads */
	size_t start[SEAM_PERF_N_FEATURES];	/* of each, in bytes */
	uint64_t bits[SEAM_PERF_N_FEATURES / 64];
	int last;			/* the bit that was added last */
	bool no_memory;
};

void seam_perf_features_fini(struct seam_perf_features *f);

/* A feature that is one string.  NULL or "" adds nothing. */
void seam_perf_features_string(struct seam_perf_features *f,
			       enum seam_perf_feature bit, const char *text);

/* A feature that is one number or several: @size bytes of u32 or u64. */
void seam_perf_features_data(struct seam_perf_features *f,
			     enum seam_perf_feature bit, const void *data,
			     size_t size);

/* The build id of the kernel, which perf calls @name. */
void seam_perf_features_build_id(struct seam_perf_features *f,
				 const char *name, struct seam_bytes id);

/* @n strings with their count before them. */
void seam_perf_features_cmdline(struct seam_perf_features *f,
				const char *const *words, size_t n);

/* The events with their names. */
void seam_perf_features_events(struct seam_perf_features *f,
			       const struct seam_perf_event *events,
			       size_t n);

/* The kernel's name of a PMU, by its number in attr.type. */
struct seam_perf_pmu {
	uint32_t type;
	char name[64];
};

void seam_perf_features_pmus(struct seam_perf_features *f,
			     const struct seam_perf_pmu *pmus, size_t n);

/* Event @leader and the @n_members - 1 after it are a group. */
struct seam_perf_group {
	uint32_t leader, n_members;
};

void seam_perf_features_groups(struct seam_perf_features *f,
			       const struct seam_perf_group *groups, size_t n);

/*
 * The index of @n AUXTRACE records: for each, two numbers in @pairs, its offset
 * in the file and its size with the data after it.
 */
void seam_perf_features_auxtrace(struct seam_perf_features *f,
				 const uint64_t *pairs, size_t n);

/* @clock was at @clock_ns when the wall clock was at @wall_ns. */
void seam_perf_features_clock(struct seam_perf_features *f, uint32_t clock,
			      uint64_t wall_ns, uint64_t clock_ns);

#endif /* SEAM_PERF_FEATURES_H */
