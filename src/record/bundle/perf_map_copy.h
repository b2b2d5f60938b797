/* SPDX-License-Identifier: MIT */
/*
 * perf_map_copy.h - copy one perf map while its runtime appends to it
 *
 * Each call reads the bytes that were written since the last call, appends
 * them to the copy in the recording, and appends to the index beside it the
 * interval in which they were written (wire/jit/perf_map_times.h).
 *
 * A map that was truncated or replaced is read again from its beginning, and
 * appended too: the copy has the names of both, each with its time.  A zero
 * byte ends the copy, because no map has one; so does max_bytes.
 *
 * Threads: one.
 */
#ifndef SEAM_PERF_MAP_COPY_H
#define SEAM_PERF_MAP_COPY_H

#include "base/base.h"
#include "base/err.h"

#include <sys/types.h>

enum { SEAM_PERF_MAP_COPY_TAIL = 32 };

struct seam_perf_map_copy {
	int from;		/* the map; -1: not found yet */
	int to, times;		/* in the recording; -1: not made yet */
	uint64_t pos;		/* in the map: read up to there */
	uint64_t n_bytes;	/* of the copy */
	uint64_t checked_ns;	/* when its end was last read; 0: never */
	uint64_t marked_ns;	/* from_ns of the last mark */
	uint64_t max_bytes;
	bool is_woken;		/* an inotify event has caused the update */
	bool is_over;		/* nothing more is copied ... */
	bool is_cut;		/* ... because of max_bytes */
	char last;		/* the last byte of the copy */
	uint8_t tail[SEAM_PERF_MAP_COPY_TAIL];	/* the last bytes read */
	size_t n_tail;
};

void seam_perf_map_copy_init(struct seam_perf_map_copy *copy,
			     uint64_t max_bytes);
void seam_perf_map_copy_close(struct seam_perf_map_copy *copy);

/* Read from @fd from now on; takes it, and closes the one before. */
void seam_perf_map_copy_set_source(struct seam_perf_map_copy *copy, int fd);

/* Whether @fd is another file than the one that is read now. */
bool seam_perf_map_copy_is_other_file(const struct seam_perf_map_copy *copy,
				      int fd);

/*
 * Append what is new in the map, at most @max bytes, to the copy @name in
 * @folder; it and its index are made with the first bytes.  Returns the bytes
 * read, or -errno of writing them: then nothing more is copied.
 */
ssize_t seam_perf_map_copy_update(struct seam_perf_map_copy *copy, int folder,
				  const char *name, size_t max,
				  struct seam_err *err);

#endif /* SEAM_PERF_MAP_COPY_H */
