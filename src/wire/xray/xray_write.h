/* SPDX-License-Identifier: MIT */
/*
 * xray_write.h - write an FDR log of version 5 that llvm-xray reads
 *
 *	seam_xray_writer_init(&w, out, frequency_hz, buffer_bytes);
 *	seam_xray_writer_block(&w, &(struct seam_xray_block_start) { ... });
 *	seam_xray_writer_put(&w, &event, payload);
 *	...
 *	r = seam_xray_writer_end(&w, err);
 *
 * A block is collected in memory, because its length comes before it.  The
 * first failure is remembered and returned at the end.
 */
#pragma once

#include "wire/xray/xray_fdr.h"

struct seam_xray_writer {
	FILE *out;			/* borrowed */
	struct seam_xray_format format;
	SEAM_ARRAY(uint8_t) block;	/* so far, extents not counted */
	uint64_t tsc;			/* base of the next delta */
	uint16_t cpu;
	int error;
};

struct seam_xray_block_start {
	int32_t pid, tid;
	/*
	 * llvm-xray compares seconds and microseconds separately when it sorts
	 * the blocks of a thread: with more than 16 blocks both must grow
	 * from block to block.
	 */
	uint64_t wall_ns;
	uint64_t tsc;
	uint16_t cpu;
};

/* Begin a log on @out.  @buffer_bytes is for the header. */
void seam_xray_writer_init(struct seam_xray_writer *w, FILE *out,
			   uint64_t frequency_hz, uint64_t buffer_bytes);

/* Begin a block; the one before it ends. */
void seam_xray_writer_block(struct seam_xray_writer *w,
			    const struct seam_xray_block_start *start);

/*
 * An event; TSCWrap and NewCPUId before it where they are needed.  @payload is
 * that of a custom or typed one.
 */
void seam_xray_writer_put(struct seam_xray_writer *w,
			  const struct seam_xray_event *event,
			  const struct seam_xray_payload *payload);

/* End the log and free what the writer holds; 0 or the first failure. */
int seam_xray_writer_end(struct seam_xray_writer *w, struct seam_err *err);
