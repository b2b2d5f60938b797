/* SPDX-License-Identifier: MIT */
/* all_functions.h - functions of the images of this process, with names */
#ifndef SEAM_FDR_ALL_FUNCTIONS_H
#define SEAM_FDR_ALL_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct seam_fdr_function {
	uint32_t id;
	uint64_t address, link_address;
	const char *name;		/* the symbol's; NULL: not known */
	const char *path;		/* of the image */
	bool entries_only;		/* its exits are not recorded */
};

/* How many there are at most, with and without sleds. */
uint32_t seam_fdr_n_functions(void);

/*
 * Call @on_function for all functions with sleds, ascending by id, as long as
 * it returns 0.  Also after the end of recording, and in a forked child.  What
 * it returned at last; or -ENOMEM.  It calls nothing of start.h.
 *
 * Not in a handler; reads the symbols of all images.
 */
int seam_fdr_each_function(int (*on_function)(
					void *context,
					const struct seam_fdr_function *f),
			   void *context);

/*
 * The same for the functions that begin at the @n @addresses and are in an
 * image, in any order; id is the index of the address.
 */
int seam_fdr_each_address(const uint64_t *addresses, uint32_t n,
			  int (*on_function)(void *context,
					     const struct seam_fdr_function *f),
			  void *context);

#endif /* SEAM_FDR_ALL_FUNCTIONS_H */
