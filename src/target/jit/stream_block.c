/* SPDX-License-Identifier: MIT */
/*
 * stream_block.c - blocks of memory without malloc
 *
 * Small blocks have one of 29 sizes, 128 bytes to 16 KiB in quarters of a
 * power of two.  Each size has a list of free blocks; new ones are cut from
 * chunks.  Each larger block is a mapping of its own.
 *
 * In a child that is forked in the middle, and after the death of a thread,
 * a block may be missing from the lists, but none is in use twice.
 */
#include "target/jit/writer.h"

enum {
	CHUNK_BYTES = 256 * 1024,
	LEAST_BITS = 7,
	LEAST_BYTES = 1 << LEAST_BITS,
	MOST_BYTES = 16 * 1024,
};

struct seam_stream_chunk {
	struct seam_stream_chunk *next;
	size_t used;		/* bytes, these included */
};

_Static_assert(sizeof(struct seam_stream_chunk) % 16 == 0, "alignment");

/* The least class that has @bytes, which are at most MOST_BYTES. */
static size_t class_of(size_t bytes)
{
	int bits = 63 - __builtin_clzll(bytes - 1);

	if (bytes <= LEAST_BYTES)
		return 0;
	return (size_t)(bits - LEAST_BITS) * 4 +
	       ((bytes - 1) >> (bits - 2)) - 4 + 1;
}

static size_t class_bytes(size_t class)
{
	size_t quarters = (class + 3) % 4 + 5;

	return class ? quarters << ((class - 1) / 4 + LEAST_BITS - 2) :
	       LEAST_BYTES;
}

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

static void *alloc_small(struct seam_stream_memory *m, size_t class)
{
	struct seam_stream_block *block = m->free[class];

	if (!block)
		return cut(m, class_bytes(class));
	m->free[class] = block->next;
	return block;
}

struct seam_stream_block *seam_stream_alloc(struct seam_stream_memory *m,
					    size_t size)
{
	size_t bytes = offsetof(struct seam_stream_block, bytes) + size;
	struct seam_stream_block *block;

	if (bytes > MOST_BYTES) {
		block = seam_writer_map(bytes);
	} else {
		block = alloc_small(m, class_of(bytes));
		bytes = class_bytes(class_of(bytes));
	}
	if (!block)
		return NULL;
	/* It is no longer in a list when its members change. */
	seam_writer_barrier();
	*block = (struct seam_stream_block) {
		.size = (uint32_t)size, .cap = (uint32_t)bytes,
	};
	return block;
}

void seam_stream_free(struct seam_stream_memory *m,
		      struct seam_stream_block *block)
{
	struct seam_stream_block **list;

	if (block->cap > MOST_BYTES) {
		seam_writer_unmap(block, block->cap);
		return;
	}
	list = &m->free[class_of(block->cap)];
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
