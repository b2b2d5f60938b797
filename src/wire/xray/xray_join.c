/* SPDX-License-Identifier: MIT */
/* xray_join.c - where blocks go, then one copy; see xray_join.h */
#include "wire/xray/xray_join.h"

#include <endian.h>
#include <errno.h>
#include <sys/mman.h>

#include "base/file.h"
#include "wire/xray/xray_fdr.h"
#include "wire/xray/xray_log_file.h"

enum {
	/* BufferExtents, NewBuffer, WallTime, Pid */
	HEAD_BYTES = 4 * SEAM_XRAY_METADATA_BYTES,
	/* what a block that is joined to another one leaves out */
	OWNER_BYTES = 3 * SEAM_XRAY_METADATA_BYTES,
	COPY_BYTES = 256 << 10,
	FIRST_TABLE_BYTES = 64 << 10,
};

/* ---- bytes of the file ---- */

static void put_64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t get_32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static uint64_t get_64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

static void put_extents(uint8_t at[SEAM_XRAY_METADATA_BYTES], uint64_t bytes)
{
	memset(at, 0, SEAM_XRAY_METADATA_BYTES);
	at[0] = SEAM_XRAY_EXTENTS;
	put_64(at + 1, bytes);
}

/* ---- blocks and their threads ---- */

struct join_block {
	uint64_t at, bytes;	/* of its preamble; extents */
	uint64_t thread;	/* index */
};

struct join_thread {
	uint64_t id;		/* pid and tid */
	uint64_t n_blocks;
	uint64_t n_copied;
	/* of each joined block, its extents, and where it goes on */
	uint64_t bytes[SEAM_XRAY_LOG_BLOCKS];
	uint64_t at[SEAM_XRAY_LOG_BLOCKS];
};

/* An array in memory of its own. */
struct join_table {
	void *items;
	size_t bytes;		/* mapped */
	size_t n;
};

struct join {
	int from, to;
	uint64_t end;
	struct join_table blocks, threads;
	struct join_table slots;	/* uint32_t: thread + 1, by hash */
	uint8_t *buffer;
	const struct seam_xray_join_step *step;
};

static int map_table(struct join_table *t, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	*t = (struct join_table) { .items = p, .bytes = bytes };
	return 0;
}

/* Room for one more item of @size bytes. */
static int reserve(struct join_table *t, size_t size)
{
	void *p;

	if (!t->items)
		return map_table(t, FIRST_TABLE_BYTES);
	if ((t->n + 1) * size <= t->bytes)
		return 0;
	p = mremap(t->items, t->bytes, 2 * t->bytes, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		return -ENOMEM;
	t->items = p;
	t->bytes *= 2;
	return 0;
}

static void unmap_table(struct join_table *t)
{
	if (t->items)
		munmap(t->items, t->bytes);
}

/* The slot of @id, or the empty one where it would be. */
static uint32_t *find_slot(const struct join *j, uint64_t id)
{
	const struct join_thread *threads = j->threads.items;
	size_t mask = j->slots.bytes / sizeof(uint32_t) - 1;
	/* Source: Knuth, TAOCP 3, 6.4: multiplicative hashing */
	size_t i = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
	uint32_t *slots = j->slots.items;

	while (slots[i] && threads[slots[i] - 1].id != id)
		i = (i + 1) & mask;
	return &slots[i];
}

/* Twice the slots, where half of them are taken. */
static int widen_slots(struct join *j)
{
	const struct join_thread *threads = j->threads.items;
	size_t bytes = j->slots.items ? 2 * j->slots.bytes : FIRST_TABLE_BYTES;
	struct join_table old = j->slots;

	if (old.items && 2 * j->threads.n < old.bytes / sizeof(uint32_t))
		return 0;
	if (map_table(&j->slots, bytes))
		return -ENOMEM;
	unmap_table(&old);
	for (uint32_t i = 0; i < j->threads.n; i++)
		*find_slot(j, threads[i].id) = i + 1;
	return 0;
}

static int find_thread(struct join *j, uint64_t id, uint64_t *index)
{
	struct join_thread *threads;
	uint32_t *slot;

	if (widen_slots(j) || reserve(&j->threads, sizeof(*threads)))
		return -ENOMEM;
	threads = j->threads.items;
	slot = find_slot(j, id);
	if (!*slot) {
		threads[j->threads.n] = (struct join_thread) { .id = id };
		*slot = (uint32_t)++j->threads.n;
	}
	*index = *slot - 1;
	return 0;
}

/* The block whose extents are at @at. */
static int read_block(struct join *j, uint64_t at, struct join_block *block)
{
	const uint8_t *extents, *buffer, *pid;
	uint8_t head[HEAD_BYTES];
	int r;

	if (j->end - at < HEAD_BYTES)
		return -EBADMSG;
	r = seam_file_read_at(j->from, head, sizeof(head), at);
	if (r)
		return r;
	extents = head;
	buffer = extents + SEAM_XRAY_METADATA_BYTES;
	pid = buffer + 2 * SEAM_XRAY_METADATA_BYTES;
	block->at = at + SEAM_XRAY_METADATA_BYTES;
	block->bytes = get_64(extents + 1);
	if (extents[0] != SEAM_XRAY_EXTENTS ||
	    buffer[0] != SEAM_XRAY_NEW_BUFFER || pid[0] != SEAM_XRAY_PID ||
	    block->bytes < OWNER_BYTES || block->bytes > j->end - block->at)
		return -EBADMSG;
	return find_thread(j, (uint64_t)get_32(pid + 1) << 32 |
			      get_32(buffer + 1), &block->thread);
}

static int read_blocks(struct join *j)
{
	uint64_t at = SEAM_XRAY_HEADER_BYTES;

	while (at < j->end) {
		struct join_thread *threads;
		struct join_block block;
		int r = read_block(j, at, &block);

		if (!r)
			r = reserve(&j->blocks, sizeof(block));
		if (r)
			return r;
		((struct join_block *)j->blocks.items)[j->blocks.n++] = block;
		threads = j->threads.items;
		threads[block.thread].n_blocks++;
		at = block.at + block.bytes;
	}
	return 0;
}

static bool is_scattered(const struct join *j)
{
	const struct join_thread *threads = j->threads.items;

	for (size_t i = 0; i < j->threads.n; i++)
		if (threads[i].n_blocks > SEAM_XRAY_LOG_BLOCKS)
			return true;
	return false;
}

/* Which of its thread's joined blocks the next block of @t goes to. */
static size_t group_of(const struct join_thread *t, bool *is_first)
{
	uint64_t n = (t->n_blocks + SEAM_XRAY_LOG_BLOCKS - 1) /
		     SEAM_XRAY_LOG_BLOCKS;

	*is_first = t->n_copied % n == 0;
	return (size_t)(t->n_copied / n);
}

/* Sizes of the joined blocks, and their places: a thread after the other. */
static void place(struct join *j)
{
	struct join_thread *threads = j->threads.items;
	const struct join_block *blocks = j->blocks.items;
	uint64_t at = SEAM_XRAY_HEADER_BYTES;

	for (size_t i = 0; i < j->blocks.n; i++) {
		struct join_thread *t = &threads[blocks[i].thread];
		bool is_first;
		size_t group = group_of(t, &is_first);

		t->bytes[group] += is_first ? blocks[i].bytes :
				   blocks[i].bytes - OWNER_BYTES;
		t->n_copied++;
	}
	for (size_t i = 0; i < j->threads.n; i++, threads++) {
		threads->n_copied = 0;
		for (size_t g = 0; g < SEAM_XRAY_LOG_BLOCKS; g++) {
			threads->at[g] = at;
			if (threads->bytes[g])
				at += SEAM_XRAY_METADATA_BYTES +
				      threads->bytes[g];
		}
	}
}

static int copy_bytes(struct join *j, uint64_t from, uint64_t to,
		      uint64_t bytes)
{
	while (bytes) {
		size_t n = bytes < COPY_BYTES ? (size_t)bytes : COPY_BYTES;
		int r = seam_file_read_at(j->from, j->buffer, n, from);

		if (!r)
			r = seam_file_write_at(j->to, j->buffer, n, to, "",
					       NULL);
		if (r)
			return r;
		if (j->step && !j->step->goes_on(j->step->context, n))
			return -EINTR;
		from += n;
		to += n;
		bytes -= n;
	}
	return 0;
}

/* The next block of @t; the first of a joined block brings its extents. */
static int copy_block(struct join *j, const struct join_block *block)
{
	struct join_thread *threads = j->threads.items;
	struct join_thread *t = &threads[block->thread];
	uint64_t skip = OWNER_BYTES;
	bool is_first;
	size_t group = group_of(t, &is_first);
	int r = 0;

	if (is_first) {
		uint8_t extents[SEAM_XRAY_METADATA_BYTES];

		put_extents(extents, t->bytes[group]);
		r = seam_file_write_at(j->to, extents, sizeof(extents),
				       t->at[group], "", NULL);
		t->at[group] += sizeof(extents);
		skip = 0;
	}
	if (!r)
		r = copy_bytes(j, block->at + skip, t->at[group],
			       block->bytes - skip);
	t->at[group] += block->bytes - skip;
	t->n_copied++;
	return r;
}

static int copy_blocks(struct join *j)
{
	const struct join_block *blocks = j->blocks.items;
	struct join_table buffer;
	int r = map_table(&buffer, COPY_BYTES);

	if (r)
		return r;
	j->buffer = buffer.items;
	r = copy_bytes(j, 0, 0, SEAM_XRAY_HEADER_BYTES);
	for (size_t i = 0; !r && i < j->blocks.n; i++)
		r = copy_block(j, &blocks[i]);
	unmap_table(&buffer);
	return r;
}

int seam_xray_join(int from, uint64_t bytes, int to,
		   const struct seam_xray_join_step *step)
{
	struct join j = {
		.from = from, .to = to, .end = bytes, .step = step,
	};
	int r = bytes < SEAM_XRAY_HEADER_BYTES ? -EBADMSG : read_blocks(&j);

	if (!r && is_scattered(&j)) {
		place(&j);
		r = copy_blocks(&j);
		r = r ? r : 1;
	}
	unmap_table(&j.blocks);
	unmap_table(&j.threads);
	unmap_table(&j.slots);
	return r;
}
