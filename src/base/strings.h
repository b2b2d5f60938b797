/* SPDX-License-Identifier: MIT */
/*
 * strings.h - each distinct string once, with a 32-bit id
 *
 * Id 0 is the empty string.  Ids are dense and never change.  The text of an
 * id is NUL-terminated and stays where it is until seam_strings_fini(); a
 * string from outside that holds a NUL is cut there.
 *
 * Threads: one table belongs to one thread at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/array.h"
#include "base/index.h"

/* Zeroed is valid and empty. */
struct seam_strings {
	struct seam_arena arena;
	struct seam_index index;
	SEAM_ARRAY(const char *) texts;
};

/* The id of @size bytes at @text, or SEAM_NONE when memory ran out. */
uint32_t seam_strings_add(struct seam_strings *strings, const char *text,
			  size_t size);

/* The same for a NUL-terminated string; NULL is the empty one. */
uint32_t seam_strings_put(struct seam_strings *strings, const char *text);

/* The id of a string if it is there already, else SEAM_NONE. */
uint32_t seam_strings_find(const struct seam_strings *strings,
			   const char *text);

/* The text of @id; "" for SEAM_NONE and for ids that were never given. */
const char *seam_strings_get(const struct seam_strings *strings, uint32_t id);

void seam_strings_fini(struct seam_strings *strings);
