/* SPDX-License-Identifier: MIT */
/*
 * jit_placements.h - all addresses that JIT code had, in the order of time
 *
 * jit_code.h looks up one address at one time; exports to other tools need the
 * whole list.
 */
#ifndef SEAM_JIT_PLACEMENTS_H
#define SEAM_JIT_PLACEMENTS_H

#include "base/array.h"
#include "symbol/jit/jit_code.h"

/*
 * From a time on, a piece of code or a part of it is somewhere; or nothing is
 * there any more (object is SEAM_NONE): it was moved away, or other code covers
 * its first byte.
 */
struct seam_jit_placement {
	int32_t pid;
	uint32_t object;	/* for seam_jit_code_object(), or SEAM_NONE */
	uint64_t time_ns;	/* 0: not known */
	uint64_t start_addr;
	uint64_t size;		/* bytes */
	uint64_t offset;	/* of start_addr in the code */
};

/* Zeroed is valid and empty; free(items) ends it. */
struct seam_jit_placements {
	SEAM_ARRAY(struct seam_jit_placement) list;
};

/*
 * Append all placements of @jit: process by process, and in each the maps
 * first, because dumps take precedence, then by time.  Replayed in that order
 * they give the results of seam_jit_code_find().  Code inherited in a fork is
 * not listed again; code without a time begins with the process, one nanosecond
 * after its last fork or exec.  0 or -ENOMEM.
 */
int seam_jit_placements_read(struct seam_jit_placements *placements,
			     struct seam_jit_code *jit);

/*
 * Set @ends, zeroed and by object, to when other code replaced the first byte
 * of each object where it was last; UINT64_MAX: never.  0 or -ENOMEM.
 */
int seam_jit_placements_ends(struct seam_jit_code *jit, uint64_t *ends);

#endif /* SEAM_JIT_PLACEMENTS_H */
