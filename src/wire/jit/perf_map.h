/* SPDX-License-Identifier: MIT */
/*
 * perf_map.h - perf-PID.map files: addresses and names, without times
 *
 * One function a line: "START SIZE NAME", both numbers hexadecimal, with or
 * without 0x, and all that follows the one blank behind SIZE is the name.
 * The file is text that a running program appends to, so lines may be cut,
 * doubled, or not of this form at all; those are counted and passed over.
 *
 * Progress: every call moves at least one byte or is the last.
 *
 * Source: Linux, tools/perf/Documentation/jit-interface.txt.
 */
#ifndef SEAM_PERF_MAP_H
#define SEAM_PERF_MAP_H

#include "base/base.h"

/* Longer lines are not believed: a name of this size is no name. */
enum { SEAM_PERF_MAP_LINE_BYTES = 64 * 1024 };

struct seam_perf_map_entry {
	uint64_t start_addr;
	uint64_t size;			/* bytes; not 0 */
	struct seam_bytes name;		/* borrowed; no NUL, no line end */
	const uint8_t *line;		/* where its line begins */
};

struct seam_perf_map_reader {
	struct seam_bytes bytes;
	size_t pos;
	uint64_t n_entries;		/* lines read */
	uint64_t n_bad;			/* lines that are not of the form */
};

static inline struct seam_perf_map_reader
seam_perf_map_begin(struct seam_bytes bytes)
{
	return (struct seam_perf_map_reader) { .bytes = bytes };
}

/*
 * The next line that can be used; false at the end.  A line that ends in CR LF
 * ends before both.  Empty lines are not counted as bad.
 */
bool seam_perf_map_next(struct seam_perf_map_reader *reader,
			struct seam_perf_map_entry *entry);

#endif /* SEAM_PERF_MAP_H */
