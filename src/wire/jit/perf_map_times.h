/* SPDX-License-Identifier: MIT */
/*
 * perf_map_times.h - when the lines of a perf map were written
 *
 * A perf map has no times.  A recorder that follows it while its runtime
 * writes it puts this index beside its copy: perf-PID.map.times, text, one
 * line for each time that it found the map longer than before:
 *
 *	OFFSET FROM TO
 *
 * All that begins at byte OFFSET of the map or later, up to the next line's
 * OFFSET, was written after FROM and before TO, in nanoseconds of the
 * recording's clock.  A FROM of 0 is "not known, before TO".  Numbers are
 * decimal and do not decrease from line to line; a FROM that does is raised.
 * Lines that begin with # are comments; those that are not of this form are
 * counted and skipped.
 *
 * doc/formats/perf-map-times.md explains its use.
 */
#ifndef SEAM_PERF_MAP_TIMES_H
#define SEAM_PERF_MAP_TIMES_H

#include "base/base.h"

#define SEAM_PERF_MAP_TIMES_SUFFIX ".times"

struct seam_perf_map_mark {
	uint64_t offset;		/* bytes, in the map */
	uint64_t from_ns, to_ns;
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

/* The next mark; false at the end.  Each call moves or is the last. */
bool seam_perf_map_times_next(struct seam_perf_map_times *times,
			      struct seam_perf_map_mark *mark);

/*
 * Lay out the line of @mark at @to, which has SEAM_PERF_MAP_MARK_BYTES, its
 * end included.  Returns its bytes.
 */
size_t seam_perf_map_mark_put(char *to, const struct seam_perf_map_mark *mark);

#endif /* SEAM_PERF_MAP_TIMES_H */
