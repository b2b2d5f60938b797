/* SPDX-License-Identifier: MIT */
/*
 * dies.h - the functions, inlined calls and scopes of one compilation unit
 *
 * Each is built by one walk over the unit's DIEs.  An inlined call has the
 * index of the call or function that encloses it: the frames of an address are
 * the path to the top.  Scopes are the namespaces, types and functions around
 * the DIEs of functions: gcc gives functions without external linkage (static
 * ones, those of unnamed namespaces, lambdas) no linkage name, only the last
 * part of their name.
 *
 * Each attribute of a DIE and each range costs one of a budget, and none left
 * ends a walk with -E2BIG: damaged DWARF can name the same bytes over and over.
 */
#ifndef SEAM_DIES_H
#define SEAM_DIES_H

#include "base/arena.h"
#include "base/array.h"
#include "base/intervals.h"

#include <elfutils/libdw.h>

/* The cost of reading @die: its attributes, which may take no bytes. */
uint64_t seam_die_cost(Dwarf_Die *die);

/* Take @amount from *@budget; false, and no budget is left, if it has less. */
bool seam_die_spend(uint64_t *budget, uint64_t amount);

/* ---- inlined calls ---- */

/* A function, or a call of one that was inlined. */
struct seam_inline {
	Dwarf_Die die;
	uint32_t parent;	/* the enclosing one; SEAM_NONE: a function */
	const char *name;	/* NULL until it is used */
};

/* Zeroed is valid and empty. */
struct seam_inlines {
	SEAM_ARRAY(struct seam_inline) calls;
	struct seam_intervals intervals;	/* ids are indices of calls */
};

/*
 * Read @unit.  0, -ENOMEM, or -E2BIG where *@budget was used up.  What was read
 * before is kept.
 */
int seam_inlines_read(struct seam_inlines *inlines, Dwarf_Die *unit,
		      uint64_t *budget);

void seam_inlines_fini(struct seam_inlines *inlines);

/* ---- scopes ---- */

/* Zeroed is valid and empty. */
struct seam_scopes {
	SEAM_ARRAY(struct seam_scope {
		const char *name;	/* borrowed from libdw */
		uint32_t parent;	/* SEAM_NONE: none */
	}) items;
	SEAM_ARRAY(struct seam_scoped {
		Dwarf_Off die;		/* of a function; ascending */
		uint32_t scope;
	}) functions;
};

/* As seam_inlines_read(). */
int seam_scopes_read(struct seam_scopes *scopes, Dwarf_Die *unit,
		     uint64_t *budget);

/*
 * "a::(anonymous namespace)::B::name" for the function at @die, in @arena;
 * @name where nothing is around it.
 */
const char *seam_scopes_qualify(const struct seam_scopes *scopes,
				Dwarf_Off die, const char *name,
				struct seam_arena *arena);

void seam_scopes_fini(struct seam_scopes *scopes);

#endif /* SEAM_DIES_H */
