/* SPDX-License-Identifier: MIT */
/*
 * perf_rewrite.h - a perf.data file with mappings added and left out
 *
 * Everything else is copied byte for byte: attrs, records in their order,
 * features, which are moved behind the longer data; only the index of
 * hardware traces is put right.  Compressed records are unpacked, because
 * something comes between them.
 *
 * Where a record goes: perf sorts what it read by time whenever a round
 * of its rings is finished.  A mapping is put before the first record that is
 * not older.  Then nothing newer can have been given out before it, and it
 * does not make perf believe that the round reached a later time.  What is
 * newer than all records is of no use, and is not written.
 *
 * Source: tools/perf/util/ordered-events.c and session.c, Linux 6.1.
 */
#ifndef SEAM_PERF_REWRITE_H
#define SEAM_PERF_REWRITE_H

#include "base/err.h"
#include "wire/perf/perf_data.h"

/* A mapping to add: MMAP2, to run.  Borrowed. */
struct seam_perf_added {
	uint64_t time_ns;
	int32_t pid;
	uint64_t addr, len, pgoff;	/* bytes */
	const char *filename;
	uint32_t maj, min;		/* of the file's device */
	uint64_t ino;
};

struct seam_perf_rewrite {
	const struct seam_perf_data *data;
	const struct seam_perf_added *added;	/* by time */
	size_t n_added;
	/* Whether to leave a mapping out; NULL: none. */
	bool (*leaves_out)(void *context,
			   const struct seam_perf_mapping *mapping,
			   uint64_t time_ns);
	void *context;

	/* out */
	uint64_t n_written, n_left_out;
};

/*
 * Write the file anew to @out, which can seek and is at its start.
 *
 * Returns 0; -ENODATA or -EBADMSG when the walk ended early, and then what is
 * behind has been copied as it stands (where it is not compressed); -ENOTSUP
 * for a file whose events are not described between its header and its
 * data; -EIO, -ENOSPC, -ENOMEM.
 */
int seam_perf_rewrite(struct seam_perf_rewrite *rewrite, FILE *out,
		      struct seam_err *err);

#endif /* SEAM_PERF_REWRITE_H */
