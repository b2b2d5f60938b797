/* SPDX-License-Identifier: MIT */
/*
 * fuzz_gopclntab.c - any bytes as a Go program's table of functions
 *
 * Oracles: there are no more functions than bytes, each has an extent, and
 * its name lies in the table.
 */

#include "fuzz.h"
#include "symbol/elf/function_ranges.c"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct seam_gopclntab table;
	struct go_function f;

	if (size == 0 || !open_table(&table, (struct seam_bytes) {
			input + 1, size - 1 },
			input[0] & 1 ? SEAM_BIG : SEAM_LITTLE))
		return 0;
	if (table.n > size)
		abort();
	for (size_t i = 0; i < table.n; i++) {
		const uint8_t *name;

		if (!read_function(&table, i, &f))
			continue;
		name = (const uint8_t *)f.name;
		if (f.start_addr >= f.end_addr || name <= input ||
		    name + strlen(f.name) >= input + size)
			abort();
	}
	return 0;
}
