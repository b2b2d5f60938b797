/* SPDX-License-Identifier: MIT */
/*
 * cgroup.h - the hierarchy of cgroups that perf events know
 *
 * That of cgroup v1 with the controller perf_event, where there is one, or else
 * cgroup v2.  Ids of cgroups in samples and filters by cgroup are of it.
 * Source: cgroups(7); kernel/cgroup/cgroup.c, perf_event_cgrp_subsys with
 * implicit_on_dfl.
 */
#pragma once

#include <limits.h>

#include "base/base.h"
#include "base/err.h"

/*
 * The folder where the hierarchy is mounted, or "" if it is not.  Returns
 * @root.
 */
const char *seam_cgroup_root(char root[PATH_MAX]);

/*
 * Open the folder of cgroup @name, a path below the root as in
 * /proc/PID/cgroup, for perf_event_open() with PERF_FLAG_PID_CGROUP.  Returns a
 * descriptor, or -errno: -ENOENT where there is no such cgroup.
 */
int seam_cgroup_open(const char *name, struct seam_err *err);
