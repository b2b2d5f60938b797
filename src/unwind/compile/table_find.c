/* SPDX-License-Identifier: MIT */
/* table_find.c - the look-up alone, for signal handlers; see table.h */
#include "unwind/compile/table.h"

uint16_t seam_unwind_table_find(const struct seam_unwind_table *table,
				uint64_t addr)
{
	const uint32_t *starts = table->starts;
	size_t n = table->n;
	uint32_t wanted;

	if (n == 0 || addr < table->base_addr)
		return SEAM_UNWIND_NO_CFI;
	wanted = addr - table->base_addr > UINT32_MAX ? UINT32_MAX :
		 (uint32_t)(addr - table->base_addr);
	/* the last start at or before it; the first is 0, so there is one */
	while (n > 1) {
		size_t half = n / 2;

		starts += starts[half] <= wanted ? half : 0;
		n -= half;
	}
	return table->ids[starts - table->starts];
}
