/* SPDX-License-Identifier: MIT */
/* archive_library.c - dlopen of libarchive; see archive_library.h */
#include "cli/archive_library.h"

#include <dlfcn.h>
#include <errno.h>

#define LIBRARY "libarchive.so.13"

const struct seam_archive_library *seam_archive_library(struct seam_err *err)
{
	static struct seam_archive_library library;
	static bool is_loaded;
	void *handle = is_loaded ? NULL : dlopen(LIBRARY, RTLD_NOW);

	if (is_loaded)
		return &library;
	if (!handle) {
		seam_err_set(err, -ENOENT, "%s is not installed (Debian: apt "
			     "install libarchive13)", LIBRARY);
		return NULL;
	}
#define LOAD(name)							\
	library.name = (__typeof__(name) *)dlsym(handle, #name);	\
	if (!library.name) {						\
		seam_err_set(err, -ENOENT, LIBRARY " has no " #name);	\
		return NULL;						\
	}
	SEAM_ARCHIVE_CALLS(LOAD)
	is_loaded = true;
	return &library;
}
