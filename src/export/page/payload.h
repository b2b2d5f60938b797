/* SPDX-License-Identifier: MIT */
/*
 * payload.h - tables as columns, gzip, base64: the data of a page
 *
 * doc/formats/page.md describes the bytes.  Everything is written to one
 * stream, which compresses and encodes as it is filled, so memory does not grow
 * with the tables.
 */
#pragma once

#include <stdio.h>
#include <zlib.h>

#include "base/base.h"
#include "base/err.h"

enum { SEAM_PAYLOAD_VERSION = 1 };

/* How the numbers of a column are stored. */
enum seam_column_encoding {
	SEAM_COLUMN_SAME,	/* one number, of all rows */
	SEAM_COLUMN_PLAIN,	/* LEB128 */
	SEAM_COLUMN_DELTA,	/* LEB128 of the zigzag of the difference */
};

/* A member of the elements of an array: the rows of the column. */
struct seam_column {
	const char *name;	/* "samples.time" */
	const void *items;
	size_t n, item_bytes, offset, size;
	bool is_delta;
};

#define SEAM_COLUMN(name_, array, member, is_delta_)			\
	(struct seam_column) {						\
		.name = (name_), .items = (array)->items, .n = (array)->n, \
		.item_bytes = sizeof(*(array)->items),			\
		.offset = offsetof(__typeof__(*(array)->items), member), \
		.size = sizeof((array)->items->member),			\
		.is_delta = (is_delta_),				\
	}

/* Not to be copied while it is open. */
struct seam_payload {
	FILE *stream;		/* what is written to it is encoded */
	FILE *out;		/* borrowed */
	z_stream gzip;
	uint8_t rest[3];	/* bytes that are not encoded yet */
	size_t n_rest;
};

/*
 * Begin a payload on @out.  0 or -ENOMEM; seam_payload_close() is due after 0.
 */
int seam_payload_open(struct seam_payload *payload, FILE *out);

/* The column, in the shortest of its encodings. */
void seam_payload_column(struct seam_payload *payload,
			 const struct seam_column *column);

/* Write the end.  0 or -ENOMEM; errors of @out are the caller's to check. */
int seam_payload_close(struct seam_payload *payload);
