/* SPDX-License-Identifier: MIT */
/* elf_notes.c - see elf_notes.h */
#include "wire/elf_notes.h"

#include <elf.h>
#include <string.h>

#include "base/cursor.h"

size_t seam_build_id_in_notes(struct seam_bytes notes, uint8_t id[20])
{
	struct seam_cursor c = seam_cursor_over(notes, SEAM_NATIVE);

	while (!c.error && seam_cursor_left(&c) > 0) {
		uint32_t name_bytes = seam_cursor_u32(&c);
		uint32_t bytes = seam_cursor_u32(&c);
		uint32_t type = seam_cursor_u32(&c);
		const uint8_t *name = seam_cursor_bytes(&c, name_bytes);
		const uint8_t *value;

		seam_cursor_align(&c, 4);
		value = seam_cursor_bytes(&c, bytes);
		if (!c.error && type == NT_GNU_BUILD_ID && name_bytes == 4 &&
		    memcmp(name, "GNU", 4) == 0 && bytes > 0 && bytes <= 20) {
			memcpy(id, value, bytes);
			return bytes;
		}
		seam_cursor_align(&c, 4);
	}
	return 0;
}
