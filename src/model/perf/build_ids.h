/* SPDX-License-Identifier: MIT */
/* build_ids.h - which file a path of a recording was, by its build id */
#ifndef SEAM_BUILD_IDS_H
#define SEAM_BUILD_IDS_H

#include "base/file.h"
#include "model/input.h"
#include "symbol/symbols.h"
#include "wire/perf/perf_data.h"

struct seam_build_id {
	uint8_t id[20];
	size_t size;		/* bytes; 0: not recorded */
};

/*
 * The file of @path: its build id, which goes to @id and is borrowed from
 * there, or what is demanded of a file without one.  Cost: as below.
 */
struct seam_module seam_module_of(const struct seam_input *recording,
				  const struct seam_perf_data *data,
				  const char *path, struct seam_build_id *id);

/*
 * The build id of @path: what a mapping record says, else the header of @data,
 * else, for the vdso, the bundle.
 * Cost: a walk over all records of the recording.
 */
struct seam_build_id seam_build_id_of(const struct seam_input *recording,
				      const struct seam_perf_data *data,
				      const char *path);

#endif /* SEAM_BUILD_IDS_H */
