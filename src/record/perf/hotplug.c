/* SPDX-License-Identifier: MIT */
/* hotplug.c - time that is missing, CPUs that are new; see hotplug.h */
#include "record/perf/hotplug.h"

#include "record/proc/targets.h"

#include <stdlib.h>

/*
 * To go offline and to come back takes longer; two clocks that count the same
 * time differ by less, once what they all differ by is taken off.
 */
#define LEAST_MISSING_NS UINT64_C(5000000)

static bool is_in(const struct seam_number_list *list, int number)
{
	struct seam_number_list one = { .items = &number, .n = 1 };

	return seam_targets_are_in(&one, list);
}

/*
 * What is missing of the time of source @i, or INT64_MAX where nobody knows.
 * The kernel's clock runs at a rate of its own, so this may be some of it
 * too much or too little, the same on all CPUs.
 */
static int64_t missing_ns(const struct seam_sources *s, size_t i)
{
	const struct seam_source *source = &s->list.items[i];
	uint64_t had;

	if (!source->from_ns || !source->until_ns ||
	    !seam_sources_enabled_ns(s, i, &had))
		return INT64_MAX;
	return (int64_t)(source->until_ns - source->from_ns) - (int64_t)had;
}

static void look_at_source(struct seam_hotplug *h,
			   const struct seam_sources *s,
			   const struct seam_number_list *online,
			   size_t i, int64_t least)
{
	int64_t missing = missing_ns(s, i);
	int cpu = s->rings.items[s->list.items[i].ring].cpu;

	if (missing == INT64_MAX ||
	    (uint64_t)(missing - least) < LEAST_MISSING_NS)
		return;
	if (!is_in(online, cpu)) {
		h->n_away++;
		return;
	}
	if (h->n_back++ == 0)
		h->first = cpu;
	if ((uint64_t)(missing - least) > h->longest_ns)
		h->longest_ns = (uint64_t)(missing - least);
}

void seam_hotplug_look(struct seam_hotplug *hotplug,
		       const struct seam_sources *s)
{
	struct seam_number_list online = { 0 };
	int64_t least = INT64_MAX;

	*hotplug = (struct seam_hotplug) { .first = -1 };
	if (seam_procfs_cpus(&online, NULL) < 0) {
		free(online.items);
		return;
	}
	for (size_t i = 0; i < s->list.n; i++) {
		int64_t missing = missing_ns(s, i);

		if (missing < least)
			least = missing;
	}
	for (size_t i = 0; i < s->list.n; i++)
		look_at_source(hotplug, s, &online, i, least);
	/* the CPUs that the user named were there */
	for (size_t i = 0; !s->sampled.n && i < online.n; i++)
		if (!is_in(&s->cpus, online.items[i])) {
			hotplug->n_new++;
			if (hotplug->first < 0)
				hotplug->first = online.items[i];
		}
	free(online.items);
}
