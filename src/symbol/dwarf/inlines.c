/* SPDX-License-Identifier: MIT */
/*
 * inlines.c - one walk over the DIEs of a unit; contract in inlines.h
 *
 * Only DIEs that can hold code are entered: types are most of a unit and are
 * stepped over.  Progress: each step is to a DIE further on (libdw refuses
 * a sibling at a lower offset), and costs budget.
 */
#include "symbol/dwarf/inlines.h"

#include <errno.h>
#include <stdlib.h>

#include <dwarf.h>

/* Deeper ones are left out; compilers nest a few dozen. */
enum { MAX_DEPTH = 128 };

/* Abbreviations whose cost is cached; a unit uses a few hundred. */
enum { KNOWN = 256 };

struct level {
	Dwarf_Die die;		/* the next of its siblings */
	uint32_t call;		/* the enclosing one; SEAM_NONE: none */
};

struct die_walk {
	struct seam_inlines *inlines;
	uint64_t *budget;
	struct level levels[MAX_DEPTH];
	size_t depth;
	struct {
		const Dwarf_Abbrev *abbrev;
		uint64_t cost;
	} known[KNOWN];		/* by the address of the abbreviation */
};

static bool spend(struct die_walk *walk, uint64_t amount)
{
	if (*walk->budget < amount) {
		*walk->budget = 0;
		return false;
	}
	*walk->budget -= amount;
	return true;
}

uint64_t seam_inlines_cost(Dwarf_Die *die)
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
		walk->known[i].cost = seam_inlines_cost(die);
	}
	return walk->known[i].cost;
}

static int add_ranges(struct die_walk *walk, Dwarf_Die *die, uint32_t id)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (!spend(walk, 1))
			return -E2BIG;
		if (seam_intervals_add(&walk->inlines->intervals, start, end,
				       id))
			return -ENOMEM;
	}
	return 0;
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) ||
	       dwarf_hasattr(die, DW_AT_ranges);
}

/*
 * Add the function or call @die.  *@call is the enclosing call, and then that
 * of its children.  1: enter it; 0: step over it.
 */
static int take_call(struct die_walk *walk, Dwarf_Die *die, bool is_inlined,
		     uint32_t *call)
{
	uint32_t id = (uint32_t)walk->inlines->calls.n;
	int r;

	/* Declarations, and the abstract originals of inlined functions. */
	if (!has_code(die))
		return 0;
	if (id == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&walk->inlines->calls, (struct seam_inline) {
		.die = *die, .parent = is_inlined ? *call : SEAM_NONE }))
		return -ENOMEM;
	*call = id;
	r = add_ranges(walk, die, id);
	return r ? r : 1;
}

/* 1: its children may hold code; 0: step over it; or a failure. */
static int visit(struct die_walk *walk, Dwarf_Die *die, uint32_t *call)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return take_call(walk, die, false, call);
	case DW_TAG_inlined_subroutine:
		return take_call(walk, die, true, call);
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
		return 1;
	default:
		return 0;
	}
}

/* The children of @die, which @call encloses, are next. */
static void enter(struct die_walk *walk, Dwarf_Die *die, uint32_t call)
{
	struct level *level = &walk->levels[walk->depth];

	if (walk->depth < MAX_DEPTH && dwarf_child(die, &level->die) == 0) {
		level->call = call;
		walk->depth++;
	}
}

static int step(struct die_walk *walk)
{
	struct level *level = &walk->levels[walk->depth - 1];
	Dwarf_Die die = level->die, next;
	uint32_t call = level->call;
	int r;

	if (!spend(walk, cost_of(walk, &die)))
		return -E2BIG;
	r = visit(walk, &die, &call);
	if (r < 0)
		return r;
	if (dwarf_siblingof(&die, &next) == 0)
		level->die = next;
	else
		walk->depth--;
	if (r > 0)
		enter(walk, &die, call);
	return 0;
}

int seam_inlines_read(struct seam_inlines *inlines, Dwarf_Die *unit,
		      uint64_t *budget)
{
	struct die_walk walk = { .inlines = inlines, .budget = budget };
	int r = 0, cut;

	enter(&walk, unit, SEAM_NONE);
	while (!r && walk.depth > 0)
		r = step(&walk);
	cut = seam_intervals_cut(&inlines->intervals);
	return r ? r : cut;
}

void seam_inlines_fini(struct seam_inlines *inlines)
{
	free(inlines->calls.items);
	seam_intervals_fini(&inlines->intervals);
	*inlines = (struct seam_inlines) { 0 };
}
