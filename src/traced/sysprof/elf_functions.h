/* SPDX-License-Identifier: MIT */
/*
 * elf_functions.h - the named functions of a loaded file
 *
 * A file that breaks the format has no functions (traced/elf/image_file.h).
 *
 * Not in a handler: it opens files and allocates.
 *
 * Source: System V gABI 4.1, "Sections", "Symbol Table".
 */
#ifndef SEAM_ELF_FUNCTIONS_H
#define SEAM_ELF_FUNCTIONS_H

#include <link.h>

#include "base/array.h"
#include "wire/eh_frame.h"

struct seam_elf_function {
	uint64_t addr;		/* in the file's addresses */
	uint64_t size;		/* bytes; 0: not known */
	uint32_t name;		/* offset into the names */
	uint32_t rank;		/* of equal addresses the lowest is best */
};

/* Zeroed is valid and empty. */
struct seam_elf_functions {
	SEAM_ARRAY(struct seam_elf_function) list; /* ascending, no two equal */
	char *names;		/* NUL-terminated */
	void *frame_bytes[2];		/* .eh_frame_hdr, .eh_frame */
	struct seam_eh_frame frame;
};

/*
 * Read those of the file at @path, which has the @n program headers @headers
 * if it is the one that was loaded: .symtab, or else .dynsym.  0; -ENOMEM;
 * -ENOENT where there is no such table; -ESTALE where the file is another one
 * by now; -EBADMSG; or the negative errno of open(2) or pread(2).
 */
int seam_elf_functions_read(struct seam_elf_functions *functions,
			    const char *path, const ElfW(Phdr) *headers,
			    size_t n);

/*
 * Where the code of the function at @addr ends, by the file's .eh_frame; 0: not
 * known.
 */
uint64_t seam_elf_functions_end(const struct seam_elf_functions *functions,
				uint64_t addr);

void seam_elf_functions_fini(struct seam_elf_functions *functions);

#endif /* SEAM_ELF_FUNCTIONS_H */
