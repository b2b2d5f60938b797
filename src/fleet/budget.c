/* SPDX-License-Identifier: MIT */
/* budget.c - the average of some windows, and a step; see budget.h */
#include "fleet/budget.h"

enum {
	WINDOWS_OVER = 2,	/* one may have read the names of a new program */
	WINDOWS_UNDER = 6,
	MAX_SKIPS = 15,
	UNDER_PART = 3,		/* of the budget: twice as much still fits */
};

bool seam_budget_takes(const struct seam_budget *b, uint64_t number)
{
	return number % (b->skips + 1) == 0;
}

static bool lower(struct seam_budget *b)
{
	if (b->hz > 1)
		b->hz /= 2;
	else if (b->skips < MAX_SKIPS)
		b->skips = 2 * b->skips + 1;
	else
		return false;
	return true;
}

static bool raise_again(struct seam_budget *b)
{
	if (b->skips)
		b->skips /= 2;
	else if (b->hz < b->full_hz)
		b->hz = 2 * b->hz < b->full_hz / 2 ? 2 * b->hz : b->full_hz;
	else
		return false;
	return true;
}

bool seam_budget_add(struct seam_budget *b, uint64_t cpu_ns, uint64_t ns)
{
	bool is_over, is_changed = false;
	double cpus;

	b->cpu_ns += cpu_ns;
	b->ns += ns;
	b->n_windows++;
	if (b->max_cpus <= 0 || !b->ns)
		return false;
	cpus = (double)b->cpu_ns / (double)b->ns;
	is_over = cpus > b->max_cpus &&
		  b->n_windows >= WINDOWS_OVER * (b->skips + 1);
	if (!is_over && b->n_windows < WINDOWS_UNDER * (b->skips + 1))
		return false;
	if (is_over)
		is_changed = lower(b);
	else if (cpus < b->max_cpus / UNDER_PART)
		is_changed = raise_again(b);
	b->n_windows = 0;
	b->cpu_ns = b->ns = 0;
	return is_changed;
}
