/* SPDX-License-Identifier: MIT */
/*
 * bounds.h - the functions of code that has no symbols
 *
 * Where the symbol table was stripped, .eh_frame still says where functions
 * begin and end, and Go's .gopclntab what they are called.  Where both know
 * an address, Go's table does.
 *
 * Ownership: owns its tables, borrows nothing.  Threads: filled by one, then
 * read by any number.
 */
#ifndef SEAM_BOUNDS_H
#define SEAM_BOUNDS_H

#include "symbol/elf/elf_file.h"
#include "symbol/elf/gopclntab.h"
#include "symbol/intervals.h"

struct seam_bound {
	uint64_t start, end;		/* addresses, as symbols have them */
	uint32_t go;			/* function of the table, or SEAM_NONE */
	bool is_signal_frame;		/* the kernel's handler returns to it */
};

/* Zeroed is valid and empty. */
struct seam_bounds {
	SEAM_ARRAY(struct seam_bound) items;
	struct seam_intervals intervals;	/* ids are indices of items */
	struct seam_gopclntab go;
	uint8_t *go_bytes;			/* owned: a copy of the section */
};

/*
 * Read what @file has.  0, also when there is none, or -ENOMEM.
 * Cost: a pass over the sections and a sort; libxul's 150,000 take 30 ms.
 */
int seam_bounds_read(struct seam_bounds *bounds, const struct seam_elf *file);

/* The function that @addr is in, or NULL.  O(log n). */
const struct seam_bound *seam_bounds_find(const struct seam_bounds *bounds,
					  uint64_t addr);

/* Its name, or NULL; lives as long as @bounds. */
const char *seam_bounds_name(const struct seam_bounds *bounds,
			     const struct seam_bound *bound);

void seam_bounds_fini(struct seam_bounds *bounds);

#endif /* SEAM_BOUNDS_H */
