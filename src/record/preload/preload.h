/* SPDX-License-Identifier: MIT */
/*
 * preload.h - whether the command gets libraries of Seam's, and its ELF file
 *
 *	libseam-sampler	samples guest stacks (--layers)
 *	libseam-fdr	records calls (--trace)
 *
 * They are in LD_PRELOAD, of the command and of all that it starts, in front of
 * what the user has there.  Programs with AddressSanitizer start because
 * ASAN_OPTIONS turns off its check of the order of libraries.
 */
#pragma once

#include <limits.h>

#include "base/base.h"
#include "base/err.h"

/*
 * Which layers are recorded by a sampler: --layers.  Whether a command has a VM
 * is decided before it starts, from its file:
 *
 *	an ELF file	it exports LuaJIT's API, or needs a libluajit, directly
 *			or by another library
 *	a script	the interpreter of its #! line does
 *	nginx		its module for Lua is installed
 *
 * A program that is started otherwise, or that loads the VM later, is not
 * found: the report says that it ran LuaJIT, and how to record it.
 */
enum seam_layers {
	SEAM_LAYERS_AUTO,	/* the guest's where a VM is found */
	SEAM_LAYERS_GUEST,	/* in any case */
	SEAM_LAYERS_NATIVE,	/* in none */
};

struct seam_preload {
	bool is_used;			/* the sampler is */
	bool has_fdr;
	char library[PATH_MAX];		/* the sampler */
	char fdr[PATH_MAX];
};

#define SEAM_SAMPLER_LIBRARY "libseam-sampler.so"
#define SEAM_FDR_LIBRARY "libseam-fdr.so"

/*
 * The path of one of these: beside the program, in the tree where it was
 * built, or where it was installed.  False: it is in none of them, or another
 * user than root, the program's owner and the caller can have put it there.
 */
bool seam_preload_find(const char *name, char library[PATH_MAX]);

/*
 * Have libseam-fdr; after seam_preload_decide().  0; or -ENOENT or -EINVAL with
 * the cause.
 */
int seam_preload_add_fdr(struct seam_preload *preload, struct seam_err *err);

/*
 * Decide for command @argv.  @message, of @room bytes, is one line for the
 * user, or "".  is_used says whether there is a sampler.
 */
void seam_preload_decide(struct seam_preload *preload, enum seam_layers layers,
			 char **argv, char *message, size_t room);

/* In the command's process: set LD_PRELOAD and ASAN_OPTIONS. */
void seam_preload_set(const struct seam_preload *preload);

/*
 * ---- what the ELF file of a command is made of ----
 *
 * Read before the user executes it, with the rights that it will have.
 *
 * Source: System V gABI 4.1, "Dynamic Section"; ld.so(8) for the search.
 */

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

/*
 * Read the file at @path, a program or a library; without @whole only its
 * libraries and their search path.  False: not an ELF file for x86-64, no
 * regular file, or not readable.
 */
bool seam_program_file_read(struct seam_program_file *p, const char *path,
			    bool whole);

/*
 * Find library @name, needed by the file at @path with @p, as ld.so does but
 * for its cache: RUNPATH, LD_LIBRARY_PATH, the usual folders.
 */
bool seam_program_file_find(const struct seam_program_file *p,
			    const char *path, const char *name,
			    char found[PATH_MAX]);
