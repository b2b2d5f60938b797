/* SPDX-License-Identifier: MIT */
/*
 * compress.h - batches of records as PERF_RECORD_COMPRESSED
 *
 * One zstd stream runs through all COMPRESSED records of the file.  Each is
 * flushed, so that a file of a killed recorder ends with its last batch.  A
 * record may begin in one COMPRESSED record and end in the next.
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
	SEAM_COMPRESS_MAX_LEVEL = 22,
	/* Uncompressed bytes in one COMPRESSED record, at most. */
	SEAM_COMPRESS_CHUNK_BYTES = 48 * 1024,
};

/* Zeroed is valid and off. */
struct seam_compress {
	void *stream;		/* ZSTD_CStream; NULL: off */
	int level;		/* 0: the file is not compressed */
	SEAM_ARRAY(uint8_t) out;	/* the records of the last batch */
	uint64_t n_in, n_out;	/* bytes so far */
};

int seam_compress_init(struct seam_compress *compress, int level,
		       struct seam_err *err);

/*
 * Compress the @n @pieces, which are whole records, into out.  After a failure
 * the stream cannot be used any more.
 */
int seam_compress_batch(struct seam_compress *compress,
			const struct iovec *pieces, size_t n,
			struct seam_err *err);

void seam_compress_fini(struct seam_compress *compress);

#endif /* SEAM_COMPRESS_H */
