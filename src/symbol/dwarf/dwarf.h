/* SPDX-License-Identifier: MIT */
/*
 * dwarf.h - source lines and inlined calls of one file, from its DWARF
 *
 * A compilation unit is read when the first address in it is looked up.  Its
 * functions and inlined calls become one table of address ranges, so that an
 * address costs O(log n) and not a walk over the unit.
 *
 * DWARF 2 to 5, compressed sections, dwz's alternate files.  Split DWARF is
 * not followed: its line tables are read, its inlined calls are not.
 *
 * Threads: one at a time for one object.
 */
#pragma once

#include "base/arena.h"
#include "symbol/elf/elf_file.h"
#include "symbol/elf/module.h"

struct seam_dwarf;

/* Whether @file has DWARF of its own. */
bool seam_dwarf_is_in(const struct seam_elf *file);

/*
 * Read the sections of @file, which is taken, on failure too.  Strings of
 * answers go to @arena; if @problem is "", the part that turns out to be missing
 * and why ("split DWARF ...") goes there.  0, or -errno with the reason in @err.
 *
 * Cost: the DWARF sections are copied, and unpacked where compressed.
 */
int seam_dwarf_open(struct seam_dwarf **dwarf, struct seam_elf *file,
		    const struct seam_symbols_options *options,
		    struct seam_arena *arena, char problem[SEAM_ERR_TEXT],
		    struct seam_err *err);

void seam_dwarf_close(struct seam_dwarf *dwarf);

/*
 * The inlined calls at @addr, innermost first, then the function that holds
 * them: at most @cap, of which the last is the outermost even when some had
 * to be left out.  With options.no_inline the function alone.  0 when DWARF
 * does not have @addr; a location without a function when only its line is
 * known.
 */
size_t seam_dwarf_resolve(struct seam_dwarf *dwarf, uint64_t addr,
			  struct seam_location *out, size_t cap);
