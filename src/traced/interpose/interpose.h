/* SPDX-License-Identifier: MIT */
/*
 * interpose.h - functions of libc that a library of ours has in front of libc's
 *
 *	SEAM_INTERPOSED
 *	int dlclose(void *handle)
 *	{
 *		int r = SEAM_REAL(dlclose)(handle);
 *
 * Libc's functions are found when the library is loaded: dlsym() waits while
 * another thread loads a library, where handlers and what we do with the
 * loader's lists may not wait.  Other libraries may call one before that, so
 * each is also found when it is called.  It may be that of another library like
 * ours, which then finds libc's.
 *
 * interpose.c has those that more than one library of ours has to know of.
 * Each library has its own copy of it, and defines the functions below.
 */
#pragma once

#include <dlfcn.h>

#include "base/base.h"

#define SEAM_INTERPOSED __attribute__((visibility("default")))

/* One of libc's functions; interpose.c finds all of a library. */
struct seam_real {
	const char *name;
	void *function;			/* NULL: not found yet */
};

static inline void *seam_real_find(struct seam_real *real)
{
	if (!real->function)
		real->function = dlsym(RTLD_NEXT, real->name);
	return real->function;
}

/* The next @name after ours: libc's, or that of another library like this. */
#define SEAM_REAL(name)							\
	({								\
		static struct seam_real real_##name			\
			__attribute__((section("seam_reals"), used)) = { \
				#name, NULL };				\
		(__typeof__(&name))seam_real_find(&real_##name);	\
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
 * Whether the caller is in the process that is recorded.  A child of vfork()
 * shares the memory and is not: a filter there is the child's alone.
 */
bool seam_interpose_is_own_process(void);

/*
 * The calling thread is about to install a seccomp filter, which may kill the
 * thread for a system call of ours; the filter was refused.  Both keep errno.
 */
void seam_interpose_before_filter(void);
void seam_interpose_filter_refused(void);
