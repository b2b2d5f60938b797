/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ring.c - the input is a hostile producer
 *
 * Each step sets the head, from the input, over data that are the input's
 * too; then everything is taken.  Oracle: a slow reference that copies the
 * ring byte by byte and walks the copy must see the same records, and the
 * tail must be where the head was, or where a resync put it.
 */
#include "ring/consumer.h"

#include <stdlib.h>

enum { PAGE = 4096, BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte of every record is read, for AddressSanitizer to see. */
static volatile uint8_t touched;

/* Records in the @n bytes from @tail on, one byte at a time. */
static size_t count_slowly(const uint8_t *ring, uint64_t tail, uint64_t n)
{
	static uint8_t copy[BYTES];
	size_t pos = 0, records = 0;

	for (uint64_t i = 0; i < n; i++)
		copy[i] = ring[(tail + i) % BYTES];
	while (pos + 8 <= n) {
		size_t length = copy[pos + 6] | (size_t)copy[pos + 7] << 8;

		if (length < 8 || length % 8 || pos + length > n)
			break;
		pos += length;
		records++;
	}
	return records;
}

static size_t take(struct seam_ring *ring)
{
	static uint8_t scratch[65536];
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t pos = 0, records = 0;

	seam_ring_peek(ring, &span);
	for (; seam_ring_record(&span, pos, &header); records++) {
		const uint8_t *p = seam_ring_bytes(&span, pos, header.size,
						   scratch);

		for (size_t i = 0; i < header.size; i++)
			touched = p[i];
		pos += header.size;
	}
	seam_ring_advance(ring, &span);
	return records;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *memory = aligned_alloc(PAGE, PAGE + BYTES);
	struct seam_ring_control *control = (void *)memory;
	struct seam_ring ring;

	memset(memory, 0, PAGE + BYTES);
	seam_ring_attach(&ring, memory, PAGE, BYTES);
	while (size >= 10) {
		uint64_t tail = ring.tail, n_resyncs = ring.n_resyncs;
		uint64_t step, head;
		size_t n = data[8] * 8u, expected;

		memcpy(&step, data, sizeof(step));
		head = data[9] & 1 ? step : tail + step % (BYTES + 64);
		data += 10;
		size -= 10;
		n = n < size ? n : size;
		for (size_t i = 0; i < n; i++)
			memory[PAGE + (tail + i) % BYTES] = data[i];
		data += n;
		size -= n;
		atomic_store(&control->data_head, head);
		expected = head - tail <= BYTES && (head - tail) % 8 == 0 ?
			   count_slowly(memory + PAGE, tail, head - tail) : 0;
		if (take(&ring) != expected)
			abort();
		if (ring.tail != head &&
		    (ring.n_resyncs == n_resyncs || head - ring.tail >= 8))
			abort();
		if (atomic_load(&control->data_tail) != ring.tail)
			abort();
	}
	free(memory);
	return 0;
}
