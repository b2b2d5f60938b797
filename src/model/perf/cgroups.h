/* SPDX-License-Identifier: MIT */
/*
 * cgroups.h - from the ids of cgroups in samples to their paths
 *
 * A sample has the id of its cgroup, and a record the path of each id.  The
 * kernel gives no id twice, so the time of the record does not matter.
 * Source: cgroup_id() of Linux.
 */
#pragma once

#include "model/profile/profile.h"

/* The ids of a scan, each once; a sample has the number of its id plus 1. */
struct seam_cgroup_ids {
	SEAM_ARRAY(uint64_t) items;
	struct seam_index index;
	uint64_t last;			/* of the sample before, */
	uint32_t last_number;		/* or 0 */
};

/* The number of @id plus 1, new or not; 0: @id is 0; SEAM_NONE: no memory. */
uint32_t seam_cgroup_number(struct seam_cgroup_ids *ids, uint64_t id);

void seam_cgroup_ids_fini(struct seam_cgroup_ids *ids);

/* The path of an id, by a CGROUP record. */
struct seam_cgroup_path {
	uint64_t id;
	uint32_t path;			/* string */
};

struct seam_cgroup_paths {
	SEAM_ARRAY(struct seam_cgroup_path) items;
	struct seam_index index;	/* by id */
};

/* A later path of an id is the valid one.  0 or -ENOMEM. */
int seam_cgroup_paths_put(struct seam_cgroup_paths *paths,
			  const struct seam_cgroup_path *path);
void seam_cgroup_paths_fini(struct seam_cgroup_paths *paths);

/*
 * Numbers in @samples become strings: paths, or "[cgroup ID]".  Once waits are
 * there too: what has no cgroup of its own gets the last one that its thread
 * had before, or the first one after.  0 or -ENOMEM.
 */
int seam_cgroups_name(struct seam_profile *profile,
		      const struct seam_cgroup_ids *ids,
		      const struct seam_cgroup_paths *paths);
int seam_cgroups_spread(struct seam_profile *profile);
