/* SPDX-License-Identifier: MIT */
/*
 * proto.h - messages of protocol buffers, written field by field
 *
 *	at = seam_proto_open(&p, PACKET);
 *	seam_proto_u64(&p, TIMESTAMP, ns);
 *	seam_proto_text(&p, NAME, name);
 *	seam_proto_close(&p, at);
 *
 * Messages are appended to one buffer, which the caller empties between two of
 * them: no tree of objects is built.  A writer that ran out of memory stays so
 * (is_failed), so that only its end need be checked.
 *
 * Source: protobuf.dev, "Encoding"
 */
#pragma once

#include "base/array.h"

/* Zeroed is valid and empty; free(items) ends it. */
struct seam_proto {
	uint8_t *items;
	size_t n, cap;
	bool is_failed;
};

/* A number, of which no sign is known; also a bool or an enum. */
void seam_proto_u64(struct seam_proto *p, unsigned int field, uint64_t value);

/* The same as 8 bytes: fixed64. */
void seam_proto_fixed64(struct seam_proto *p, unsigned int field,
			uint64_t value);

void seam_proto_bytes(struct seam_proto *p, unsigned int field,
		      struct seam_bytes bytes);

/* @text as UTF-8 without control characters (SEAM_TEXT_TERMINAL). */
void seam_proto_text(struct seam_proto *p, unsigned int field,
		     const char *text);

/* A message, or packed numbers, until seam_proto_close(). */
size_t seam_proto_open(struct seam_proto *p, unsigned int field);
void seam_proto_close(struct seam_proto *p, size_t opened);

/* One of packed numbers. */
void seam_proto_packed(struct seam_proto *p, uint64_t value);
