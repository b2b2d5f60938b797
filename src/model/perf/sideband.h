/* SPDX-License-Identifier: MIT */
/*
 * sideband.h - the records of a perf.data file that are not samples
 *
 * Mappings, forks, names, exits and KSYMBOLs are collected first; sealing sorts
 * them by time and replays them once, into the profile's processes, threads,
 * modules and mappings, and into address spaces.  JIT code is found on the way.
 * Losses are counted.
 *
 * Threads: one at a time.
 */
#pragma once

#include "model/jit/jit_sources.h"
#include "model/origin.h"
#include "model/perf/perf_scan.h"
#include "model/perf/tasks.h"

struct seam_sideband {
	struct seam_profile *profile;
	const struct seam_perf_data *data;
	struct seam_jit_sources *jit;
	struct seam_origin origin;
	struct seam_bytes vdso_build_id;	/* the kernel records none */
	struct seam_tasks tasks;
	SEAM_ARRAY(struct seam_listed_id) build_ids;	/* by path */
	struct seam_index by_path;
	struct seam_cgroup_paths cgroups;

	uint64_t n_lost_ring;		/* sum of the LOST records */
	struct {			/* sums of the AUX records */
		uint64_t n_bytes, n_truncated, n_other;
	} aux;
	bool is_throttled;
	int error;			/* 0 or -ENOMEM */
};

/*
 * Begin: @sideband has profile, data, jit, origin and vdso_build_id set, and
 * @kernel is the kernel of the manifest.  Reads the build ids of the
 * header, and makes the kernel's module and mapping 0, for kernel addresses
 * without one.  0 or -ENOMEM.
 */
int seam_sideband_init(struct seam_sideband *sideband,
		       const struct seam_kernel *kernel);

/*
 * Take the records of all scans, and replay them.  Damaged ones are counted in
 * their scan.  0 or -ENOMEM.
 */
int seam_sideband_read(struct seam_sideband *sideband,
		       struct seam_perf_scan *scans, size_t n);

void seam_sideband_fini(struct seam_sideband *sideband);
