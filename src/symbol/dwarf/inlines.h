/* SPDX-License-Identifier: MIT */
/*
 * inlines.h - the functions and inlined calls of one compilation unit
 *
 * Built by one walk over the unit's DIEs.  A call has the index of the call or
 * function that encloses it: the frames of an address are the path to the top.
 */
#ifndef SEAM_INLINES_H
#define SEAM_INLINES_H

#include "base/array.h"
#include "base/intervals.h"

#include <elfutils/libdw.h>

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
 * Read @unit.  0, -ENOMEM, or -E2BIG where *@budget was used up, as
 * seam_die_walk() says; each range costs one too.  What was read before is
 * kept.
 */
int seam_inlines_read(struct seam_inlines *inlines, Dwarf_Die *unit,
		      uint64_t *budget);

void seam_inlines_fini(struct seam_inlines *inlines);

#endif /* SEAM_INLINES_H */
