/* SPDX-License-Identifier: MIT */
/*
 * perf_map_copy.h - one perf map, copied while its runtime appends to it
 *
 * Each call reads only what came since the last one, appends it to the copy in
 * the recording, and notes in the index beside it between which times it was
 * written (wire/jit/perf_map_times.h).
 *
 * A map that was cut or replaced is read again from its beginning, and that is
 * appended too: the copy has the names of both, each with its time.  A zero
 * byte ends the copy, because a map has none; so do MAX_BYTES.
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
	int from;		/* the map; -1: not found so far */
	int to, times;		/* in the recording; -1: not made so far */
	uint64_t pos;		/* of the map, read */
	uint64_t n_bytes;	/* of the copy */
	uint64_t checked_ns;	/* when nothing more was in the map; 0: never */
	uint64_t marked_ns;	/* the last FROM */
	uint64_t max_bytes;
	bool is_woken;		/* inotify has just told of a write */
	bool is_over;		/* nothing more is copied */
	bool is_cut;		/* because there was too much */
	char last;		/* byte of the copy */
	uint8_t tail[SEAM_PERF_MAP_COPY_TAIL];	/* what was read last */
	size_t n_tail;
};

void seam_perf_map_copy_init(struct seam_perf_map_copy *copy, uint64_t max_bytes);
void seam_perf_map_copy_close(struct seam_perf_map_copy *copy);

/* Read from @fd, which is taken over, in place of the one before. */
void seam_perf_map_copy_set_source(struct seam_perf_map_copy *copy, int fd);

/*
 * Whether @fd is another file than the one that is read: then it should be
 * read from here on.
 */
bool seam_perf_map_copy_is_other_file(const struct seam_perf_map_copy *copy, int fd);

/*
 * Append what is new in the map, at most @most bytes, to the copy @name in
 * @folder, which is made with its index when there is something.  Returns
 * the bytes read, or -errno when they could not be written; nothing is
 * copied any more then.
 */
ssize_t seam_perf_map_copy_update(struct seam_perf_map_copy *copy, int folder,
			   const char *name, size_t most,
			   struct seam_err *err);

#endif /* SEAM_PERF_MAP_COPY_H */
