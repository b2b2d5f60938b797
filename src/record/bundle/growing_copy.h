/* SPDX-License-Identifier: MIT */
/*
 * growing_copy.h - copy a perf map or a jitdump while its runtime appends to it
 *
 * A perf map has no times: an index beside the copy has the interval in which
 * each piece was written (wire/jit/perf_map.h).  A map that was truncated
 * or replaced is read again from its beginning, and appended too.  A zero byte
 * ends the copy, because no map has one.
 *
 * A jitdump has times.  The copy of one that was truncated or replaced begins
 * anew: n_restarts is counted before a byte of the former copy is lost, so that
 * another thread that reads the copy finds out.  Holes are not read.
 *
 * Threads: one; n_bytes and n_restarts may be read by others.
 */
#ifndef SEAM_GROWING_COPY_H
#define SEAM_GROWING_COPY_H

#include "base/base.h"
#include "base/err.h"
#include "symbol/jit/jit_find.h"

#include <sys/types.h>

enum { SEAM_GROWING_COPY_TAIL = 32 };

struct seam_growing_copy {
	enum seam_jit_kind kind;
	int from;		/* the file; -1: not found yet */
	int to, times;		/* in the recording; -1: not made yet */
	uint64_t pos;		/* in the file: read up to there */
	_Atomic uint64_t n_bytes;	/* of the copy */
	_Atomic unsigned int n_restarts;	/* of a dump */
	uint64_t checked_ns;	/* when its end was last read; 0: never */
	uint64_t marked_ns;	/* from_ns of the last mark */
	uint64_t max_bytes;
	bool is_woken;		/* an inotify event has caused the update */
	bool is_over;		/* nothing more is copied ... */
	bool is_cut;		/* ... because of max_bytes */
	char last;		/* the last byte of the copy */
	uint8_t tail[SEAM_GROWING_COPY_TAIL];	/* the last bytes read */
	size_t n_tail;
};

void seam_growing_copy_init(struct seam_growing_copy *copy,
			    enum seam_jit_kind kind, uint64_t max_bytes);

/* Stop to read the file; the copy stays open. */
void seam_growing_copy_close_source(struct seam_growing_copy *copy);
void seam_growing_copy_close(struct seam_growing_copy *copy);

/* Read from @fd from now on; takes it, and closes the one before. */
void seam_growing_copy_set_source(struct seam_growing_copy *copy, int fd);

/* Whether @fd is another file than the one that is read now. */
bool seam_growing_copy_is_other_file(const struct seam_growing_copy *copy,
				     int fd);

/*
 * Append what is new in the file, at most @max bytes, to the copy @name in
 * @folder; the copy, and the index of a map, are made with the first bytes.
 * Returns the bytes read, or -errno of writing them: then nothing more is
 * copied.
 */
ssize_t seam_growing_copy_update(struct seam_growing_copy *copy, int folder,
				 const char *name, size_t max,
				 struct seam_err *err);

#endif /* SEAM_GROWING_COPY_H */
