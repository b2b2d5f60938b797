/* SPDX-License-Identifier: MIT */
/*
 * image_file.h - the file of an image that this process has loaded
 *
 * Its sections, for what is not loaded: names of functions, places of tables.
 * The readers of src/symbol are for the recorder and link libelf.  Sizes and
 * counts are checked against the file, and the file against the image: a path
 * may name another file by now.
 *
 * Not in a handler: it opens files and allocates.
 *
 * Source: System V gABI 4.1, "ELF Header", "Sections".
 */
#pragma once

#include <link.h>

#include "base/base.h"

struct seam_image_file {
	int fd;				/* -1: not open */
	uint64_t size;
	ElfW(Ehdr) header;
	const ElfW(Shdr) *sections;
	size_t n_sections;
	char *names;			/* of sections, NUL-terminated */
	size_t names_bytes;
};

/*
 * Open the file at @path, which has the @n program headers @headers if it is
 * the file that was loaded.  0; -ENOMEM; -ESTALE: another file; -EBADMSG; or
 * the negative errno of open(2) or pread(2).  A file without sections, or with
 * more than 65,279, has n_sections 0.
 */
int seam_image_file_open(struct seam_image_file *file, const char *path,
			 const ElfW(Phdr) *headers, size_t n);

/*
 * Likewise for the file at @fd, which is closed on failure.  The caller checks
 * which file it is.
 */
int seam_image_file_open_fd(struct seam_image_file *file, int fd);

/* Also where opening has failed, and after itself. */
void seam_image_file_close(struct seam_image_file *file);

/*
 * Copy @n bytes at @at of the file, all of them or none, and a NUL.  The caller
 * frees *@out.
 */
int seam_image_file_read(const struct seam_image_file *file, uint64_t at,
			 uint64_t n, void **out);

/* A symbol table.  Zeroed is valid and empty. */
struct seam_image_symbols {
	ElfW(Sym) *list;
	size_t n;
	char *names;			/* ends with a NUL */
	size_t names_bytes;
};

/*
 * The symbols of the first section of @type: SHT_SYMTAB, or SHT_DYNSYM.  0;
 * -ENOENT: there is none; or a failure as above.  The caller frees them.
 */
int seam_image_file_symbols(const struct seam_image_file *file, uint32_t type,
			    struct seam_image_symbols *symbols);
void seam_image_symbols_fini(struct seam_image_symbols *symbols);

/* Its name; "" where it has none. */
static inline const char *
seam_image_symbol_name(const struct seam_image_symbols *symbols,
		       const ElfW(Sym) *symbol)
{
	return symbol->st_name < symbols->names_bytes ?
	       symbols->names + symbol->st_name : "";
}

/* Whether it is a function in this file, and has a name. */
static inline bool
seam_image_symbol_is_function(const struct seam_image_symbols *symbols,
			      const ElfW(Sym) *symbol)
{
	uint8_t type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) &&
	       symbol->st_shndx != SHN_UNDEF &&
	       seam_image_symbol_name(symbols, symbol)[0];
}

/* The first section of @type that is not empty.  NULL: there is none. */
const ElfW(Shdr) *
seam_image_file_section_of(const struct seam_image_file *file, uint32_t type);

/* The name of @section; "" where it has none. */
const char *seam_image_file_section_name(const struct seam_image_file *file,
					 const ElfW(Shdr) *section);
