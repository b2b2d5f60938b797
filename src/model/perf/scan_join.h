/* SPDX-License-Identifier: MIT */
/* scan_join.h - join the parts of a scan, whose ids are made common */
#ifndef SEAM_SCAN_JOIN_H
#define SEAM_SCAN_JOIN_H

#include "model/perf/perf_scan.h"

/*
 * Move the samples of @scans to @samples, their callchains to @chains, and
 * their task keys to @tasks, which has no key before: records of the side-band
 * may use keys only after.  0 or -ENOMEM.
 */
int seam_scan_join(struct seam_perf_scan *scans, size_t n,
		   struct seam_samples *samples,
		   struct seam_callchains *chains, struct seam_tasks *tasks);

#endif /* SEAM_SCAN_JOIN_H */
