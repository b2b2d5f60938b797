/* SPDX-License-Identifier: MIT */
/*
 * call_names.h - the names of the functions in an XRay log
 *
 * From an instrumentation map, if there is one.  A recorder's map has no names:
 * they are read from the binaries that it names, or from their copies in the
 * recording.  A function without a name is its address, "0x401136"; a function
 * that is not in the map is "#7".  A log
 * does not name its program, so a map that a user chose may be another
 * program's: it is checked against the log.
 */
#pragma once

#include "model/xray/trace.h"
#include "symbol/symbols.h"

/* What could not be read, and which logs have no map; both for a message. */
struct seam_log_notes {
	void (*note)(void *context, const char *text);
	void *context;
};

/*
 * Find the names of the functions and events of @trace, which has all of its
 * logs and is not read yet: @names from the map @path for all logs; where it is
 * NULL, from the map beside each log.  Maps and binaries are read by @symbols;
 * NULL: there are no maps beside logs.  A file that cannot be read is noted,
 * and its functions have no names.
 *
 * 0, -ENOMEM, or the reason why @path cannot be read.  Not to be called while
 * other threads run.
 */
int seam_log_names_open(struct seam_xray_map *names, struct seam_trace *trace,
			const char *path, struct seam_symbols *symbols,
			const struct seam_log_notes *notes,
			struct seam_err *err);

enum { SEAM_CALL_NAME = 24 };

/*
 * The name of @function, borrowed from @names or made in @buf.  Without a map,
 * @names is zeroed: all functions are numbers.
 */
const char *seam_call_name(const struct seam_xray_map *names,
			   uint32_t function, char buf[SEAM_CALL_NAME]);

/* The number of @function in its log, and the number that names it. */
uint32_t seam_call_id(const struct seam_xray_map *names, uint32_t function);

/*
 * Why the map cannot be of the program that wrote @trace, in one line of
 * @buf: a function that is not in the map, or an action for which it has no
 * sled.  NULL where neither is found in the first events of every block.
 */
const char *seam_call_names_doubt(const struct seam_xray_map *names,
				  const struct seam_trace *trace, char *buf,
				  size_t cap);
