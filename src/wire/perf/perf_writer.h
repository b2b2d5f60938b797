/* SPDX-License-Identifier: MIT */
/*
 * perf_writer.h - write a perf.data file that is valid at every moment
 *
 *	header | ids of each event | attrs | formats | data ... | features
 *
 * The header's data.size is rewritten after each batch of whole records, so
 * whoever dies at any point leaves a file that ends with its last batch.
 * The features (host, command line, event names) come last; the bits that
 * announce them are written when all of them are there.
 *
 * But perf opens no file with tracepoints that has not their formats, which
 * are a feature, and the table of features is behind the data.  So the formats
 * are written before the first record, and each batch brings a table of that
 * one feature behind itself.  A batch is written from its 17th byte on, where
 * it does not touch the table before it; then its first 16 bytes in place of
 * that, and the header.  Only who dies between these last two calls leaves a
 * table that is none.
 *
 * Everything is in the byte order of this machine, as perf does it.
 *
 * Source: tools/perf/util/header.c and Documentation/perf.data-file-format
 * of Linux 6.1.
 */
#ifndef SEAM_PERF_WRITER_H
#define SEAM_PERF_WRITER_H

#include "base/err.h"
#include "wire/perf/perf_features.h"

#include <sys/uio.h>

enum {
	/*
	 * Bytes of an attr in the file.  perf refuses files whose attrs are
	 * larger than its own, and 6.1 knows 128 (PERF_ATTR_SIZE_VER7).
	 */
	SEAM_PERF_WRITER_ATTR_BYTES = 128,
};

/* Read freely. */
struct seam_perf_writer {
	int fd;
	const char *name;	/* of the file, for messages; borrowed */
	uint64_t data_offset;		/* bytes from the file's start */
	uint64_t data_bytes;		/* whole records that are in the file */
	struct seam_perf_event *events;	/* borrowed */
	size_t n_events;
	uint64_t formats_offset, formats_bytes;	/* of tracepoints; 0: none */
	bool was_cut;		/* somebody else has made the file shorter */
};

/* What is left of a file that was cut. */
struct seam_perf_writer_left {
	uint64_t n_records, n_samples;
};

/*
 * Write the header and @events at the start of the empty file @fd, which
 * stays the caller's, as @events do.  0 or -errno.
 */
int seam_perf_writer_begin(struct seam_perf_writer *w, int fd,
			   const char *name,
			   struct seam_perf_event *events, size_t n_events,
			   struct seam_err *err);

/*
 * The formats of the file's tracepoints, before the first record: the feature
 * TRACING_DATA.  No bytes add nothing.
 */
int seam_perf_writer_formats(struct seam_perf_writer *w,
			     struct seam_bytes formats, struct seam_err *err);

/*
 * From here on records may carry @id too, of event @event.  -ENOSPC when
 * the event has no room for more.
 */
int seam_perf_writer_add_id(struct seam_perf_writer *w, size_t event,
			    uint64_t id, struct seam_err *err);

/*
 * Append whole records that lie in @n pieces; @pieces is used up.  On an
 * error nothing of the batch belongs to the file, which ends where it did.
 * -EIO with was_cut: the file has become shorter than what was written.
 */
int seam_perf_writer_append(struct seam_perf_writer *w, struct iovec *pieces,
			    size_t n, struct seam_err *err);

/*
 * After was_cut: have the file end with the last whole record that is left, as
 * valid as before.  -ENODATA: not even its beginning is; begin it anew.
 * Cost: reads the file once.
 */
int seam_perf_writer_salvage(struct seam_perf_writer *w,
			     struct seam_perf_writer_left *left,
			     struct seam_err *err);

/* Where the file ends, with the table of features behind its data. */
uint64_t seam_perf_writer_end(const struct seam_perf_writer *w);

/*
 * End the file with its features, the formats beside them.  On an error the file is as valid as it
 * was before, and cut behind the data.
 */
int seam_perf_writer_finish(struct seam_perf_writer *w,
			    const struct seam_perf_features *features,
			    struct seam_err *err);

#endif /* SEAM_PERF_WRITER_H */
