/* SPDX-License-Identifier: MIT */
/* strings.c - an arena, an array of texts and an index over it */
#include "base/strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static uint32_t find(const struct seam_strings *strings, uint64_t hash,
		     const char *text, size_t size)
{
	return SEAM_INDEX_FIND(&strings->index, hash, id,
		strncmp(strings->texts.items[id], text, size) == 0 &&
		strings->texts.items[id][size] == '\0');
}

static uint32_t add(struct seam_strings *strings, const char *text, size_t size)
{
	uint64_t hash = seam_hash_bytes(text, size, 0);
	uint32_t id = find(strings, hash, text, size);
	const char *copy;

	if (id != SEAM_NONE)
		return id;
	copy = seam_arena_text(&strings->arena, text, size);
	return copy ? SEAM_INDEX_APPEND(&strings->index, hash, &strings->texts,
					copy) : SEAM_NONE;
}

uint32_t seam_strings_add(struct seam_strings *strings, const char *text,
			  size_t size)
{
	const char *nul = size ? memchr(text, '\0', size) : NULL;

	if (strings->texts.n == 0 && add(strings, "", 0) == SEAM_NONE)
		return SEAM_NONE;
	return add(strings, text, nul ? (size_t)(nul - text) : size);
}

uint32_t seam_strings_put(struct seam_strings *strings, const char *text)
{
	return seam_strings_add(strings, text ? text : "",
				text ? strlen(text) : 0);
}

uint32_t seam_strings_find(const struct seam_strings *strings, const char *text)
{
	size_t size = strlen(text);

	return find(strings, seam_hash_bytes(text, size, 0), text, size);
}

const char *seam_strings_get(const struct seam_strings *strings, uint32_t id)
{
	return id < strings->texts.n ? strings->texts.items[id] : "";
}

void seam_strings_fini(struct seam_strings *strings)
{
	seam_arena_fini(&strings->arena);
	seam_index_fini(&strings->index);
	free(strings->texts.items);
	*strings = (struct seam_strings) { 0 };
}
