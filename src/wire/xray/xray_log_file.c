/* SPDX-License-Identifier: MIT */
/* xray_log_file.c - append to a block, or begin one; see xray_log_file.h */
#include "wire/xray/xray_log_file.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "base/pair_map.h"
#include "base/tsc.h"
#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_fdr.h"

_Static_assert(sizeof(struct seam_xray_header) == SEAM_XRAY_HEADER_BYTES,
	       "the header lies in memory as in the file");

enum {
	MICROSECONDS = 1000000,
	/* where the records before a body begin, and that of BufferExtents: 0 */
	BUFFER_AT = SEAM_XRAY_METADATA_BYTES,
	WALL_AT = 2 * SEAM_XRAY_METADATA_BYTES,
	PID_AT = 3 * SEAM_XRAY_METADATA_BYTES,
	HEAD_BYTES = 4 * SEAM_XRAY_METADATA_BYTES,
	/* what a block that is joined to another one leaves out */
	OWNER_BYTES = HEAD_BYTES - BUFFER_AT,
	COPY_BYTES = 256 << 10,
};

static int write_at(int fd, const void *data, size_t size, uint64_t at)
{
	return seam_file_write_at(fd, data, size, at, "", NULL);
}

int seam_xray_log_set_frequency(struct seam_xray_log *log, uint64_t hz)
{
	const struct seam_xray_header header = {
		.version = SEAM_XRAY_FDR_VERSION, .log_type = SEAM_XRAY_FDR,
		.flags = seam_tsc_flags(), .cycle_frequency = hz,
		.buffer_size = SEAM_XRAY_CHUNK_BYTES,
	};

	return write_at(log->fd, &header, sizeof(header), 0);
}

int seam_xray_log_begin(struct seam_xray_log *log, int fd, uint64_t hz)
{
	*log = (struct seam_xray_log) {
		.fd = fd, .bytes = SEAM_XRAY_HEADER_BYTES,
	};
	return seam_xray_log_set_frequency(log, hz);
}

/* ---- append ---- */

static int set_extents(const struct seam_xray_log *log, uint64_t end)
{
	uint64_t extents = end - log->block_at - SEAM_XRAY_METADATA_BYTES;

	return write_at(log->fd, &extents, sizeof(extents), log->block_at + 1);
}

static bool has_room(const struct seam_xray_log *log)
{
	uint64_t bytes = log->bytes - log->block_at;

	return bytes < SEAM_XRAY_LOG_MIN_BLOCK || bytes < log->block_at;
}

static int begin_block(struct seam_xray_log *log,
		       const struct seam_xray_log_thread *thread, size_t size)
{
	uint8_t head[HEAD_BYTES] = {
		[0] = SEAM_XRAY_EXTENTS, [BUFFER_AT] = SEAM_XRAY_NEW_BUFFER,
		[WALL_AT] = SEAM_XRAY_WALL_TIME, [PID_AT] = SEAM_XRAY_PID,
	};
	const uint64_t extents = OWNER_BYTES + size;
	const int64_t seconds = (int64_t)(thread->wall_us / MICROSECONDS);
	const int32_t rest = (int32_t)(thread->wall_us % MICROSECONDS);
	int r;

	memcpy(head + 1, &extents, sizeof(extents));
	memcpy(head + BUFFER_AT + 1, &thread->tid, sizeof(thread->tid));
	memcpy(head + WALL_AT + 1, &seconds, sizeof(seconds));
	memcpy(head + WALL_AT + 1 + sizeof(seconds), &rest, sizeof(rest));
	memcpy(head + PID_AT + 1, &thread->pid, sizeof(thread->pid));
	r = write_at(log->fd, head, sizeof(head), log->bytes);
	if (r < 0)
		return r;
	log->block_at = log->bytes;
	log->bytes += sizeof(head);
	log->tid = thread->tid;
	log->n_blocks++;
	return 0;
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
		r = write_at(log->fd, body, size, log->bytes);
	if (r == 0) {
		log->bytes += size;
		return 0;
	}
	*log = old;
	/* extents that are too long cost a reader a line, and no record */
	if (log->block_at)
		(void)set_extents(log, log->bytes);
	return ftruncate(log->fd, (off_t)log->bytes) < 0 ? -errno : r;
}

/* ---- join ---- */

struct log_block {
	uint64_t at, bytes;	/* of its preamble; extents */
	uint32_t thread;	/* in the order in which threads appear */
};

struct join {
	const struct seam_xray_log *log;
	SEAM_ARRAY(struct log_block) blocks;
	struct seam_pair_map threads;	/* of pid and tid, to the number */
	int to;
	uint64_t to_bytes;
	uint8_t *buffer;
	bool (*goes_on)(void *context, uint64_t bytes);
	void *context;
};

/* The block whose extents are at @at. */
static int read_block(struct join *j, uint64_t at)
{
	struct log_block block = { .at = at + BUFFER_AT };
	uint64_t left = j->log->bytes - at;
	uint8_t head[HEAD_BYTES];
	uint32_t pid, tid, *known;
	int r = left < HEAD_BYTES ? -EBADMSG :
		seam_file_read_at(j->log->fd, head, sizeof(head), at);

	if (r)
		return r;
	memcpy(&block.bytes, head + 1, sizeof(block.bytes));
	memcpy(&tid, head + BUFFER_AT + 1, sizeof(tid));
	memcpy(&pid, head + PID_AT + 1, sizeof(pid));
	if (head[0] != SEAM_XRAY_EXTENTS ||
	    head[BUFFER_AT] != SEAM_XRAY_NEW_BUFFER ||
	    head[PID_AT] != SEAM_XRAY_PID || block.bytes < OWNER_BYTES ||
	    block.bytes > left - BUFFER_AT)
		return -EBADMSG;
	known = seam_pair_map_find(&j->threads, pid, tid);
	block.thread = known ? *known : (uint32_t)j->threads.slots.n;
	if (!known && seam_pair_map_put(&j->threads, pid, tid, block.thread))
		return -ENOMEM;
	return SEAM_ARRAY_ADD(&j->blocks, block) ? 0 : -ENOMEM;
}

static int by_thread(const void *a, const void *b)
{
	const struct log_block *x = a, *y = b;

	return SEAM_COMPARE(x->thread, y->thread) ?: SEAM_COMPARE(x->at, y->at);
}

/* How many blocks of one thread are at the start of [@block, @end). */
static size_t count_thread(const struct log_block *block,
			   const struct log_block *end)
{
	size_t n = 1;

	while (block + n < end && block[n].thread == block->thread)
		n++;
	return n;
}

/* Append the bytes [@from, @from + @bytes) of the log to the other one. */
static int copy_bytes(struct join *j, uint64_t from, uint64_t bytes)
{
	while (bytes) {
		size_t n = bytes < COPY_BYTES ? (size_t)bytes : COPY_BYTES;
		int r = seam_file_read_at(j->log->fd, j->buffer, n, from) ?:
			write_at(j->to, j->buffer, n, j->to_bytes);

		if (r)
			return r;
		if (j->goes_on && !j->goes_on(j->context, n))
			return -EINTR;
		from += n;
		j->to_bytes += n;
		bytes -= n;
	}
	return 0;
}

/* Copy @n blocks of a thread as one. */
static int copy_joined(struct join *j, const struct log_block *blocks, size_t n)
{
	uint8_t extents[SEAM_XRAY_METADATA_BYTES] = { SEAM_XRAY_EXTENTS };
	uint64_t bytes = OWNER_BYTES;
	int r;

	for (size_t i = 0; i < n; i++)
		bytes += blocks[i].bytes - OWNER_BYTES;
	memcpy(extents + 1, &bytes, sizeof(bytes));
	r = write_at(j->to, extents, sizeof(extents), j->to_bytes);
	j->to_bytes += sizeof(extents);
	for (size_t i = 0; !r && i < n; i++) {
		uint64_t skip = i ? OWNER_BYTES : 0;

		r = copy_bytes(j, blocks[i].at + skip, blocks[i].bytes - skip);
	}
	return r;
}

/* Each thread's blocks in SEAM_XRAY_LOG_BLOCKS groups, or fewer. */
static int copy_blocks(struct join *j)
{
	const struct log_block *block = j->blocks.items;
	const struct log_block *end = block + j->blocks.n;
	int r;

	j->buffer = malloc(COPY_BYTES);
	if (!j->buffer)
		return -ENOMEM;
	r = copy_bytes(j, 0, SEAM_XRAY_HEADER_BYTES);
	while (!r && block < end) {
		size_t left = count_thread(block, end), n;
		size_t most = (left + SEAM_XRAY_LOG_BLOCKS - 1) /
			      SEAM_XRAY_LOG_BLOCKS;

		for (; !r && left; left -= n, block += n) {
			n = left < most ? left : most;
			r = copy_joined(j, block, n);
		}
	}
	free(j->buffer);
	return r;
}

static bool has_many_blocks(const struct join *j)
{
	const struct log_block *blocks = j->blocks.items;

	for (size_t i = SEAM_XRAY_LOG_BLOCKS; i < j->blocks.n; i++)
		if (blocks[i].thread == blocks[i - SEAM_XRAY_LOG_BLOCKS].thread)
			return true;
	return false;
}

int seam_xray_log_join(const struct seam_xray_log *log, int to,
		       bool (*goes_on)(void *context, uint64_t bytes),
		       void *context)
{
	struct join j = {
		.log = log, .to = to, .goes_on = goes_on, .context = context,
	};
	int r = log->bytes < SEAM_XRAY_HEADER_BYTES ? -EBADMSG : 0;

	for (uint64_t at = SEAM_XRAY_HEADER_BYTES; !r && at < log->bytes;) {
		r = read_block(&j, at);
		if (!r)
			at = j.blocks.items[j.blocks.n - 1].at +
			     j.blocks.items[j.blocks.n - 1].bytes;
	}
	SEAM_ARRAY_SORT(&j.blocks, by_thread);
	if (!r && has_many_blocks(&j))
		r = copy_blocks(&j) ?: 1;
	free(j.blocks.items);
	seam_pair_map_fini(&j.threads);
	return r;
}
