/* SPDX-License-Identifier: MIT */
/*
 * scopes.h - the namespaces, types and functions around the DIEs of functions
 *
 * gcc gives functions without external linkage (static ones, those of unnamed
 * namespaces, lambdas) no linkage name, only the last part of their name.
 */
#ifndef SEAM_SCOPES_H
#define SEAM_SCOPES_H

#include "base/arena.h"
#include "base/array.h"

#include <elfutils/libdw.h>

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

/*
 * Read @unit.  0, -ENOMEM, or -E2BIG as seam_die_walk(); what was read before
 * is kept.
 */
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

#endif /* SEAM_SCOPES_H */
