/* SPDX-License-Identifier: MIT */
/*
 * memory.c - blocks of records and the table of all code, without malloc
 *
 * The size of a small block is a multiple of 64 bytes, at most 16 KiB.  Each
 * size has a list of free blocks; new ones are cut from chunks, which are not
 * given back before the end.  Each larger block is a mapping of its own.
 *
 * In a child that is forked in the middle a block may be missing from the
 * lists, but none is in use twice.
 */
#include <string.h>

#include "traced/jit/writer.h"

enum {
	CHUNK_BYTES = 256 * 1024,
	UNIT = 64,
	MAX_SMALL = UNIT * (SEAM_WRITER_N_SIZES - 1),
};

struct seam_writer_chunk {
	struct seam_writer_chunk *next;
	size_t used;		/* bytes, these included */
};

_Static_assert(UNIT % sizeof(struct seam_writer_chunk) == 0, "alignment");

/* ---- blocks ---- */

/* @bytes of a chunk, which is a new one if need be. */
static void *cut(struct seam_writer_memory *m, size_t bytes)
{
	struct seam_writer_chunk *chunk = m->chunks;
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

struct seam_writer_block *seam_writer_alloc(struct seam_writer_memory *m,
					    size_t size)
{
	size_t bytes = offsetof(struct seam_writer_block, bytes) + size;
	struct seam_writer_block *block;

	bytes = (bytes + UNIT - 1) & ~(size_t)(UNIT - 1);
	if (bytes > MAX_SMALL) {
		block = seam_writer_map(bytes);
	} else if (m->free[bytes / UNIT]) {
		block = m->free[bytes / UNIT];
		m->free[bytes / UNIT] = block->next;
	} else {
		block = cut(m, bytes);
	}
	if (!block)
		return NULL;
	/* It is no longer in a list when its members change. */
	seam_writer_barrier();
	*block = (struct seam_writer_block) { .cap = (uint32_t)bytes };
	return block;
}

/* Unmap @block if it is a mapping of its own. */
static bool unmap_large(struct seam_writer_block *block)
{
	if (block->cap <= MAX_SMALL)
		return false;
	seam_writer_unmap(block, block->cap);
	return true;
}

void seam_writer_free(struct seam_writer_memory *m,
		      struct seam_writer_block *block)
{
	struct seam_writer_block **list;

	if (unmap_large(block))
		return;
	list = &m->free[block->cap / UNIT];
	block->next = *list;
	seam_writer_barrier();
	*list = block;
}

void seam_writer_free_blocks(struct seam_jitdump *dump)
{
	struct seam_writer_chunk *chunk = dump->memory.chunks, *next;
	struct seam_writer_own *own = dump->own;

	for (struct seam_writer_block *block; (block = own->head); ) {
		own->head = block->next;
		if (!block->id)
			unmap_large(block);
	}
	for (size_t i = 0; i < dump->entries.n; i++) {
		struct seam_writer_block *block = dump->entries.items[i].block;

		dump->entries.items[i].block = NULL;
		seam_writer_barrier();
		if (block)
			unmap_large(block);
	}
	own->n_queued = 0;
	dump->memory = (struct seam_writer_memory) { 0 };
	for (; chunk; chunk = next) {
		next = chunk->next;
		seam_writer_unmap(chunk, CHUNK_BYTES);
	}
}

/* ---- the table ---- */

static bool grow(struct seam_writer_entries *entries)
{
	size_t size = entries->cap * sizeof(*entries->items);
	size_t cap = entries->cap ? 2 * entries->cap : 1024;
	struct seam_writer_entry *old = entries->items;
	struct seam_writer_entry *items =
		seam_writer_map(cap * sizeof(*items));

	if (!items)
		return false;
	if (old)
		memcpy(items, old, size);
	seam_writer_barrier();
	entries->items = items;
	seam_writer_barrier();
	entries->cap = cap;
	seam_writer_unmap(old, size);
	return true;
}

uint64_t seam_writer_add_entry(struct seam_writer_entries *entries,
			       uint64_t addr, uint64_t code_size)
{
	if (entries->n == entries->cap && !grow(entries))
		return 0;
	entries->items[entries->n] = (struct seam_writer_entry) {
		.addr = addr, .code_size = code_size, .is_loaded = true,
	};
	seam_writer_barrier();
	return ++entries->n;
}
