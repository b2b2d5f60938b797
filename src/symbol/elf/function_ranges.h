/* SPDX-License-Identifier: MIT */
/*
 * function_ranges.h - the functions of code that has no symbols
 *
 * Where the symbol table was stripped, .eh_frame still has the start and end
 * of functions, and Go's .gopclntab their names too.  Where both have an
 * address, Go's table counts.  seam_name_tables_read() finds further names.
 *
 * Ownership: owns its tables, borrows nothing.  Threads: filled by one, then
 * read by any number.
 */
#pragma once

#include "base/intervals.h"
#include "base/strings.h"
#include "symbol/elf/elf_file.h"

/* ---- Go's table ---- */

/*
 * The table that Go's runtime needs, and that stripping leaves, of Go 1.2 to
 * 1.15, 1.16 to 1.17, and 1.18 or later.
 *
 * Source: Go, src/debug/gosym/pclntab.go and src/runtime/symtab.go.
 */
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

/* ---- all ranges ---- */

struct seam_function_range {
	uint64_t start, end;		/* addresses, as symbols have them */
	uint32_t go;			/* index in Go's table, or SEAM_NONE */
	uint32_t name;			/* id in names; 0: none */
	bool is_signal_frame;		/* a signal trampoline */
};

/* Zeroed is valid and empty. */
struct seam_function_ranges {
	SEAM_ARRAY(struct seam_function_range) items;
	struct seam_intervals intervals;	/* ids are indices of items */
	struct seam_gopclntab go;
	uint8_t *go_bytes;	/* owned: a copy of the section */
	struct seam_strings names;
};

/*
 * Read what @file has.  0, also when there is none, or -ENOMEM.
 * Cost: a pass over the sections and a sort; libxul's 150,000 take 30 ms.
 */
int seam_function_ranges_read(struct seam_function_ranges *ranges,
			      const struct seam_elf *file);

/* The function that @addr is in, or NULL.  O(log n). */
const struct seam_function_range *
seam_function_ranges_find(const struct seam_function_ranges *ranges,
			  uint64_t addr);

/* Its name, or NULL; lives as long as @ranges. */
const char *seam_function_ranges_name(const struct seam_function_ranges *ranges,
				      const struct seam_function_range *range);

void seam_function_ranges_fini(struct seam_function_ranges *ranges);

/*
 * Name @ranges, which were read from @file.  0, also where there are no tables,
 * or -ENOMEM.
 * Cost: a sort of the file's relocations; 10 ms for python3.
 */
int seam_name_tables_read(struct seam_function_ranges *ranges,
			  const struct seam_elf *file);
