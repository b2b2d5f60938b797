/* SPDX-License-Identifier: MIT */
/*
 * fuzz_fde.c - any bytes as .eh_frame and as .eh_frame_hdr
 *
 * The first byte picks byte order and size of addresses.  Oracles: each entry
 * moves on by at least eight bytes and has a size; a second walk, in a copy of
 * the bytes that ends there, gives the same.
 */
#include <stdlib.h>

#include "symbol/fde.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct seam_fde_reader reader = { .addr = 0x10000 }, again;
	uint8_t *copy;
	struct seam_fde fde, same;
	uint64_t addr;
	size_t last = 0;

	if (size == 0)
		return 0;
	reader.bytes = (struct seam_bytes) { input + 1, size - 1 };
	reader.endian = input[0] & 1 ? SEAM_BIG : SEAM_LITTLE;
	reader.addr_bytes = input[0] & 2 ? 4 : 8;
	seam_fde_find(reader.bytes, reader.addr, reader.endian,
		      reader.addr_bytes, &addr);
	copy = malloc(size);
	check(copy != NULL);
	memcpy(copy, input + 1, size - 1);
	again = reader;
	again.bytes.data = copy;
	while (seam_fde_next(&reader, &fde)) {
		check(reader.pos >= last + 8 && reader.pos < size);
		check(fde.size > 0 && fde.start_addr + fde.size >= fde.size);
		check(seam_fde_next(&again, &same));
		check(same.start_addr == fde.start_addr &&
		      same.size == fde.size && again.pos == reader.pos);
		last = reader.pos;
	}
	check(reader.n_bad <= size / 4);
	free(copy);
	return 0;
}
