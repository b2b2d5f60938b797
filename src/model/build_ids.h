/* SPDX-License-Identifier: MIT */
/* build_ids.h - which file a path of a recording was, by its build id */
#ifndef SEAM_BUILD_IDS_H
#define SEAM_BUILD_IDS_H

#include "base/file.h"
#include "model/recording.h"
#include "wire/perf_data.h"

struct seam_build_id {
	uint8_t id[20];
	size_t size;		/* bytes; 0: not recorded */
};

/*
 * The build id of @path: what a mapping record says, else the header of @data,
 * else, for the vdso, the bundle.
 * Cost: a walk over all records of the recording.
 */
struct seam_build_id seam_build_id_of(const struct seam_recording *recording,
				      const struct seam_perf_data *data,
				      const char *path);

#endif /* SEAM_BUILD_IDS_H */
