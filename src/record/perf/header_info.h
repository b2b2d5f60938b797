/* SPDX-License-Identifier: MIT */
/* header_info.h - features of a perf.data file: host, CPUs, events, clock */
#ifndef SEAM_HEADER_INFO_H
#define SEAM_HEADER_INFO_H

#include "record/perf/data_file.h"
#include "record/proc/running_kernel.h"

/* Contents of features that the file does not have.  All is borrowed. */
struct seam_header_info {
	const struct seam_sources *sources;
	const struct seam_kernel_identity *kernel;
	const char *const *words;	/* of the command line */
	size_t n_words;
	uint64_t start_wall_ns;		/* the same moment on both clocks */
	uint64_t start_ns;
};

/* End @file with its features.  0 or -errno of the write. */
int seam_header_info_write(const struct seam_header_info *info,
			   struct seam_data_file *file, struct seam_err *err);

#endif /* SEAM_HEADER_INFO_H */
