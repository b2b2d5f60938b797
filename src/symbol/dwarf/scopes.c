/* SPDX-License-Identifier: MIT */
/* scopes.c - the scope of each function; contract in scopes.h */
#include "symbol/dwarf/scopes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "symbol/dwarf/die_walk.h"

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

static int visit(void *context, Dwarf_Die *die, uint32_t *enclosing)
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
	return seam_die_walk(unit, budget, visit, scopes);
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
