/* SPDX-License-Identifier: MIT */
/*
 * fuzz_batch.c - any bytes as a batch file before it is packed
 *
 * The first two bytes are the size of the head; the rest of the bytes are head
 * and body, which are packed here, so that no checksum stops the fuzzer.
 *
 * Oracle: a batch that was read, written and read again is written as the same
 * bytes; all ids of strings are of the batch, all ranges are within its arrays;
 * and a head that is read alone is that of the file.
 */
#include "fuzz.h"
#include "wire/fleet/batch_file.h"

#include <zstd.h>

static size_t pack(uint8_t *to, size_t cap, const uint8_t *data, size_t size)
{
	size_t n = ZSTD_compress(to, cap, data, size, 1);

	must(!ZSTD_isError(n));
	return n;
}

static void check_ranges(const struct seam_batch *b)
{
	for (size_t i = 0; i < b->stacks.n; i++)
		must((size_t)b->stacks.items[i].first +
		     b->stacks.items[i].n <= b->frame_ids.n &&
		     b->stacks.items[i].n <= SEAM_BATCH_MAX_DEPTH);
	for (size_t i = 0; i < b->calls.n; i++)
		must((size_t)b->calls.items[i].first + b->calls.items[i].n <=
		     b->buckets.n && b->calls.items[i].origin < b->origins.n);
	for (size_t i = 0; i < b->origins.n; i++)
		must((size_t)b->origins.items[i].labels +
		     b->origins.items[i].n_labels <= b->labels.n);
	for (size_t i = 0; i < b->samples.n; i++)
		must(b->samples.items[i].origin < b->origins.n &&
		     b->samples.items[i].event < b->strings.texts.n + 1);
}

static void check_again(const struct seam_batch *b)
{
	struct seam_native_buffer one = { 0 }, two = { 0 };
	struct seam_batch again;

	/* a head may be too long to be written */
	if (seam_batch_file_write(b, &one, NULL) == 0) {
		must(seam_batch_file_read(&again, (struct seam_bytes) {
			one.bytes.items, one.bytes.n }, NULL) == 0);
		must(seam_batch_file_write(&again, &two, NULL) == 0);
		must(one.bytes.n == two.bytes.n &&
		     memcmp(one.bytes.items, two.bytes.items, one.bytes.n) ==
		     0);
		seam_batch_fini(&again);
	}
	free(one.bytes.items);
	free(two.bytes.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cap = 2 * ZSTD_compressBound(size), n_head, n;
	struct seam_batch_head head;
	struct seam_bytes file;
	struct seam_batch batch;
	uint8_t *packed;

	if (size < 2)
		return 0;
	n_head = (size_t)(data[0] | data[1] << 8);
	data += 2;
	size -= 2;
	n_head = n_head < size ? n_head : size;
	packed = malloc(cap);
	n = pack(packed, cap, data, n_head);
	n += pack(packed + n, cap - n, data + n_head, size - n_head);
	file = (struct seam_bytes) { packed, n };
	if (seam_batch_file_read(&batch, file, NULL) == 0) {
		must(seam_batch_file_is(file));
		must(seam_batch_head_read(&head, file, NULL) == 0);
		must(head.id.agent == batch.id.agent &&
		     head.rows[SEAM_TABLE_SAMPLES] == batch.samples.n);
		seam_batch_head_fini(&head);
		check_ranges(&batch);
		check_again(&batch);
	}
	seam_batch_fini(&batch);
	free(packed);
	return 0;
}
