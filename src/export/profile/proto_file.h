/* SPDX-License-Identifier: MIT */
/*
 * proto_file.h - a gzip file of one protobuf message, written in parts
 *
 * Fields of the outermost message are appended to @proto; between two of them
 * the caller calls seam_proto_file_next(), which compresses and writes what has
 * come together.  Memory is a few hundred kilobytes, whatever the file's size.
 */
#pragma once

#include <stdio.h>
#include <zlib.h>

#include "base/err.h"
#include "base/proto.h"

/* Not to be copied while it is open. */
struct seam_proto_file {
	struct seam_proto proto;
	FILE *out;
	z_stream gzip;
	uint64_t n_bytes;	/* before compression, without those in proto */
	uint64_t max_bytes;	/* no more are written */
};

/*
 * @level: zlib's, 1 to 9.  0 or -ENOMEM; seam_proto_file_close() is due in both
 * cases.
 */
int seam_proto_file_open(struct seam_proto_file *file, FILE *out, int level,
			 uint64_t max_bytes);

/* 0; -ENOMEM, or -EFBIG over max_bytes, now or before. */
int seam_proto_file_next(struct seam_proto_file *file);

/*
 * Write the end if @r is 0, and free everything.  Returns @r, else as
 * seam_proto_file_next(), with the reason in @err; errors of @out are the
 * caller's to check.
 */
int seam_proto_file_close(struct seam_proto_file *file, int r,
			  struct seam_err *err);
