/* SPDX-License-Identifier: MIT */
/* scan_counters.c - the last value of each counter; see scan_counters.h */
#include "model/perf/scan_counters.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

int seam_scan_counters_set(struct seam_scan_counters *counters, uint64_t id,
			   uint64_t value, uint64_t *by)
{
	uint32_t at = SEAM_INDEX_INTERN(&counters->index, seam_hash_u64(id),
		&counters->items, i, counters->items.items[i].id == id,
		(struct seam_scan_counter) { .id = id });

	if (at == SEAM_NONE)
		return -ENOMEM;
	*by = value - counters->items.items[at].value;
	counters->items.items[at].value = value;
	return 0;
}

void seam_scan_counters_fini(struct seam_scan_counters *counters)
{
	free(counters->items.items);
	seam_index_fini(&counters->index);
}
