/* SPDX-License-Identifier: MIT */
/*
 * die_walk.h - one walk over the DIEs of a unit
 *
 * A DIE is passed with an id of what encloses it, as the visitor of the
 * enclosing DIEs set it.
 */
#ifndef SEAM_DIE_WALK_H
#define SEAM_DIE_WALK_H

#include "base/base.h"

#include <elfutils/libdw.h>

/*
 * *@enclosing is the id that encloses @die, SEAM_NONE at the top; set it for
 * the children of @die.  1: walk these; 0: step over them; or -errno, which
 * ends the walk.
 */
typedef int seam_die_visit(void *context, Dwarf_Die *die, uint32_t *enclosing);

/*
 * Walk the DIEs below @unit.  Each of their attributes costs one of *@budget,
 * and none left ends the walk with -E2BIG: damaged DWARF can name the same
 * bytes over and over.  0, -E2BIG, or what @visit returned.
 */
int seam_die_walk(Dwarf_Die *unit, uint64_t *budget, seam_die_visit *visit,
		  void *context);

/* The cost of reading @die: its attributes, which may take no bytes. */
uint64_t seam_die_cost(Dwarf_Die *die);

/* Take @amount from *@budget; false, and no budget is left, if it has less. */
bool seam_die_spend(uint64_t *budget, uint64_t amount);

#endif /* SEAM_DIE_WALK_H */
