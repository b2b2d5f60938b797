/* SPDX-License-Identifier: MIT */
/*
 * self_fork.h - no fork while this library has the dynamic loader's lock
 *
 * dl_iterate_phdr() takes a lock of the loader, which fork() copies as it is:
 * a child of another thread could never load a library.  So the owner is in
 * the loader for microseconds only, and a handler of pthread_atfork() waits for
 * that, about a second at most: then the owner is stopped, and the child has to
 * take its chance.  A fork of the owner's thread itself does not wait.
 */
#ifndef SEAM_SELF_FORK_H
#define SEAM_SELF_FORK_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* How many images the loader has loaded and unloaded: dl_phdr_info's. */
struct seam_self_loads {
	uint64_t n_adds, n_subs;
};

/* Once, before the others.  0, or a negative errno. */
int seam_self_fork_init(void);

/* Around the owner's calls of dl_iterate_phdr(); waits while another forks. */
void seam_self_loader_enter(void);
void seam_self_loader_leave(void);

/* dl_iterate_phdr() between the two. */
int seam_self_loader_list(int (*on_image)(struct dl_phdr_info *image,
					  size_t size, void *context),
			  void *context);

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

#endif /* SEAM_SELF_FORK_H */
