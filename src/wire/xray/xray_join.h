/* SPDX-License-Identifier: MIT */
/*
 * xray_join.h - copy a log into one with at most 16 blocks of a thread
 *
 * llvm-xray sorts the blocks of a thread wrongly where there are more
 * (SEAM_XRAY_LOG_BLOCKS).  Blocks of a thread are joined in their order: the
 * first one's preamble stays, of the others what follows Pid.
 */
#ifndef SEAM_XRAY_JOIN_H
#define SEAM_XRAY_JOIN_H

#include <stdbool.h>
#include <stdint.h>

/* Called after some bytes were copied.  False: stop.  NULL: go on. */
struct seam_xray_join_step {
	bool (*goes_on)(void *context, uint64_t bytes);
	void *context;
};

/*
 * Copy the log of version 5 on @from, of @bytes, to the empty file @to, if a
 * thread has too many blocks.  Returns 1; 0 where none has, and @to is
 * untouched; -EBADMSG where a block is damaged, -ENODATA where the file is
 * shorter; -EINTR where @step, which may be NULL, returned false; or -errno.
 * After a failure @to is to be removed.
 *
 * Memory: 24 bytes a block and 280 a thread, and 256 KiB.  Time: that of a
 * copy, and a read of 64 bytes a block.
 */
int seam_xray_join(int from, uint64_t bytes, int to,
		   const struct seam_xray_join_step *step);

#endif /* SEAM_XRAY_JOIN_H */
