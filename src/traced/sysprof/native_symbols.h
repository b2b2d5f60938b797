/* SPDX-License-Identifier: MIT */
/*
 * native_symbols.h - C symbols of the files that this process has loaded
 *
 * A stream gives an address the name of the symbol at or below it, whatever
 * its size.  So that no other file's symbol is below, and none that ended
 * before, there are symbols more than in the files: one with the file's name
 * at its start, and after functions that are not followed by another one.
 *
 * Not in a handler: it opens files, allocates, and takes the loader's lock.
 * Threads: one at a time.
 */
#pragma once

#include "base/array.h"
#include "unwind/in_process/loaded_images.h"

/* A function that symbols of files may lack. */
struct seam_native_name {
	uint64_t addr;
	uint64_t size;		/* bytes; 0: not known */
	char name[64];
};

struct seam_native_names {
	SEAM_ARRAY(struct seam_native_name) list;
};

struct seam_loaded_file {
	char *path;		/* "" for the kernel's vdso */
	uint64_t bias;		/* address minus that in the file */
	uint64_t start, end;	/* of its segments, as loaded */
	bool is_loaded;
};

/* Files whose symbols were put.  Zeroed is valid and empty. */
struct seam_native_symbols {
	struct seam_self_loads loads;	/* at the last call */
	SEAM_ARRAY(struct seam_loaded_file) files;
};

/* Called for each symbol; @name has @n bytes. */
typedef void seam_native_symbol_put(void *context, uint64_t addr,
				    const char *name, size_t n);

/*
 * Put the symbols of all files that were loaded since the last call, and those
 * of @names that are in these files, but in no function with a symbol; several
 * of one address in their order.  @names may be NULL.  1; 0 where no file was
 * loaded; -ENOMEM, and what could be put was.
 */
int seam_native_symbols_put(struct seam_native_symbols *symbols,
			    const struct seam_native_names *names,
			    seam_native_symbol_put *put, void *context);

void seam_native_symbols_fini(struct seam_native_symbols *symbols);
