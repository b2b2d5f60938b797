/* SPDX-License-Identifier: MIT */
/*
 * self_table.h - the unwinding rules of a loaded image, in pages of their own
 *
 * A copy: nothing in it points into the image, which may be unloaded while a
 * handler reads the table.  The pages are read-only, so that a program that
 * writes where it should not changes no rule.
 *
 * Addresses are those of the file, so a library that is loaded again, at
 * another address, has the same table.
 *
 * Threads: the owner makes and frees; any handler reads.
 */
#ifndef SEAM_SELF_TABLE_H
#define SEAM_SELF_TABLE_H

#include "unwind/compile/table.h"

struct seam_self_table {
	struct seam_unwind_table table;	/* without indexes */
	uint64_t hash;			/* of what it was made from */
	size_t frame_bytes;		/* as well */
	size_t n_pages_bytes;		/* of the mapping that begins here */
};

/* What identifies the table of @frame: equal hash and size, equal table. */
uint64_t seam_self_table_hash(const struct seam_eh_frame *frame);

/* NULL where memory ran out or nothing in @frame is usable. */
struct seam_self_table *
seam_self_table_new(const struct seam_eh_frame *frame, uint64_t hash);

void seam_self_table_free(struct seam_self_table *table);

#endif /* SEAM_SELF_TABLE_H */
