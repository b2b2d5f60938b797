/* SPDX-License-Identifier: MIT */
/*
 * compress.h - batches of records, packed as perf.data has it
 *
 * One zstd stream runs through the whole file, in PERF_RECORD_COMPRESSED
 * records; each is flushed, so that a file ends with its last batch however
 * its writer ended.  A record inside may begin in one and end in the next.
 *
 * Source: tools/perf/util/zstd.c and session.c of Linux 6.1.
 */
#ifndef SEAM_COMPRESS_H
#define SEAM_COMPRESS_H

#include "base/array.h"
#include "base/err.h"

#include <sys/uio.h>

enum {
	SEAM_COMPRESS_DEFAULT_LEVEL = 1,
	SEAM_COMPRESS_MOST_LEVEL = 22,
	/* What one COMPRESSED record unpacks to at most. */
	SEAM_COMPRESS_CHUNK_BYTES = 48 * 1024,
};

/* Zeroed is valid and off. */
struct seam_compress {
	void *stream;		/* ZSTD_CStream; NULL: off */
	int level;
	SEAM_ARRAY(uint8_t) out;	/* the records of the last batch */
	uint64_t n_in, n_out;	/* bytes so far */
};

int seam_compress_init(struct seam_compress *compress, int level,
		       struct seam_err *err);

/*
 * Pack the @n @pieces, which are whole records; the result is in out.  After
 * a failure the stream is of no use any more.
 */
int seam_compress_batch(struct seam_compress *compress,
			const struct iovec *pieces, size_t n,
			struct seam_err *err);

void seam_compress_fini(struct seam_compress *compress);

#endif /* SEAM_COMPRESS_H */
