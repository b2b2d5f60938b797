/* SPDX-License-Identifier: MIT */
/* header_info.h - what a perf.data file tells of its machine, collected at the end */
#ifndef SEAM_HEADER_INFO_H
#define SEAM_HEADER_INFO_H

#include "record/perf/auxtrace.h"
#include "record/perf/compress.h"
#include "record/proc/running_kernel.h"
#include "wire/perf/perf_writer.h"

/* What a recording knows of itself.  Everything is borrowed. */
struct seam_info {
	const struct seam_running_kernel *kernel;
	const struct seam_perf_event *events;
	size_t n_events;
	const char *const *words;	/* of the command line */
	size_t n_words;
	uint32_t n_cpus;
	uint64_t first_ns, last_ns;	/* of the samples */
	uint64_t start_wall_ns;		/* the same moment on both clocks */
	uint64_t start_ns;
	const struct seam_compress *compress;
	const struct seam_auxtrace *aux;
	bool kernel_clock;		/* times are not CLOCK_MONOTONIC's */
	const struct seam_perf_group *groups;
	size_t n_groups;
};

/* Fill @features; freed by the caller. */
void seam_info_features(const struct seam_info *info,
			struct seam_perf_features *features);

#endif /* SEAM_HEADER_INFO_H */
