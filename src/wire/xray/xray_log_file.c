/* SPDX-License-Identifier: MIT */
/* xray_log_file.c - append to a block, or begin one; see xray_log_file.h */
#include "wire/xray/xray_log_file.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/tsc.h"
#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_fdr.h"

_Static_assert(sizeof(struct seam_xray_header) == SEAM_XRAY_HEADER_BYTES,
	       "the header lies in memory as in the file");

enum { MICROSECONDS = 1000000 };

static int write_at(const struct seam_xray_log *log, const void *data,
		    size_t size, uint64_t at)
{
	const uint8_t *from = data;

	while (size > 0) {
		/* pwrite() is where a thread may be cancelled */
		ssize_t n = syscall(SYS_pwrite64, log->fd, from, size, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		at += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

struct seam_xray_header seam_xray_log_header(uint64_t hz)
{
	return (struct seam_xray_header) {
		.version = SEAM_XRAY_FDR_VERSION, .log_type = SEAM_XRAY_FDR,
		.flags = seam_tsc_flags(), .cycle_frequency = hz,
		.buffer_size = SEAM_XRAY_CHUNK_BYTES,
	};
}

int seam_xray_log_set_header(struct seam_xray_log *log,
			     const struct seam_xray_header *header)
{
	return write_at(log, header, sizeof(*header), 0);
}

int seam_xray_log_begin(struct seam_xray_log *log, int fd,
			const struct seam_xray_header *header)
{
	*log = (struct seam_xray_log) { .fd = fd };
	log->bytes = sizeof(*header);
	return seam_xray_log_set_header(log, header);
}

/* ---- blocks ---- */

/* One metadata record; @to is zeroed.  Returns where its fields begin. */
static uint8_t *put_first(uint8_t *to, enum seam_xray_first_byte first)
{
	to[0] = (uint8_t)first;
	return to + 1;
}

static void make_head(uint8_t head[SEAM_XRAY_LOG_HEAD_BYTES],
		      const struct seam_xray_log_thread *thread,
		      uint64_t extents)
{
	int64_t seconds = (int64_t)(thread->wall_us / MICROSECONDS);
	int32_t microseconds = (int32_t)(thread->wall_us % MICROSECONDS);
	uint8_t *field;

	memset(head, 0, SEAM_XRAY_LOG_HEAD_BYTES);
	field = put_first(head, SEAM_XRAY_EXTENTS);
	memcpy(field, &extents, sizeof(extents));
	field = put_first(head + SEAM_XRAY_METADATA_BYTES,
			  SEAM_XRAY_NEW_BUFFER);
	memcpy(field, &thread->tid, sizeof(thread->tid));
	field = put_first(head + 2 * SEAM_XRAY_METADATA_BYTES,
			  SEAM_XRAY_WALL_TIME);
	memcpy(field, &seconds, sizeof(seconds));
	memcpy(field + sizeof(seconds), &microseconds, sizeof(microseconds));
	field = put_first(head + 3 * SEAM_XRAY_METADATA_BYTES, SEAM_XRAY_PID);
	memcpy(field, &thread->pid, sizeof(thread->pid));
}

static int set_extents(const struct seam_xray_log *log, uint64_t end)
{
	uint64_t extents = end - log->block_at - SEAM_XRAY_METADATA_BYTES;

	return write_at(log, &extents, sizeof(extents), log->block_at + 1);
}

static bool has_room(const struct seam_xray_log *log)
{
	uint64_t bytes = log->bytes - log->block_at;

	return bytes < SEAM_XRAY_LOG_MIN_BLOCK || bytes < log->block_at;
}

static int begin_block(struct seam_xray_log *log,
		       const struct seam_xray_log_thread *thread, size_t size)
{
	uint8_t head[SEAM_XRAY_LOG_HEAD_BYTES];
	int r;

	make_head(head, thread, sizeof(head) - SEAM_XRAY_METADATA_BYTES + size);
	r = write_at(log, head, sizeof(head), log->bytes);
	if (r < 0)
		return r;
	log->block_at = log->bytes;
	log->bytes += sizeof(head);
	log->tid = thread->tid;
	log->n_blocks++;
	return 0;
}

/* The log ends where it ended before the failure @error. */
static int restore(struct seam_xray_log *log, const struct seam_xray_log *old,
		   int error)
{
	*log = *old;
	/* extents that are too long cost a reader a line, and no record */
	if (log->block_at)
		(void)set_extents(log, log->bytes);
	return ftruncate(log->fd, (off_t)log->bytes) < 0 ? -errno : error;
}

int seam_xray_log_append(struct seam_xray_log *log,
			 const struct seam_xray_log_thread *thread,
			 const uint8_t *body, size_t size)
{
	const struct seam_xray_log old = *log;
	int r;

	if (log->block_at && log->tid == thread->tid && has_room(log))
		r = set_extents(log, log->bytes + size);
	else
		r = begin_block(log, thread, size);
	if (r == 0)
		r = write_at(log, body, size, log->bytes);
	if (r < 0)
		return restore(log, &old, r);
	log->bytes += size;
	return 0;
}
