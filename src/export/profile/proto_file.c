/* SPDX-License-Identifier: MIT */
/* proto_file.c - a buffer, zlib, a stream; see proto_file.h */
#include "export/profile/proto_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
	CHUNK_BYTES = 1 << 16,
	GZIP = 16 + MAX_WBITS,		/* a header of gzip, not of zlib */
};

int seam_proto_file_open(struct seam_proto_file *file, FILE *out, int level,
			 uint64_t max_bytes)
{
	*file = (struct seam_proto_file) {
		.out = out, .max_bytes = max_bytes,
	};
	return deflateInit2(&file->gzip, level, Z_DEFLATED, GZIP, 8,
			    Z_DEFAULT_STRATEGY) == Z_OK ? 0 : -ENOMEM;
}

/* Compress what is in the buffer; @flush as deflate() has it. */
static void compress_buffer(struct seam_proto_file *file, int flush)
{
	uint8_t packed[CHUNK_BYTES];

	file->n_bytes += file->proto.n;
	file->gzip.next_in = file->proto.items;
	file->gzip.avail_in = (uInt)file->proto.n;
	do {
		file->gzip.next_out = packed;
		file->gzip.avail_out = sizeof(packed);
		deflate(&file->gzip, flush);
		fwrite(packed, 1, sizeof(packed) - file->gzip.avail_out,
		       file->out);
	} while (file->gzip.avail_out == 0);
	file->proto.n = 0;
}

int seam_proto_file_next(struct seam_proto_file *file)
{
	if (file->proto.is_failed)
		return -ENOMEM;
	if (file->n_bytes + file->proto.n > file->max_bytes)
		return -EFBIG;
	if (file->proto.n >= CHUNK_BYTES)
		compress_buffer(file, Z_NO_FLUSH);
	return 0;
}

int seam_proto_file_close(struct seam_proto_file *file, int r,
			  struct seam_err *err)
{
	r = r ? r : seam_proto_file_next(file);
	if (!r)
		compress_buffer(file, Z_FINISH);
	deflateEnd(&file->gzip);
	free(file->proto.items);
	file->proto = (struct seam_proto) { 0 };
	if (r == -EFBIG)
		return seam_err_set(err, r, "cannot convert: the file would "
				    "have more than %" PRIu64 " MiB before it "
				    "is compressed; choose a part with --time, "
				    "--thread or --event",
				    file->max_bytes >> 20);
	return r == -ENOMEM ? seam_err_no_memory(err) : r;
}
