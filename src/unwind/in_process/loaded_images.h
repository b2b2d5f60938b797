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
 * loader.  fork() copies the loader's lock as it is: a child of another thread
 * could never load a library.  So the owner is in the loader for microseconds
 * only, and a handler of pthread_atfork() waits for that, about a second at
 * most: then the owner is stopped, and the child has to take its chance.  A
 * fork of the owner's thread itself does not wait.
 *
 * Images of other link-map namespaces (dlmopen) are not listed.
 *
 * Not in a handler.  Threads: any.
 * Source: dl_iterate_phdr(3).
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many images the loader has loaded and unloaded: dl_phdr_info's. */
struct seam_self_loads {
	uint64_t n_adds, n_subs;
};

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

/* Once, before the others: forks wait.  0, or a negative errno. */
int seam_self_fork_init(void);

/* dl_iterate_phdr(), while no other thread forks. */
int seam_self_loader_list(int (*on_image)(struct dl_phdr_info *image,
					  size_t size, void *context),
			  void *context);

/* NULL without memory.  The caller frees the list. */
struct seam_loaded_images *seam_loaded_images_list(void);

/* NULL is valid. */
void seam_loaded_images_free(struct seam_loaded_images *images);

/* The counts as a callback has them (glibc since 2.4, and musl); and now. */
static inline struct seam_self_loads
seam_self_loads_of(const struct dl_phdr_info *image)
{
	return (struct seam_self_loads) { image->dlpi_adds, image->dlpi_subs };
}

struct seam_self_loads seam_self_loads_now(void);

static inline bool seam_self_loads_equal(struct seam_self_loads a,
					 struct seam_self_loads b)
{
	return a.n_adds == b.n_adds && a.n_subs == b.n_subs;
}
