/* SPDX-License-Identifier: MIT */
/* arena.c - bump allocation from a chain of blocks; contract in arena.h */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory_limit.h"

#define ALIGN 16

enum { MIN_BLOCK = 1024, MAX_BLOCK = 64 * 1024 };

struct seam_arena_block {
	struct seam_arena_block *older;
	size_t size;			/* of bytes[] */
	_Alignas(ALIGN) uint8_t bytes[];
};

static int grow(struct seam_arena *arena, size_t size)
{
	struct seam_arena_block *block;
	size_t want = arena->total < MAX_BLOCK ? arena->total : MAX_BLOCK;

	if (want < MIN_BLOCK)
		want = MIN_BLOCK;
	if (want < size)
		want = size;
	if (want > SIZE_MAX - sizeof(*block))
		return -1;
	block = calloc(1, sizeof(*block) + want);
	if (!block) {
		seam_memory_refused();
		return -1;
	}
	block->size = want;
	block->older = arena->blocks;
	arena->blocks = block;
	arena->used = 0;
	arena->total += want;
	return 0;
}

void *seam_arena_alloc(struct seam_arena *arena, size_t size)
{
	void *p;

	if (size > SIZE_MAX - ALIGN)
		return NULL;
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!arena->blocks || size > arena->blocks->size - arena->used)
		if (grow(arena, size))
			return NULL;
	p = arena->blocks->bytes + arena->used;
	arena->used += size;
	return p;
}

char *seam_arena_text(struct seam_arena *arena, const char *text, size_t size)
{
	char *copy = size < SIZE_MAX ? seam_arena_alloc(arena, size + 1) : NULL;

	if (copy && size)
		memcpy(copy, text, size);
	return copy;
}

bool seam_arena_copy(struct seam_arena *arena, const char **to,
		     const char *text)
{
	*to = text ? seam_arena_text(arena, text, strlen(text)) : NULL;
	return !text || *to;
}

void seam_arena_fini(struct seam_arena *arena)
{
	struct seam_arena_block *block = arena->blocks;

	while (block) {
		struct seam_arena_block *older = block->older;

		free(block);
		block = older;
	}
	*arena = (struct seam_arena) { 0 };
}
