/* SPDX-License-Identifier: MIT */
/*
 * table.h - all unwinding rules of a file, sorted by address
 *
 * Two arrays: addresses, and the ids of the rules that hold from there; a
 * look-up is one binary search over the addresses of a block of code.  6.5
 * bytes a row: for libc, node and libLLVM 1.1 to 1.3 times their .eh_frame.
 *
 * Where FDEs overlap, which no linker makes, the one that starts later wins
 * from its start on.  Between FDEs the rule is SEAM_UNWIND_NO_CFI; an FDE
 * that breaks the format has SEAM_UNWIND_BAD_CFI.
 *
 * Threads: built by one, then read by any number; a look-up allocates
 * nothing and may run in a signal handler.
 */
#pragma once

#include "unwind/rules.h"
#include "wire/eh_frame.h"

/* Zeroed is valid and empty. */
struct seam_unwind_table {
	uint64_t base_addr;	/* what the addresses below count from */
	uint32_t *starts;	/* ascending */
	uint16_t *ids;		/* of struct seam_unwind_rules */
	size_t n;
	/*
	 * Of each block of 1 << block_shift bytes, the last row that starts at
	 * or before its start: a look-up searches the rows of one block.
	 */
	uint32_t *blocks;
	size_t n_blocks;
	uint8_t block_shift;
	struct seam_unwind_rules rules;
};

/*
 * Compile all of @frame.  Its rules are added to @rules, which several tables
 * may share; NULL: to those of @table.  0, -ENOMEM, or -ENOTSUP where the code
 * of the file spreads over more than 4 GiB.  On failure the table is empty.
 * Cost: linear in the bytes of @frame, and a sort of its FDEs.  A CIE of many
 * instructions with many small FDEs would cost more: the later ones are
 * refused.
 */
int seam_unwind_table_build(struct seam_unwind_table *table,
			    const struct seam_eh_frame *frame,
			    struct seam_unwind_rules *rules);

/* The id of the rules at @addr. */
static inline uint16_t
seam_unwind_table_find(const struct seam_unwind_table *table, uint64_t addr)
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

void seam_unwind_table_fini(struct seam_unwind_table *table);
