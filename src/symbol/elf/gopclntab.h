/* SPDX-License-Identifier: MIT */
/*
 * gopclntab.h - functions of a Go program, from the table that its runtime
 * needs and that stripping leaves
 *
 * Of Go 1.2 to 1.15, 1.16 to 1.17, and 1.18 or later.  Works on bytes alone.
 *
 * Source: Go, src/debug/gosym/pclntab.go and src/runtime/symtab.go.
 */
#ifndef SEAM_GOPCLNTAB_H
#define SEAM_GOPCLNTAB_H

#include "base/base.h"
#include "base/cursor.h"

struct seam_gopclntab {
	struct seam_bytes bytes;	/* of the section, borrowed */
	enum seam_endian endian;
	unsigned int addr_bytes;	/* 4 or 8 */
	unsigned int word_bytes;	/* of an entry's two numbers */
	size_t n;			/* functions */
	uint64_t text_addr;		/* entries are relative to it, or 0 */
	size_t text_addr_pos;		/* where it was read; 0: not there */
	uint64_t names_pos, table_pos;	/* offsets in the section */
};

struct seam_gofunction {
	uint64_t start_addr, end_addr;
	const char *name;		/* "runtime.mallocgc"; borrowed */
};

/* Read the header.  False when it is none that can be read. */
bool seam_gopclntab_open(struct seam_gopclntab *table, struct seam_bytes bytes,
			 enum seam_endian endian);

/*
 * Function @i of the table, which are in ascending order.  False when it is
 * damaged.
 */
bool seam_gopclntab_function(const struct seam_gopclntab *table, size_t i,
			     struct seam_gofunction *out);

#endif /* SEAM_GOPCLNTAB_H */
