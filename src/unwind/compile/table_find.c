/* SPDX-License-Identifier: MIT */
/* table_find.c - the look-up alone, for signal handlers; see table.h */
#include "unwind/compile/table.h"

uint16_t seam_unwind_table_find(const struct seam_unwind_table *table,
				uint64_t addr)
{
	const uint32_t *starts;
	size_t block, n;
	uint32_t wanted;

	if (table->n == 0 || addr < table->base_addr)
		return SEAM_UNWIND_NO_CFI;
	wanted = addr - table->base_addr > UINT32_MAX ? UINT32_MAX :
		 (uint32_t)(addr - table->base_addr);
	block = wanted >> table->block_shift;
	if (block >= table->n_blocks)
		block = table->n_blocks - 1;
	starts = table->starts + table->blocks[block];
	n = (block + 1 < table->n_blocks ? table->blocks[block + 1] + 1 :
	     table->n) - table->blocks[block];
	/* the last start at or before it; the first is, so there is one */
	while (n > 1) {
		size_t half = n / 2;

		starts += starts[half] <= wanted ? half : 0;
		n -= half;
	}
	return table->ids[starts - table->starts];
}
