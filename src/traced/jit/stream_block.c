/* SPDX-License-Identifier: MIT */
/*
 * stream_block.c - blocks of memory without malloc
 *
 * The size of a small block is a multiple of 64 bytes, at most 16 KiB.  Each
 * size has a list of free blocks; new ones are cut from chunks.  Each larger
 * block is a mapping of its own.
 *
 * In a child that is forked in the middle, and after the death of a thread,
 * a block may be missing from the lists, but none is in use twice.
 */
#include "traced/jit/writer.h"

enum {
	CHUNK_BYTES = 256 * 1024,
	UNIT = 64,
	MAX_SMALL = UNIT * (SEAM_STREAM_N_SIZES - 1),
};

struct seam_stream_chunk {
	struct seam_stream_chunk *next;
	size_t used;		/* bytes, these included */
};

_Static_assert(UNIT % sizeof(struct seam_stream_chunk) == 0, "alignment");

/* @bytes of a chunk, which is a new one if need be. */
static void *cut(struct seam_stream_memory *m, size_t bytes)
{
	struct seam_stream_chunk *chunk = m->chunks;
	void *p;

	if (!chunk || bytes > CHUNK_BYTES - chunk->used) {
		chunk = seam_writer_map(CHUNK_BYTES);
		if (!chunk)
			return NULL;
		chunk->next = m->chunks;
		chunk->used = sizeof(*chunk);
		seam_writer_barrier();
		m->chunks = chunk;
	}
	p = (uint8_t *)chunk + chunk->used;
	chunk->used += bytes;
	return p;
}

static void *alloc_small(struct seam_stream_memory *m, size_t bytes)
{
	struct seam_stream_block *block = m->free[bytes / UNIT];

	if (!block)
		return cut(m, bytes);
	m->free[bytes / UNIT] = block->next;
	return block;
}

struct seam_stream_block *seam_stream_alloc(struct seam_stream_memory *m,
					    size_t size)
{
	size_t bytes = offsetof(struct seam_stream_block, bytes) + size;
	struct seam_stream_block *block;

	bytes = (bytes + UNIT - 1) & ~(size_t)(UNIT - 1);
	block = bytes > MAX_SMALL ? seam_writer_map(bytes) :
		alloc_small(m, bytes);
	if (!block)
		return NULL;
	/* It is no longer in a list when its members change. */
	seam_writer_barrier();
	*block = (struct seam_stream_block) {
		.size = (uint32_t)size, .cap = (uint32_t)bytes,
	};
	return block;
}

bool seam_stream_unmap(struct seam_stream_block *block)
{
	if (block->cap <= MAX_SMALL)
		return false;
	seam_writer_unmap(block, block->cap);
	return true;
}

void seam_stream_free(struct seam_stream_memory *m,
		      struct seam_stream_block *block)
{
	struct seam_stream_block **list;

	if (seam_stream_unmap(block))
		return;
	list = &m->free[block->cap / UNIT];
	block->next = *list;
	seam_writer_barrier();
	*list = block;
}

void seam_stream_memory_fini(struct seam_stream_memory *m)
{
	struct seam_stream_chunk *chunk = m->chunks, *next;

	*m = (struct seam_stream_memory) { 0 };
	for (; chunk; chunk = next) {
		next = chunk->next;
		seam_writer_unmap(chunk, CHUNK_BYTES);
	}
}
