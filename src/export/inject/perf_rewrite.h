/* SPDX-License-Identifier: MIT */
/*
 * perf_rewrite.h - a perf.data file with mappings added and left out
 *
 * Everything else is copied byte for byte: attrs, records in their order, and
 * features, which follow the longer data.  Only the AUXTRACE index gets new
 * offsets.  Compressed records are unpacked, because records are inserted
 * between them.
 *
 * At each FINISHED_ROUND, perf sorts the records read so far by time.  So a
 * mapping is inserted before the first record that is not older: no newer
 * record was delivered before it, and it does not extend the time span of the
 * round.  A mapping newer than all records has no effect and is not written.
 *
 * Source: tools/perf/util/ordered-events.c and session.c, Linux 6.1.
 */
#pragma once

#include "base/err.h"
#include "wire/perf/perf_data.h"

/* An executable mapping (MMAP2) to add.  Borrowed. */
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
	/* Whether to leave a mapping out.  NULL: leave out none. */
	bool (*leaves_out)(void *context,
			   const struct seam_perf_mapping *mapping,
			   uint64_t time_ns);
	void *context;

	/* out */
	uint64_t n_written, n_left_out;
};

/*
 * Write the new file to @out, which is seekable and at its start.
 *
 * Returns 0; -ENODATA or -EBADMSG when the walk ended early, and then the rest
 * has been copied unchanged (where it is not compressed); -ENOTSUP
 * when the event attributes are not between the header and the data; -EIO,
 * -ENOSPC, -ENOMEM.
 */
int seam_perf_rewrite(struct seam_perf_rewrite *rewrite, FILE *out,
		      struct seam_err *err);
