/* SPDX-License-Identifier: MIT */
/* module.c - copy and compare recorded modules; the contract is in module.h */
#include "symbol/elf/module.h"

#include <errno.h>
#include <string.h>

/* A copy of a build id, cut to the longest that is in use. */
static bool copy_id(struct seam_arena *arena, const uint8_t **to,
		    size_t *to_size, const uint8_t *id, size_t size)
{
	if (size > SEAM_BUILD_ID_MAX)
		size = SEAM_BUILD_ID_MAX;
	*to_size = id ? size : 0;
	*to = *to_size > 0 ? (const uint8_t *)seam_arena_text(arena,
			(const char *)id, size) : NULL;
	return *to_size == 0 || *to;
}

int seam_module_copy(struct seam_arena *arena, struct seam_module *to,
		     const struct seam_module *from)
{
	*to = *from;
	return seam_arena_copy(arena, &to->path, from->path) &&
	       seam_arena_copy(arena, &to->bundle, from->bundle) &&
	       copy_id(arena, &to->build_id, &to->build_id_size,
		       from->build_id, from->build_id_size) ? 0 : -ENOMEM;
}

int seam_kernel_copy(struct seam_arena *arena, struct seam_kernel *to,
		     const struct seam_kernel *from)
{
	*to = *from;
	return seam_arena_copy(arena, &to->boot_id, from->boot_id) &&
	       copy_id(arena, &to->build_id, &to->build_id_size,
		       from->build_id, from->build_id_size) ? 0 : -ENOMEM;
}

static bool equal_ids(const uint8_t *a, size_t a_size, const uint8_t *b,
		      size_t b_size)
{
	return a_size == b_size && (a_size == 0 || !memcmp(a, b, a_size));
}

bool seam_module_equal(const struct seam_module *a, const struct seam_module *b)
{
	return !strcmp(a->path, b->path) && a->evidence == b->evidence &&
	       a->content_id == b->content_id && a->ino == b->ino &&
	       a->ino_generation == b->ino_generation &&
	       equal_ids(a->build_id, a->build_id_size, b->build_id,
			 b->build_id_size);
}

bool seam_kernel_equal(const struct seam_kernel *a, const struct seam_kernel *b)
{
	return a->text_addr == b->text_addr &&
	       !strcmp(a->boot_id ? a->boot_id : "",
		       b->boot_id ? b->boot_id : "") &&
	       equal_ids(a->build_id, a->build_id ? a->build_id_size : 0,
			 b->build_id, b->build_id ? b->build_id_size : 0);
}
