/* SPDX-License-Identifier: MIT */
/*
 * symtab.h - the symbols of one file or kernel, by address
 *
 * Takes symbols in any order, with or without sizes, several at one address,
 * and finds the one that holds an address:
 *
 * - a symbol without a size ends where the next one starts, and never
 *   after its limit;
 * - a label (a symbol of no type and no size) inside a sized symbol is a
 *   position in that function, and no function;
 * - of several at one address the best one counts: see symtab.c.
 *
 * Names are borrowed and must outlive the table.
 */
#pragma once

#include "base/arena.h"
#include "base/array.h"
#include "base/intervals.h"

enum seam_symbol_flag {
	SEAM_SYMBOL_GLOBAL = 1,
	SEAM_SYMBOL_WEAK = 2,
	SEAM_SYMBOL_LABEL = 4,	/* has no type */
	SEAM_SYMBOL_FENCE = 8,	/* data: ends what is before it; no name */
};

struct seam_symbol {
	uint64_t start;
	uint64_t end;		/* == start: no size */
	uint64_t limit;		/* a symbol without a size ends by then */
	const char *name;	/* before demangling */
	const char *shown;	/* demangled; NULL until it is used */
	uint32_t flags;		/* of enum seam_symbol_flag */
};

/* Zeroed is valid and empty. */
struct seam_symtab {
	SEAM_ARRAY(struct seam_symbol) symbols;
	struct seam_intervals intervals;
};

/* 0 or -ENOMEM. */
int seam_symtab_add(struct seam_symtab *table,
		    const struct seam_symbol *symbol);

/*
 * Sort what was added.  Needed before look-ups, and again after more was
 * added.  0 or -ENOMEM.
 */
int seam_symtab_sort(struct seam_symtab *table);

/*
 * The symbol that @addr is in, or NULL.  Of equally good aliases the first of
 * the table.  O(log n).
 */
const struct seam_symbol *seam_symtab_find(const struct seam_symtab *table,
					   uint64_t addr);

/* Where @symbol of @table ends: by its size, or where the next one starts. */
uint64_t seam_symtab_end(const struct seam_symtab *table,
			 const struct seam_symbol *symbol);

/*
 * The name to show for the function at @addr, or NULL: demangled, and the
 * best of equally good aliases.  Made once, in @arena; one arena for all
 * calls.
 */
const char *seam_symtab_name(struct seam_symtab *table, uint64_t addr,
			     struct seam_arena *arena);

void seam_symtab_fini(struct seam_symtab *table);
