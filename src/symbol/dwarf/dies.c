/* SPDX-License-Identifier: MIT */
/*
 * dies.c - a walk without recursion, and what it collects; see dies.h
 *
 * Progress: each step is to a DIE further on (libdw refuses a sibling at a
 * lower offset), and costs budget.
 */
#include "symbol/dwarf/dies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * Called with an id of what encloses @die, *@enclosing, as the visitor of the
 * enclosing DIEs set it; SEAM_NONE at the top.  Set it for the children of
 * @die.  1: walk these; 0: step over them; or -errno, which ends the walk.
 */
typedef int visit_die(void *context, Dwarf_Die *die, uint32_t *enclosing);

/* The DIEs below @unit.  0, -E2BIG, or what @visit returned. */
static int walk_dies(Dwarf_Die *unit, uint64_t *budget, visit_die *visit,
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

/* ---- inlined calls: only DIEs that can hold code are entered ---- */

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
static int visit_call(void *context, Dwarf_Die *die, uint32_t *call)
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
	int r = walk_dies(unit, budget, visit_call, &reader), cut;

	cut = seam_intervals_cut(&inlines->intervals);
	return r ? r : cut;
}

void seam_inlines_fini(struct seam_inlines *inlines)
{
	free(inlines->calls.items);
	seam_intervals_fini(&inlines->intervals);
	*inlines = (struct seam_inlines) { 0 };
}

/* ---- scopes ---- */

enum {
	MAX_SCOPES = 16,	/* around a function; outer ones are left out */
	MAX_NAME = 1024,
};

/* Its children are in the scope @die. */
static int add_scope(struct seam_scopes *scopes, Dwarf_Die *die,
		     uint32_t *enclosing)
{
	bool is_namespace = dwarf_tag(die) == DW_TAG_namespace;
	struct seam_scope scope = { dwarf_diename(die), *enclosing };

	if (!scope.name)
		scope.name = is_namespace ? "(anonymous namespace)" :
			     "(unnamed)";
	*enclosing = (uint32_t)scopes->items.n;
	return *enclosing != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&scopes->items, scope) ? 1 : -ENOMEM;
}

static int visit_scope(void *context, Dwarf_Die *die, uint32_t *enclosing)
{
	struct seam_scopes *scopes = context;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		if (*enclosing != SEAM_NONE &&
		    !SEAM_ARRAY_ADD(&scopes->functions, (struct seam_scoped) {
			dwarf_dieoffset(die), *enclosing }))
			return -ENOMEM;
		return dwarf_haschildren(die) > 0 ?
		       add_scope(scopes, die, enclosing) : 0;
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return add_scope(scopes, die, enclosing);
	case DW_TAG_lexical_block:
		return 1;
	default:
		return 0;
	}
}

int seam_scopes_read(struct seam_scopes *scopes, Dwarf_Die *unit,
		     uint64_t *budget)
{
	return walk_dies(unit, budget, visit_scope, scopes);
}

const char *seam_scopes_qualify(const struct seam_scopes *scopes,
				Dwarf_Off die, const char *name,
				struct seam_arena *arena)
{
	const struct seam_scoped *functions = scopes->functions.items;
	size_t n = scopes->functions.n, used;
	size_t at = SEAM_ARRAY_SEARCH(i, n, functions[i].die < die);
	uint32_t scope = at < n && functions[at].die == die ?
			 functions[at].scope : SEAM_NONE;
	char text[MAX_NAME], *end = text + sizeof(text) - 1, *p = end;

	used = strlen(name);
	if (scope == SEAM_NONE || used >= sizeof(text))
		return name;
	/* from the last part to the first */
	p -= used;
	memcpy(p, name, used);
	for (int i = 0; scope != SEAM_NONE && i < MAX_SCOPES; i++) {
		const char *part = scopes->items.items[scope].name;

		used = strlen(part);
		if (used + 2 > (size_t)(p - text))
			break;
		p -= used + 2;
		memcpy(p, part, used);
		memcpy(p + used, "::", 2);
		scope = scopes->items.items[scope].parent;
	}
	name = seam_arena_text(arena, p, (size_t)(end - p));
	return name ? name : "?";
}

void seam_scopes_fini(struct seam_scopes *scopes)
{
	free(scopes->items.items);
	free(scopes->functions.items);
	*scopes = (struct seam_scopes) { 0 };
}
