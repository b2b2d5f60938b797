/* SPDX-License-Identifier: MIT */
/*
 * wait_stats.h - of waits: where their stacks are from; what threads did
 *
 * A part of "report --stats", of all that was recorded, whatever is selected.
 */
#pragma once

#include "base/json.h"
#include "report/view.h"

/* For each event of waits, then for threads.  Nothing without switches. */
void seam_wait_stats_text(const struct seam_profile *profile,
			  const struct seam_view *view);

/* The members "waits" and "threads". */
void seam_wait_stats_json(const struct seam_profile *profile,
			  struct seam_json *j);
