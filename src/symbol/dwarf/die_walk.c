/* SPDX-License-Identifier: MIT */
/*
 * die_walk.c - a walk without recursion; contract in die_walk.h
 *
 * Progress: each step is to a DIE further on (libdw refuses a sibling at a
 * lower offset), and costs budget.
 */
#include "symbol/dwarf/die_walk.h"

#include <errno.h>

#include <dwarf.h>

/* Deeper ones are left out; compilers nest a few dozen. */
enum { MAX_DEPTH = 128 };

/* Abbreviations whose cost is cached; a unit uses a few hundred. */
enum { KNOWN = 256 };

struct level {
	Dwarf_Die die;		/* the next of its siblings */
	uint32_t enclosing;
};

struct die_walk {
	uint64_t *budget;
	struct level levels[MAX_DEPTH];
	size_t depth;
	struct {
		const Dwarf_Abbrev *abbrev;
		uint64_t cost;
	} known[KNOWN];		/* by the address of the abbreviation */
};

bool seam_die_spend(uint64_t *budget, uint64_t amount)
{
	bool has_enough = *budget >= amount;

	*budget = has_enough ? *budget - amount : 0;
	return has_enough;
}

uint64_t seam_die_cost(Dwarf_Die *die)
{
	size_t n = 0;

	/* Reading the tag makes libdw find the abbreviation. */
	if (dwarf_tag(die) == DW_TAG_invalid ||
	    dwarf_getattrcnt(die->abbrev, &n))
		return 1;
	return n + 1;
}

/* The same, cached: counting takes as long as reading. */
static uint64_t cost_of(struct die_walk *walk, Dwarf_Die *die)
{
	size_t i;

	if (dwarf_tag(die) == DW_TAG_invalid)
		return 1;
	i = ((uintptr_t)die->abbrev / 32) % KNOWN;
	if (walk->known[i].abbrev != die->abbrev) {
		walk->known[i].abbrev = die->abbrev;
		walk->known[i].cost = seam_die_cost(die);
	}
	return walk->known[i].cost;
}

/* The children of @die are next. */
static void enter(struct die_walk *walk, Dwarf_Die *die, uint32_t enclosing)
{
	struct level *level = &walk->levels[walk->depth];

	if (walk->depth < MAX_DEPTH && dwarf_child(die, &level->die) == 0) {
		level->enclosing = enclosing;
		walk->depth++;
	}
}

int seam_die_walk(Dwarf_Die *unit, uint64_t *budget, seam_die_visit *visit,
		  void *context)
{
	struct die_walk walk = { .budget = budget };

	enter(&walk, unit, SEAM_NONE);
	while (walk.depth > 0) {
		struct level *level = &walk.levels[walk.depth - 1];
		uint32_t enclosing = level->enclosing;
		Dwarf_Die die = level->die, next;
		int r;

		if (!seam_die_spend(budget, cost_of(&walk, &die)))
			return -E2BIG;
		r = visit(context, &die, &enclosing);
		if (r < 0)
			return r;
		if (dwarf_siblingof(&die, &next) == 0)
			level->die = next;
		else
			walk.depth--;
		if (r > 0)
			enter(&walk, &die, enclosing);
	}
	return 0;
}
