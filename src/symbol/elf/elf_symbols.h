/* SPDX-License-Identifier: MIT */
/*
 * elf_symbols.h - the function symbols of an ELF file, into a table
 *
 * Names are copied to the arena, so the file may be closed afterwards.
 * Addresses are those of the file's program headers.
 */
#pragma once

#include "symbol/elf/elf_file.h"
#include "symbol/elf/symtab.h"

/* Whether there is a .symtab, the full table that strip takes away. */
bool seam_elf_has_symtab(const struct seam_elf *file);

/*
 * Add the functions of .symtab and .dynsym: STT_FUNC, STT_GNU_IFUNC, and
 * labels in executable sections.  A damaged table gives what can be read of it.
 * 0 or -ENOMEM.
 */
int seam_elf_symbols(struct seam_symtab *table, struct seam_arena *arena,
		     const struct seam_elf *file);

/*
 * All symbols there are, sorted: also those of debug file @debug (NULL: none),
 * or else of .gnu_debugdata, a small table for files without .symtab; and
 * "symbol@plt" for each entry of .plt, .plt.sec and .plt.got (x86-64).  0 or
 * -ENOMEM.
 */
int seam_elf_all_symbols(struct seam_symtab *table, struct seam_arena *arena,
			 const struct seam_elf *file,
			 const struct seam_elf *debug);
