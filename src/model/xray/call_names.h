/* SPDX-License-Identifier: MIT */
/*
 * call_names.h - the names of the functions in an XRay log
 *
 * From an instrumentation map, if there is one.  A function without a name in
 * it is its address, "0x401136"; a function that is not in it is "#7".  A log
 * does not name its program, so the map may be another program's: it is
 * checked against the log.
 */
#ifndef SEAM_CALL_NAMES_H
#define SEAM_CALL_NAMES_H

#include "model/xray/trace.h"
#include "symbol/xray/xray_map.h"

enum { SEAM_CALL_NAME = 24 };

/* Zeroed is valid: without a map, all functions are numbers. */
struct seam_call_names {
	struct seam_xray_map map;
};

/* seam_xray_map_open() of @path, if that is not NULL. */
int seam_call_names_open(struct seam_call_names *names, const char *path,
			 struct seam_err *err);
void seam_call_names_fini(struct seam_call_names *names);

/* The name of @function, borrowed from @names or made in @buf. */
const char *seam_call_name(const struct seam_call_names *names,
			   uint32_t function, char buf[SEAM_CALL_NAME]);

/*
 * Why the map cannot be of the program that wrote @trace, in one line of
 * @buf: a function that is not in the map, or an action for which it has no
 * sled.  NULL where neither is found in the first events of every block.
 */
const char *seam_call_names_doubt(const struct seam_call_names *names,
				  const struct seam_trace *trace, char *buf,
				  size_t cap);

#endif /* SEAM_CALL_NAMES_H */
