/* SPDX-License-Identifier: MIT */
/*
 * fuzz_xray_chunk.c - any bytes as a chunk of calls, and as an announcement
 *
 * Oracle: a block's body that was made of a chunk is read to its end by the
 * tables of the format, with as many calls and events as were counted, and
 * written again as a chunk it is the same bytes; each function in it was
 * noted.  An announcement written again is the same bytes.
 */

#include "fuzz.h"
#include "chunk_made.h"
#include "wire/xray/xray_functions.h"

static void check_chunk(const uint8_t *data, size_t size)
{
	static uint64_t bits[16];
	struct seam_xray_seen seen = { .bits = bits, .n = 1024 };
	uint8_t *out = malloc(size + !size);
	struct seam_xray_chunk found;
	static struct chunk again;
	uint32_t max = 0;

	must(out);
	memset(bits, 0, sizeof(bits));
	seam_xray_chunk_read(data, size, out, &seen, &found);
	must(found.n_bytes + found.bad_bytes <= size);
	if (found.n_bytes) {
		must(chunk_of_body(&again, data, out, found.n_bytes));
		must(again.n_records == found.n_records);
		must(again.n + found.bad_bytes <= size);
		must(memcmp(again.bytes, data, again.n) == 0);
	}
	for (uint32_t i = 0; i < seen.n; i++)
		max = seam_xray_has_seen(&seen, i) ? i : max;
	must(seen.max >= seen.n || seen.max == max);
	free(out);
}

static void check_announcement(const uint8_t *data, size_t size)
{
	static uint8_t again[SEAM_XRAY_MAX_ANNOUNCEMENT];
	uint8_t *copy = malloc(size + !size);	/* aligned */
	struct seam_xray_announcement a;

	must(copy);
	if (size)
		memcpy(copy, data, size);
	if (seam_xray_read_announcement((struct seam_bytes) { copy, size },
					&a) == 0)
		must(seam_xray_write_announcement(again, sizeof(again), &a) ==
		     size && memcmp(again, data, size) == 0);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > SEAM_XRAY_CHUNK_BYTES)
		return 0;
	check_chunk(data, size);
	check_announcement(data, size);
	return 0;
}
