/* SPDX-License-Identifier: MIT */
/*
 * xray_log_file.h - an FDR log of version 5 that grows, valid after each write
 *
 *	seam_xray_log_begin(&log, fd, 0);
 *	for each chunk of a thread, in its order:
 *		seam_xray_chunk_read(chunk, size, body, NULL, &found);
 *		seam_xray_log_append(&log, &thread, body, found.n_bytes);
 *	seam_xray_log_set_frequency(&log, hz);
 *	seam_xray_log_join(&log, other, goes_on, context);
 *
 * What is appended goes to the open block while that is the thread's, else to
 * a new one.  The block's extents grow first: where a writer is killed, the
 * file is one that ends inside its last block, which readers take as far as it
 * goes.  A write that fails leaves the log as it was before.
 *
 * llvm-xray sorts the blocks of a thread wrongly where there are more than
 * SEAM_XRAY_LOG_BLOCKS.  A thread alone stays below, as its blocks grow with
 * the log, up to 128 GiB; blocks of others are joined at the end.
 *
 * The writer holds no memory.  Threads: one at a time.
 */
#pragma once

#include "wire/xray/xray.h"

enum {
	SEAM_XRAY_LOG_BLOCKS = 16,	/* of a thread, for llvm-xray */
	/* a block may have so many bytes, or all that the log has before it */
	SEAM_XRAY_LOG_MIN_BLOCK = 4 << 20,
};

struct seam_xray_log {
	int fd;			/* borrowed */
	uint64_t bytes;		/* of the file */
	uint64_t block_at;	/* where the open block begins; 0: none */
	int32_t tid;		/* its thread */
	uint64_t n_blocks;
};

/* Whose records follow. */
struct seam_xray_log_thread {
	int32_t pid, tid;
	uint64_t wall_us;	/* CLOCK_MONOTONIC, when the chunk began */
};

/*
 * Begin a log in the empty file @fd, of a counter of @hz ticks a second; 0: not
 * known yet.  0 or -errno.
 */
int seam_xray_log_begin(struct seam_xray_log *log, int fd, uint64_t hz);
int seam_xray_log_set_frequency(struct seam_xray_log *log, uint64_t hz);

/*
 * Append @size bytes of a thread: NewCPUId, and what may follow it.  0 or
 * -errno.
 */
int seam_xray_log_append(struct seam_xray_log *log,
			 const struct seam_xray_log_thread *thread,
			 const uint8_t *body, size_t size);

/*
 * Copy @log to the empty file @to, with at most SEAM_XRAY_LOG_BLOCKS blocks of
 * a thread, if a thread has more: of blocks that are joined, the first one's
 * preamble stays, and of the others what follows Pid.
 *
 * Returns 1; 0 where no thread has too many, and @to is untouched; -EBADMSG
 * where a block is damaged, -ENODATA where the file is shorter; -EINTR where
 * @goes_on, which is called after some bytes were copied and may be NULL,
 * returned false; or -errno.  After a failure @to is to be removed.
 * Memory: 24 bytes a block.  Time: that of a copy, and a read of 64 bytes a
 * block.
 */
int seam_xray_log_join(const struct seam_xray_log *log, int to,
		       bool (*goes_on)(void *context, uint64_t bytes),
		       void *context);
