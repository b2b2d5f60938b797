/* SPDX-License-Identifier: MIT */
/*
 * arena.h - memory that is freed all at once
 *
 * A loaded recording keeps its strings and small tables here: no free for
 * each, no ownership to track.  Blocks double from 1 KiB to 64 KiB: a recording
 * may have an arena for each of 100,000 files.  A request larger than a block
 * gets a block of its own.
 *
 * Threads: one arena belongs to one thread at a time.
 */
#pragma once

#include "base/base.h"

/* Zeroed is a valid, empty arena. */
struct seam_arena {
	struct seam_arena_block *blocks;	/* newest first */
	size_t used;				/* bytes of the newest */
	size_t total;				/* bytes of all blocks */
};

/*
 * @size bytes aligned to 16, zeroed, valid until seam_arena_fini().  NULL
 * when memory ran out.  Cost: a few instructions, a malloc per block.
 */
void *seam_arena_alloc(struct seam_arena *arena, size_t size);

/* A copy of @size bytes with a NUL after them.  NULL as above. */
char *seam_arena_text(struct seam_arena *arena, const char *text, size_t size);

/* *@to is a copy of @text, NULL for NULL.  False when memory ran out. */
bool seam_arena_copy(struct seam_arena *arena, const char **to,
		     const char *text);

/* Free everything.  Valid on a zeroed arena, and again after itself. */
void seam_arena_fini(struct seam_arena *arena);
