/* SPDX-License-Identifier: MIT */
/*
 * program_file.h - what the ELF file of a command is made of
 *
 * Read before the user executes it, with the rights that it will have.
 *
 * Source: System V gABI 4.1, "Dynamic Section"; ld.so(8) for the search.
 */
#ifndef SEAM_PROGRAM_FILE_H
#define SEAM_PROGRAM_FILE_H

#include <limits.h>

#include "base/base.h"

enum {
	SEAM_PROGRAM_MAX_NEEDED = 64,
	SEAM_PROGRAM_NAME_BYTES = 128,
	SEAM_PROGRAM_PATHS_BYTES = 1024,
};

struct seam_program_file {
	bool is_dynamic;	/* a library can be preloaded into it */
	bool has_luajit;	/* it exports the API of LuaJIT */
	bool has_calls;		/* it has instrumented functions (--trace) */
	size_t n_needed;	/* libraries */
	char needed[SEAM_PROGRAM_MAX_NEEDED][SEAM_PROGRAM_NAME_BYTES];
	/* its RPATH or RUNPATH, with $ORIGIN as it is; "" */
	char paths[SEAM_PROGRAM_PATHS_BYTES];
};

/* False: not an ELF file for x86-64, no regular file, or not readable. */
bool seam_program_file_read(struct seam_program_file *p, const char *path);

/*
 * The libraries that it needs, and their search path, of the file at @path; a
 * library itself may be that.
 */
bool seam_program_file_read_needed(struct seam_program_file *p,
				   const char *path);

/*
 * Find library @name, needed by the file at @path with @p, as ld.so does but
 * for its cache: RUNPATH, LD_LIBRARY_PATH, the usual folders.  False: not
 * found.
 */
bool seam_program_file_find(const struct seam_program_file *p,
			    const char *path, const char *name,
			    char found[PATH_MAX]);

#endif /* SEAM_PROGRAM_FILE_H */
