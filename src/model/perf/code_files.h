/* SPDX-License-Identifier: MIT */
/*
 * code_files.h - call frame information of the files that a recording mapped
 *
 * The files are those that names come from: symbol/elf/find_elf.h searches
 * them and checks that they are what was mapped.  What they have for unwinding
 * is read here, not in the sandboxed process, by a small reader of our own
 * whose sizes are bounded (symbol/elf/cfi_file.h); the sandbox is for the
 * large libraries that parse symbols and DWARF.
 *
 * Threads: one opens; while none does, any number reads.
 */
#ifndef SEAM_CODE_FILES_H
#define SEAM_CODE_FILES_H

#include "model/profile/profile.h"
#include "symbol/elf/cfi_file.h"
#include "symbol/symbols.h"

/* Code of more files is not read: a step by frame pointer is not checked. */
enum { SEAM_CODE_FILES_MAX_OPEN = 256 };

struct seam_code_file {
	bool is_found;			/* else no file here is the module */
	struct seam_cfi_file main;
	/* Its separate debug file, or closed: */
	struct seam_cfi_file debug;
	bool is_debug_tried;
};

/* Zeroed with profile and symbols set, it is ready. */
struct seam_code_files {
	const struct seam_profile *profile;
	struct seam_symbols *symbols;
	size_t n_open;			/* descriptors */
	/* by module of the profile; NULL: not opened yet */
	SEAM_ARRAY(struct seam_code_file *) items;
};

/* The file of @module; NULL where it was not opened yet. */
static inline const struct seam_code_file *
seam_code_files_get(const struct seam_code_files *files, uint32_t module)
{
	return module < files->items.n ? files->items.items[module] : NULL;
}

/*
 * Search and open the file of @module, or its debug file, which few addresses
 * need (@is_debug), unless that was done.  0 or -ENOMEM.
 */
int seam_code_files_open(struct seam_code_files *files, uint32_t module,
			 bool is_debug);

void seam_code_files_fini(struct seam_code_files *files);

#endif /* SEAM_CODE_FILES_H */
