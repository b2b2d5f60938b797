/* SPDX-License-Identifier: MIT */
/*
 * elf_module.h - symbols, DWARF and function ranges of one mapped file
 *
 * Once it was read there are tables in memory and no descriptor, so that a
 * recording of a thousand files does not run out of them.
 *
 * Offsets are those in the file.  Threads: one at a time for one object.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/elf/function_ranges.h"
#include "symbol/elf/module.h"
#include "symbol/elf/symtab.h"

/* Zeroed is valid; use needs options and file, both borrowed. */
struct seam_elf_module {
	const struct seam_symbols_options *options;
	const struct seam_module *file;
	/* 0, or why it was not opened: see below */
	int missing;
	/* which symbols are missing, and why; "" when none are */
	char problem[SEAM_ERR_TEXT];
	struct seam_arena arena;	/* names in results */
	struct seam_segments segments;
	struct seam_symtab table;
	bool has_symtab;		/* .symtab; of a debug file too */
	struct seam_dwarf *dwarf;	/* NULL: none */
	struct seam_function_ranges ranges;
	bool has_ranges;		/* they were read, if there are any */
};

/*
 * Read the file, before the other calls.  Whether it has code, and so an
 * offset in it may have a name.  missing is then 0, -ESTALE when another file
 * is at its path, -EXDEV when it was recorded on another machine and cannot be
 * identified, or the reason why it could not be opened.
 */
bool seam_elf_module_read(struct seam_elf_module *module);

/* As the functions of symbols.h for one module. */
size_t seam_elf_module_resolve(struct seam_elf_module *module, uint64_t offset,
			       struct seam_location *out, size_t cap);
/*
 * The name of the function that begins at @addr, as linked, in @arena: as in
 * struct seam_named_addresses.  NULL: none does, or its name has
 * SEAM_DEMANGLE_MAX bytes or more.
 */
const char *seam_elf_module_name(struct seam_elf_module *module, uint64_t addr,
				 struct seam_arena *arena);

bool seam_elf_module_extent(struct seam_elf_module *module, uint64_t offset,
			    struct seam_extent *out);
bool seam_elf_module_is_trampoline(struct seam_elf_module *module,
				   uint64_t offset);

/*
 * Search and check the file again, or its separate debug file, and open it.  0;
 * or -errno with the reason in @err.
 */
int seam_elf_module_open(const struct seam_elf_module *module, bool is_debug,
			 struct seam_module_file *file, struct seam_err *err);

void seam_elf_module_fini(struct seam_elf_module *module);
