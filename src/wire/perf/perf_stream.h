/* SPDX-License-Identifier: MIT */
/*
 * perf_stream.h - one record after another
 *
 * Walks a range of a recording and unpacks what is compressed on the way
 * (COMPRESSED and COMPRESSED2 hold one zstd stream, in which records may
 * straddle the pieces).  Bytes that follow some records
 * (AUXTRACE, TRACING_DATA) come with their record.  Records of simpleperf
 * may be larger than 64 KiB: they have no misc, but a size of 32 bits.
 *
 * Progress: each record moves the position by at least 8 bytes; a header
 * with a smaller size ends the walk, because no next record can be found.
 */
#pragma once

#include "wire/perf/perf_data.h"

struct seam_perf_stream {
	struct seam_bytes bytes;	/* of the file */
	enum seam_endian endian;
	bool swap;
	uint64_t pos;			/* of the next header */
	uint64_t end;			/* records begin before this */
	uint64_t limit;			/* and their bytes are before this */
	struct seam_bytes trailing;	/* after the last record given */

	struct seam_perf_unpacked *unpacked;	/* NULL until needed */
	bool as_is;			/* give COMPRESSED records themselves */
};

/*
 * Records of @bytes from @begin to @end; the byte order is @endian.  With
 * @as_is compressed records are given as they are.  A reader of a part of
 * the data sets limit to where all of it ends.
 */
void seam_perf_stream_init(struct seam_perf_stream *stream,
			   struct seam_bytes bytes, enum seam_endian endian,
			   uint64_t begin, uint64_t end, bool as_is);
void seam_perf_stream_fini(struct seam_perf_stream *stream);

/*
 * The next record.  Returns 1 with *@record valid until the next call, 0 at
 * the end, or -errno with the reason, and then the walk is over: -ENODATA
 * when the last record is cut, -EBADMSG when a size or the compressed data
 * makes no sense, -ENOMEM.  The position stays at the record that failed.
 */
int seam_perf_stream_next(struct seam_perf_stream *stream,
			  struct seam_perf_record *record,
			  struct seam_err *err);
