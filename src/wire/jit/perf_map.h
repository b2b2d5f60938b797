/* SPDX-License-Identifier: MIT */
/*
 * perf_map.h - perf-PID.map files: addresses and names, without times
 *
 * One function a line: "START SIZE NAME", both numbers hexadecimal, with or
 * without 0x, and all that follows the blank after SIZE is the name.  The
 * file is text that a running program appends to, so lines may be cut,
 * doubled, or not of this form at all; those are counted and skipped.
 *
 * Progress: every call moves at least one byte or is the last.
 *
 * Source: Linux, tools/perf/Documentation/jit-interface.txt.
 */
#pragma once

#include "wire/line.h"

/* A longer line is taken as damaged. */
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

/*
 * Whether @path and @bytes look like a perf map: the name is perf-PID.map, or
 * the first line is of a map's form.
 */
bool seam_perf_map_is(const char *path, struct seam_bytes bytes);

/*
 * Print start, size and name of each line to @out.  Lines that cannot be read
 * count in *@n_damaged.  Returns 0.
 */
int seam_perf_map_print(FILE *out, struct seam_bytes bytes,
			enum seam_line_form form, uint64_t *n_damaged);

/* -- when lines were written --------------------------------------------- */

/*
 * A recorder that follows a map while its runtime writes it puts an index
 * beside its copy, perf-PID.map.times: text, a line "OFFSET FROM TO" for each
 * time that the map was longer than before (doc/formats/perf-map-times.md).
 */
#define SEAM_PERF_MAP_TIMES_SUFFIX ".times"

/* Up to the next mark's offset lines were written after from, before to. */
struct seam_perf_map_mark {
	uint64_t offset;		/* bytes, in the map */
	uint64_t from_ns, to_ns;	/* from_ns 0: not known */
};

enum { SEAM_PERF_MAP_MARK_BYTES = 3 * 21 + 1 };	/* of a line, at most */

struct seam_perf_map_times {
	struct seam_bytes bytes;
	size_t pos;
	struct seam_perf_map_mark last;
	uint64_t n_bad;			/* lines that cannot be used */
};

static inline struct seam_perf_map_times
seam_perf_map_times_begin(struct seam_bytes bytes)
{
	return (struct seam_perf_map_times) { .bytes = bytes };
}

/*
 * The next mark; false at the end.  Numbers do not decrease from mark to mark;
 * a from_ns that does is raised.  Each call moves or is the last.
 */
bool seam_perf_map_times_next(struct seam_perf_map_times *times,
			      struct seam_perf_map_mark *mark);

/*
 * Lay out the line of @mark at @to, which has SEAM_PERF_MAP_MARK_BYTES, its
 * end included.  Returns its bytes.
 */
size_t seam_perf_map_mark_put(char *to, const struct seam_perf_map_mark *mark);
