/* SPDX-License-Identifier: MIT */
/*
 * cfi_rows.h - the unwinding rules of a file, compiled when code is first seen
 *
 * A function is compiled when one of its addresses is looked up for the first
 * time, found by the table of contents (.eh_frame_hdr); a small cache in front
 * holds the ids of addresses.  What has no table of contents, or none that can
 * be searched, is compiled as a whole when the rows are made; so is
 * .debug_frame, which is for addresses without .eh_frame.
 *
 * The sections are untrusted.  A function is compiled once, and all of them
 * together cost no more than the bytes of a section: a table of contents whose
 * entries overlap has its later functions refused, as SEAM_UNWIND_BAD_CFI.
 *
 * Ownership: the bytes of the sections are borrowed until _fini().
 * Threads: one at a time; a look-up may allocate.
 * Cost: 10 ns for an address in the cache, 0.2 us for one of a known function,
 * 0.3 to 1 us for a new function.
 */
#ifndef SEAM_UNWIND_ROWS_H
#define SEAM_UNWIND_ROWS_H

#include "unwind/compile/function_rows.h"
#include "unwind/compile/table.h"

struct seam_unwind_cached {
	uint64_t addr;
	uint32_t id_and_1;		/* 0: a free slot */
};

/* Zeroed is valid and empty. */
struct seam_unwind_rows {
	struct seam_unwind_rules rules;		/* of all ids */
	struct seam_eh_frame searched;		/* with a table of contents */
	struct seam_eh_fde fde;			/* the last one, with its CIE */
	struct seam_unwind_functions functions;
	struct seam_index index;	/* of functions, by their start */

	struct seam_unwind_table whole, debug;

	struct seam_unwind_cached *cache;	/* by address, no chains */
	size_t n_cache, n_misses;
};

/*
 * @eh and @debug are .eh_frame and .debug_frame of a file; NULL or without
 * entries: it has none.  0, -ENOMEM, or -ENOTSUP as seam_unwind_table_build();
 * on failure @rows is empty.
 */
int seam_unwind_rows_init(struct seam_unwind_rows *rows,
			  const struct seam_eh_frame *eh,
			  const struct seam_eh_frame *debug);

/*
 * The id, in rows->rules, of the rule at @addr, an address as the file has it.
 * Without memory it is SEAM_UNWIND_BAD_CFI, until there is some.
 */
uint16_t seam_unwind_rows_find(struct seam_unwind_rows *rows, uint64_t addr);

void seam_unwind_rows_fini(struct seam_unwind_rows *rows);

#endif /* SEAM_UNWIND_ROWS_H */
