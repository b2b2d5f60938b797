/* SPDX-License-Identifier: MIT */
/*
 * budget.h - how often to sample, for no more CPU time than was allowed
 *
 * Where the average over some windows is above the budget, the frequency is
 * halved; at 1 Hz windows are left out, up to 15 of 16.  Where it is far below,
 * one of these steps is undone.  A change is followed by windows that are
 * measured before the next.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct seam_budget {
	double max_cpus;		/* of one CPU; 0: no limit */
	uint64_t full_hz, hz;		/* requested; now */
	unsigned int skips;		/* windows after each that is recorded */
	unsigned int n_windows;		/* since the last change */
	uint64_t cpu_ns, ns;		/* of these windows */
};

/* Whether window @number is recorded; the others are left out. */
bool seam_budget_takes(const struct seam_budget *budget, uint64_t number);

/* A window of @ns took @cpu_ns.  True: the frequency or skips have changed. */
bool seam_budget_add(struct seam_budget *budget, uint64_t cpu_ns, uint64_t ns);
