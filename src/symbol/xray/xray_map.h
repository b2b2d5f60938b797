/* SPDX-License-Identifier: MIT */
/*
 * xray_map.h - XRay function ids to functions: the instrumentation map
 *
 * A compiler that instruments for XRay lists every place that can be patched
 * ("sled") in the section xray_instr_map.  A function's id is not in there:
 * it is 1 + the number of times that the function changes from one entry to
 * the next.  Maps come from the program itself (ELF) or as the YAML that
 * 'llvm-xray extract' prints.
 *
 * Names come from the map file's symbol table, or are in the YAML.
 *
 * Seam's own YAML has the binaries of the functions in comments, which begin
 * the file, a line for each: the first id of its functions, its path as a JSON
 * string, and its build id where it has one.  Functions in a binary that has
 * one have no names there; model/xray/call_names.h finds them.
 *
 *	# image 1 "/usr/bin/app" 5f0b27a1c8d94e3356708192a3b4c5d6e7f80912
 *	# image 812 "/usr/lib/libapp.so" 98fe0c11
 *
 * There, a function without a sled for its exit is one of which only entries
 * are recorded; in other maps it may be one that does not return.
 *
 * Source: LLVM 14, llvm/lib/XRay/InstrumentationMap.cpp and the map's
 * versions 0, 1, 2; doc/formats/xray.md.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"
#include "base/strings.h"
#include "symbol/elf/module.h"

enum seam_xray_sled_kind {
	SEAM_XRAY_SLED_ENTER,
	SEAM_XRAY_SLED_EXIT,
	SEAM_XRAY_SLED_TAIL,
	SEAM_XRAY_SLED_ENTER_ARGS,
	SEAM_XRAY_SLED_CUSTOM,
	SEAM_XRAY_SLED_TYPED,
	SEAM_XRAY_N_SLEDS,
};

struct seam_xray_mapped {
	uint32_t id;
	uint8_t kinds;		/* bit 1 << kind of each of its sleds */
	uint32_t log_id;	/* in the log, where ids are those of several
				 * programs (model/xray/call_names.h) */
	uint32_t name, file;	/* strings; 0 when not known */
	uint32_t image;		/* likewise: the path of its binary */
	uint32_t build_id;	/* likewise: of its binary, in hexadecimal */
	uint32_t line;
	uint64_t addr;		/* as linked */
	uint64_t file_offset;	/* of addr, in an ELF file; else 0 */
};

/* Zeroed is valid and empty. */
struct seam_xray_map {
	SEAM_ARRAY(struct seam_xray_mapped) functions;	/* by id, ascending */
	struct seam_strings strings;
	uint32_t others;	/* of several programs: from this id on, no
				 * function has a name; 0: of one program */
	bool from_elf;
};

/*
 * Read a map: a linked ELF file of 64 bits, or YAML.  -ENODATA when
 * the file has no map, -ENOTSUP for a kind of file or version that is not read,
 * -EBADMSG for damage.  The libraries that parse it are not trusted: outside of
 * tests, see seam_symbols_read_map() in symbols.h.
 */
int seam_xray_map_read(struct seam_xray_map *map, struct seam_bytes bytes,
		       struct seam_err *err);

void seam_xray_map_fini(struct seam_xray_map *map);

/* Whether calls of @f have no end in a log: their exits are not recorded. */
static inline bool
seam_xray_has_entries_only(const struct seam_xray_mapped *f)
{
	return f && f->image && !(f->kinds & (1u << SEAM_XRAY_SLED_EXIT |
					      1u << SEAM_XRAY_SLED_TAIL));
}

/* Order functions that were added to map->functions by id. */
void seam_xray_map_sort(struct seam_xray_map *map);

/* The function of @id, borrowed; NULL when the map has none. */
const struct seam_xray_mapped *
seam_xray_map_find(const struct seam_xray_map *map, uint32_t id);
