/* SPDX-License-Identifier: MIT */
/*
 * xray_map_write.h - the functions of a log: xray/PID.yaml
 *
 * An instrumentation map as 'llvm-xray extract' prints it, which
 * 'llvm-xray -instr_map=' reads: an entry for the start of each function and
 * one for its end.  Comments before it name the files that the functions are
 * in, by the first id of each, with their build ids:
 *
 *	# image 1 "/usr/bin/app" 98fe0c11
 *	---
 *	- { id: 1, address: 0x1130, function: 0x1130, kind: function-enter, ... }
 *	...
 *
 * symbol/xray/xray_map.h reads it.
 */
#ifndef SEAM_XRAY_MAP_WRITE_H
#define SEAM_XRAY_MAP_WRITE_H

#include <stdio.h>

#include "base/base.h"

struct seam_xray_map_function {
	uint32_t id;
	bool entries_only;	/* its exits are not recorded */
	uint64_t address;	/* as linked */
	const char *name;	/* "": to be read from its image */
	const char *path;	/* of its image; "": it is in none */
	const char *build_id;	/* of its image, in hexadecimal; "": none */
};

/*
 * Write @n @functions, by rising ids; no further ones after @max_bytes.
 * Failures are those of @out, a file: ferror().
 */
void seam_xray_map_write(FILE *out,
			 const struct seam_xray_map_function *functions,
			 size_t n, uint64_t max_bytes);

#endif /* SEAM_XRAY_MAP_WRITE_H */
