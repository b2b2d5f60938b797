/* SPDX-License-Identifier: MIT */
/*
 * interpose.h - functions of libc that the agent has in front of libc's
 *
 *	SEAM_INTERPOSED
 *	int dlclose(void *handle)
 *	{
 *		int r = SEAM_REAL(dlclose)(handle);
 *
 * Other libraries may call one before our constructor runs, so each finds
 * libc's function when it is first called.
 */
#ifndef SEAM_INTERPOSE_H
#define SEAM_INTERPOSE_H

#include <dlfcn.h>

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

#endif /* SEAM_INTERPOSE_H */
