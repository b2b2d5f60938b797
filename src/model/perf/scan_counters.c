/* SPDX-License-Identifier: MIT */
/* scan_counters.c - differences in the order of time; see scan_counters.h */
#include "model/perf/scan_counters.h"

#include "base/radix_sort.h"

int seam_scan_counters_add(struct seam_scan_counters *counters, uint64_t id,
			   uint64_t time_ns, uint64_t value)
{
	return SEAM_ARRAY_ADD(&counters->items, (struct seam_scan_counter) {
			.id = id, .time_ns = time_ns, .value = value,
			.order = counters->items.n }) ? 0 : -ENOMEM;
}

int seam_scan_counters_seal(struct seam_scan_counters *counters)
{
	struct seam_scan_counter *all = counters->items.items;
	int r = SEAM_RADIX_SORT(&counters->items, time_ns);

	/* stable: the values of one counter stay in the order of time */
	if (r == 0)
		r = SEAM_RADIX_SORT(&counters->items, id);
	for (size_t i = counters->items.n; r == 0 && i-- > 1;)
		if (all[i].id == all[i - 1].id)
			all[i].value -= all[i - 1].value;
	return r ? r : SEAM_RADIX_SORT(&counters->items, order);
}

uint64_t seam_scan_counters_next(struct seam_scan_counters *counters)
{
	return counters->next < counters->items.n ?
	       counters->items.items[counters->next++].value : 0;
}

void seam_scan_counters_fini(struct seam_scan_counters *counters)
{
	free(counters->items.items);
}
