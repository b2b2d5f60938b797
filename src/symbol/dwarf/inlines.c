/* SPDX-License-Identifier: MIT */
/*
 * inlines.c - the DIEs of a unit that have code; contract in inlines.h
 *
 * Only DIEs that can hold code are entered: types are most of a unit and are
 * stepped over.
 */
#include "symbol/dwarf/inlines.h"

#include <errno.h>
#include <stdlib.h>

#include <dwarf.h>

#include "symbol/dwarf/die_walk.h"

struct inlines_reader {
	struct seam_inlines *inlines;
	uint64_t *budget;
};

static int add_ranges(struct inlines_reader *reader, Dwarf_Die *die,
		      uint32_t id)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (!seam_die_spend(reader->budget, 1))
			return -E2BIG;
		if (seam_intervals_add(&reader->inlines->intervals, start, end,
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
static int take_call(struct inlines_reader *reader, Dwarf_Die *die,
		     bool is_inlined, uint32_t *call)
{
	uint32_t id = (uint32_t)reader->inlines->calls.n;
	int r;

	/* Declarations, and the abstract originals of inlined functions. */
	if (!has_code(die))
		return 0;
	if (id == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&reader->inlines->calls, (struct seam_inline) {
		.die = *die, .parent = is_inlined ? *call : SEAM_NONE }))
		return -ENOMEM;
	*call = id;
	r = add_ranges(reader, die, id);
	return r ? r : 1;
}

/* 1: its children may hold code; 0: step over it; or a failure. */
static int visit(void *context, Dwarf_Die *die, uint32_t *call)
{
	struct inlines_reader *reader = context;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return take_call(reader, die, false, call);
	case DW_TAG_inlined_subroutine:
		return take_call(reader, die, true, call);
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

int seam_inlines_read(struct seam_inlines *inlines, Dwarf_Die *unit,
		      uint64_t *budget)
{
	struct inlines_reader reader = { inlines, budget };
	int r = seam_die_walk(unit, budget, visit, &reader), cut;

	cut = seam_intervals_cut(&inlines->intervals);
	return r ? r : cut;
}

void seam_inlines_fini(struct seam_inlines *inlines)
{
	free(inlines->calls.items);
	seam_intervals_fini(&inlines->intervals);
	*inlines = (struct seam_inlines) { 0 };
}
