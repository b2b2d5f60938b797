/* SPDX-License-Identifier: MIT */
/*
 * interpose.h - functions of libc that a library of ours has in front of libc's
 *
 *	SEAM_INTERPOSED
 *	int dlclose(void *handle)
 *	{
 *		int r = SEAM_REAL(dlclose)(handle);
 *
 * Other libraries may call one before our constructor runs, so each finds
 * libc's function when it is first called.  It may be that of another library
 * like ours, which then finds libc's.
 *
 * loader.c and seccomp.c interpose what more than one library of ours has to
 * know of.  Each has its own copy of these files, and defines the functions
 * below.
 */
#ifndef SEAM_INTERPOSE_H
#define SEAM_INTERPOSE_H

#include <dlfcn.h>

#include "base/base.h"

#define SEAM_INTERPOSED __attribute__((visibility("default")))

/* The next @name after ours: libc's, or that of another library like this. */
#define SEAM_REAL(name)							\
	({								\
		static __typeof__(&name) real_##name;			\
		if (!real_##name)					\
			real_##name = (__typeof__(&name))dlsym(		\
						RTLD_NEXT, #name);	\
		real_##name;						\
	})

/* ---- the library defines these ---- */

/* Whether libraries that are loaded and unloaded matter by now. */
bool seam_interpose_wants_loads(void);

/*
 * The library of @handle was loaded; or, with NULL, some were unloaded.  Keeps
 * errno.
 */
void seam_interpose_loads(void *handle);

/*
 * The calling thread is about to install a seccomp filter, which may kill it
 * for a system call of ours.  Keeps errno.
 */
void seam_interpose_before_filter(void);

#endif /* SEAM_INTERPOSE_H */
