/* SPDX-License-Identifier: MIT */
/* compress.c - chunk by chunk through one stream; see compress.h */
#include "record/perf/compress.h"

#include "wire/perf/perf_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <zstd.h>

/* A chunk that does not shrink still has to fit into a record. */
_Static_assert(ZSTD_COMPRESSBOUND(SEAM_COMPRESS_CHUNK_BYTES) + 1024 +
	       sizeof(struct perf_event_header) <= UINT16_MAX,
	       "the size of a record has 16 bits");

int seam_compress_init(struct seam_compress *c, int level,
		       struct seam_err *err)
{
	*c = (struct seam_compress) {
		.stream = ZSTD_createCCtx(), .level = level,
	};
	if (!c->stream ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->stream,
			 ZSTD_c_compressionLevel, level)))
		return seam_err_set(err, -ENOMEM, "cannot compress at level "
				    "%d", level);
	return 0;
}

/* Append one COMPRESSED record of @size bytes of @data to out. */
static int put_chunk(struct seam_compress *c, const uint8_t *data,
		     size_t size, struct seam_err *err)
{
	struct perf_event_header header = { .type = SEAM_PERF_COMPRESSED };
	ZSTD_inBuffer in = { .src = data, .size = size };
	ZSTD_outBuffer out = { .size = UINT16_MAX - sizeof(header) };
	size_t left;

	if (!SEAM_ARRAY_RESERVE(&c->out, UINT16_MAX))
		return seam_err_no_memory(err);
	out.dst = c->out.items + c->out.n + sizeof(header);
	left = ZSTD_compressStream2(c->stream, &out, &in, ZSTD_e_flush);
	if (left != 0 || in.pos != size)
		return seam_err_set(err, -EIO, "zstd: %s", ZSTD_isError(left) ?
				    ZSTD_getErrorName(left) :
				    "a chunk does not fit");
	header.size = (uint16_t)(sizeof(header) + out.pos);
	memcpy(c->out.items + c->out.n, &header, sizeof(header));
	c->out.n += header.size;
	c->n_in += size;
	c->n_out += header.size;
	return 0;
}

int seam_compress_batch(struct seam_compress *c, const struct iovec *pieces,
			size_t n, struct seam_err *err)
{
	int r = 0;

	c->out.n = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t at = 0; r == 0 && at < pieces[i].iov_len; ) {
			size_t size = pieces[i].iov_len - at;

			if (size > SEAM_COMPRESS_CHUNK_BYTES)
				size = SEAM_COMPRESS_CHUNK_BYTES;
			r = put_chunk(c, (const uint8_t *)pieces[i].iov_base +
				      at, size, err);
			at += size;
		}
	return r;
}

void seam_compress_fini(struct seam_compress *c)
{
	ZSTD_freeCCtx(c->stream);
	free(c->out.items);
	*c = (struct seam_compress) { 0 };
}
