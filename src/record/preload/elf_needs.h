/* SPDX-License-Identifier: MIT */
/*
 * elf_needs.h - the libraries that an ELF file needs, and whether it has a VM
 *
 * The file is one that the user is about to execute, or of a process that runs,
 * of any user: offsets are libelf's to check; sizes and loops are bounded here.
 *
 * Source: System V gABI 4.1, "Dynamic Section"; ld.so(8) for the search.
 */
#ifndef SEAM_ELF_NEEDS_H
#define SEAM_ELF_NEEDS_H

#include "base/base.h"

enum {
	SEAM_ELF_MAX_NEEDED = 64,
	SEAM_ELF_NAME_BYTES = 128,
	SEAM_ELF_PATHS_BYTES = 1024,
};

struct seam_elf_needs {
	bool has_luajit;	/* exports the API of LuaJIT */
	bool has_asan;		/* needs libasan, which must be loaded first */
	size_t n;
	char names[SEAM_ELF_MAX_NEEDED][SEAM_ELF_NAME_BYTES];
	/* its RPATH or RUNPATH, with $ORIGIN as it is; "" */
	char paths[SEAM_ELF_PATHS_BYTES];
};

/* False: not an ELF file for x86-64, no regular file, or not readable. */
bool seam_elf_needs_read_fd(struct seam_elf_needs *needs, int fd);
bool seam_elf_needs_read(struct seam_elf_needs *needs, const char *path);

/*
 * Find library @name, needed by the file at @path with @needs, as ld.so does
 * but for its cache: RUNPATH, LD_LIBRARY_PATH, the usual folders.  False: not
 * found.
 */
bool seam_elf_needs_find(const struct seam_elf_needs *needs, const char *path,
			 const char *name, char *found, size_t room);

#endif /* SEAM_ELF_NEEDS_H */
