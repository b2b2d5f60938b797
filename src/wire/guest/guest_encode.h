/* SPDX-License-Identifier: MIT */
/*
 * guest_encode.h - write guest and symbol records in a signal handler
 *
 * No allocation and no system call; the work is in proportion to the frames
 * and segments that are given.  The result is the RAW data of a perf sample,
 * without its size in front; it is a multiple of 4 bytes.
 */
#pragma once

#include "wire/guest/guest_record.h"

/*
 * Write a guest record into the @cap bytes at @buf.  @frames are those of all
 * segments, one segment after the other.  Returns the size in bytes; 0 where
 * the record has more than @cap or SEAM_GUEST_MAX_BYTES.
 */
size_t seam_guest_encode_sample(uint8_t *buf, size_t cap,
				const struct seam_guest_head *head,
				const struct seam_guest_segment *segments,
				const struct seam_guest_frame *frames);

/* Bytes that hold any symbol record. */
enum {
	SEAM_GUEST_SYMBOL_BYTES =
		36 + SEAM_GUEST_MAX_CHUNK + SEAM_GUEST_MAX_NAME,
};

/*
 * Write a symbol record.  Texts longer than their arrays are cut to them, and
 * marked.  Returns the size in bytes.
 */
size_t seam_guest_encode_symbol(uint8_t buf[SEAM_GUEST_SYMBOL_BYTES],
				const struct seam_guest_symbol *symbol);
