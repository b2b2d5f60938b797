/* SPDX-License-Identifier: MIT */
/* elf_notes.c - see elf_notes.h */
#include "wire/elf_notes.h"

#include <elf.h>
#include <string.h>

#include "base/cursor.h"

enum { NT_GO_BUILD_ID = 4 };

/* The value of the first note of @name and @type; not longer than @max. */
static struct seam_bytes find(struct seam_bytes notes, const char name[4],
			      uint32_t type, uint32_t max)
{
	struct seam_cursor c = seam_cursor_over(notes, SEAM_NATIVE);

	while (!c.error && seam_cursor_left(&c) > 0) {
		uint32_t name_bytes = seam_cursor_u32(&c);
		uint32_t bytes = seam_cursor_u32(&c);
		uint32_t its_type = seam_cursor_u32(&c);
		const uint8_t *its_name = seam_cursor_bytes(&c, name_bytes);
		const uint8_t *value;

		seam_cursor_align(&c, 4);
		value = seam_cursor_bytes(&c, bytes);
		if (!c.error && its_type == type && name_bytes == 4 &&
		    memcmp(its_name, name, 4) == 0 && bytes > 0 &&
		    bytes <= max)
			return (struct seam_bytes) { value, bytes };
		seam_cursor_align(&c, 4);
	}
	return (struct seam_bytes) { 0 };
}

size_t seam_build_id_in_notes(struct seam_bytes notes, uint8_t id[20])
{
	struct seam_bytes found = find(notes, "GNU", NT_GNU_BUILD_ID, 20);

	if (found.size)
		memcpy(id, found.data, found.size);
	return found.size;
}

struct seam_bytes seam_go_id_in_notes(struct seam_bytes notes)
{
	return find(notes, "Go\0", NT_GO_BUILD_ID, UINT32_MAX);
}
