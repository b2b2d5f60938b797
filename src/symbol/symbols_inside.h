/* SPDX-License-Identifier: MIT */
/*
 * symbols_inside.h - the tables of a module, for the process that reads it
 *
 * remote_serve.c hands them over; nobody else needs more than symbols.h.
 */
#ifndef SEAM_SYMBOLS_INSIDE_H
#define SEAM_SYMBOLS_INSIDE_H

#include "symbol/bounds.h"
#include "symbol/dwarf.h"
#include "symbol/elf_file.h"
#include "symbol/symbols.h"
#include "symbol/symtab.h"

struct seam_symbols_inside {
	uint32_t id;
	const struct seam_symtab *table;
	const struct seam_segments *segments;
	struct seam_dwarf *dwarf;	/* NULL: none */
	const char *problem;		/* NULL: none */
};

/* Borrowed; the module is read if it was not.  An @id of nobody: nothing. */
void seam_symbols_look_inside(struct seam_symbols *symbols, uint32_t id,
			      struct seam_symbols_inside *inside);

/* The bounds of its functions, read if they were not.  @id is valid. */
const struct seam_bounds *seam_symbols_bounds(struct seam_symbols *symbols,
					      uint32_t id);

#endif /* SEAM_SYMBOLS_INSIDE_H */
