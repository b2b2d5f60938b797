/* SPDX-License-Identifier: MIT */
/*
 * fuzz_cursor.c - the input is a program: each byte picks the next read
 *
 * Oracle: the invariant of cursor.h, plus the sanitizers.
 */
#include "fuzz.h"
#include "base/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_cursor c = seam_cursor_make(data, size, SEAM_LITTLE);

	while (!c.error && seam_cursor_left(&c) > 0) {
		size_t before = c.pos;

		switch (seam_cursor_u8(&c) % 9) {
		case 0: seam_cursor_u16(&c); break;
		case 1: seam_cursor_u32(&c); break;
		case 2: seam_cursor_u64(&c); break;
		case 3: seam_cursor_uleb128(&c); break;
		case 4: seam_cursor_sleb128(&c); break;
		case 5: seam_cursor_cstr(&c); break;
		case 6: seam_cursor_align(&c, 16); break;
		case 7:
			seam_cursor_count(&c, seam_cursor_uleb128(&c), 3);
			break;
		case 8: c = seam_cursor_split(&c, seam_cursor_u8(&c)); continue;
		}
		if (c.pos > c.size || c.pos < before || (c.error > 0))
			abort();
	}
	return 0;
}
