/* SPDX-License-Identifier: MIT */
/*
 * loaded_images.h - the images that the dynamic loader has mapped
 *
 * A copy of what dl_iterate_phdr() lists, for all that looks at images in a
 * traced program: the unwinder, the search for virtual machines, sysprof's
 * symbols, and sleds.  What each user derives from an image stays with the
 * user.  A list is made when the loader's counts have changed.
 *
 * The list is copied under the loader's lock, to pages of its own: malloc()
 * may be the program's, with a lock that a thread holds which waits for the
 * loader.
 *
 * Images of other link-map namespaces (dlmopen) are not listed.
 *
 * Not in a handler.  Threads: any.
 * Source: dl_iterate_phdr(3).
 */
#ifndef SEAM_LOADED_IMAGES_H
#define SEAM_LOADED_IMAGES_H

#include <stddef.h>

#include "unwind/in_process/self_fork.h"

struct seam_loaded_image {
	const char *name;	/* dlpi_name: "" is the program; the vdso's */
				/* has no slash */
	uint64_t bias;		/* address minus that in the file */
	const ElfW(Phdr) *headers;
	size_t n_headers;
};

struct seam_loaded_images {
	struct seam_self_loads loads;	/* at that time */
	size_t n_pages_bytes;		/* of the mapping that begins here */
	size_t n;
	struct seam_loaded_image list[];	/* the first is the program */
};

/* NULL without memory.  The caller frees the list. */
struct seam_loaded_images *seam_loaded_images_list(void);

/* NULL is valid. */
void seam_loaded_images_free(struct seam_loaded_images *images);

#endif /* SEAM_LOADED_IMAGES_H */
