/* SPDX-License-Identifier: MIT */
/*
 * c_functions.h - the C functions of a sysprof stream, by address
 *
 * A stream has the addresses of functions, but neither their sizes nor the
 * files that they are in, and it may add functions between any two samples.  So
 * they are sorted runs, of which a new one is merged with those before it while
 * they are no larger.  Adding costs O(log n) a function and a look-up; looking
 * one up costs O(log^2 n).
 */
#ifndef SEAM_C_FUNCTIONS_H
#define SEAM_C_FUNCTIONS_H

#include "base/array.h"

struct seam_c_function {
	uint64_t addr;
	uint32_t name;		/* string */
};

/* Zeroed is valid and empty. */
struct seam_c_functions {
	SEAM_ARRAY(struct seam_c_function) items;	/* the runs */
	SEAM_ARRAY(size_t) runs;			/* where each begins */
	SEAM_ARRAY(struct seam_c_function) merged;
};

/*
 * Add a function; of those with one address the last one counts.  1 where it
 * was not there with this name, 0, or -ENOMEM.
 */
int seam_c_functions_add(struct seam_c_functions *functions, uint64_t addr,
			 uint32_t name);

/*
 * The function that begins last at or before @addr, or NULL; borrowed until
 * the next add.
 */
const struct seam_c_function *
seam_c_functions_find(const struct seam_c_functions *functions, uint64_t addr);

void seam_c_functions_fini(struct seam_c_functions *functions);

#endif /* SEAM_C_FUNCTIONS_H */
