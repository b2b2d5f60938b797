/* SPDX-License-Identifier: MIT */
/* hotplug.c - time that is missing, CPUs that are new; see hotplug.h */
#include "record/perf/hotplug.h"

#include <stdlib.h>

/*
 * Going offline and online again takes longer than this; errors of the clocks,
 * apart from the error that all CPUs share, are smaller.
 */
#define MIN_MISSING_NS INT64_C(5000000)

/*
 * How much longer source @i was enabled by our clock than by the kernel's;
 * INT64_MAX where that is not known.  The two run at different rates, so the
 * same error, of either sign, is in the value of each CPU.
 */
static int64_t missing_ns(const struct seam_sources *s, size_t i)
{
	const struct seam_source *source = &s->list.items[i];
	uint64_t enabled_ns;

	if (!source->enabled_at_ns || !source->disabled_at_ns ||
	    !seam_sources_enabled_ns(s, i, &enabled_ns))
		return INT64_MAX;
	return (int64_t)(source->disabled_at_ns - source->enabled_at_ns) -
	       (int64_t)enabled_ns;
}

static int64_t least_missing_ns(const struct seam_sources *s)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < s->list.n; i++) {
		int64_t missing = missing_ns(s, i);

		if (missing < least)
			least = missing;
	}
	return least;
}

/* CPUs whose events ended, though they are online. */
static void count_back(const struct seam_sources *s,
		       const struct seam_number_list *online,
		       struct seam_counts *counts)
{
	int64_t least = least_missing_ns(s);

	for (size_t i = 0; i < s->list.n; i++) {
		int64_t missing = missing_ns(s, i);
		int cpu = s->rings.items[s->list.items[i].ring].cpu;

		if (missing == INT64_MAX || missing - least < MIN_MISSING_NS ||
		    !seam_number_list_has(online, cpu))
			continue;
		counts->n[SEAM_COUNT_CPUS_BACK]++;
		if (!counts->first_cpu)
			counts->first_cpu = cpu;
		missing -= least;
		if ((uint64_t)missing > counts->n[SEAM_COUNT_CPU_NS])
			counts->n[SEAM_COUNT_CPU_NS] = (uint64_t)missing;
	}
}

void seam_hotplug_count(const struct seam_sources *s,
			struct seam_counts *counts)
{
	struct seam_number_list online = { 0 };

	if (seam_procfs_cpus(&online, NULL) == 0)
		count_back(s, &online, counts);
	else
		online.n = 0;
	/* with a list of CPUs from the user, a new one is not missing */
	for (size_t i = 0; !s->sampled.n && i < online.n; i++)
		if (!seam_number_list_has(&s->cpus, online.items[i])) {
			counts->n[SEAM_COUNT_CPUS_NEW]++;
			if (!counts->first_cpu)
				counts->first_cpu = online.items[i];
		}
	free(online.items);
}
