/* SPDX-License-Identifier: MIT */
/*
 * xray_map_write.h - the functions of a log: xray/PID.yaml
 *
 * An instrumentation map as 'llvm-xray extract' prints it, which
 * 'llvm-xray -instr_map=' reads: an entry for the start of each function and
 * one for its end.  Comments before it name the files that the functions are
 * in, by the first id of each:
 *
 *	# image 1 "/usr/bin/app"
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
	const char *name;	/* "": not known */
	const char *path;	/* of its image; "": it is in none */
};

/*
 * Write @n functions, by rising ids; function_at(@context, i) returns number i
 * and is called twice for each.  Failures are those of @out: ferror().
 */
void seam_xray_map_write(FILE *out, size_t n,
			 struct seam_xray_map_function (*function_at)(
					const void *context, size_t i),
			 const void *context);

#endif /* SEAM_XRAY_MAP_WRITE_H */
