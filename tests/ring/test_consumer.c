/* SPDX-License-Identifier: MIT */
/* test_consumer.c - the promises of ring/consumer.h, on rings of our own */
#include "ring/consumer.h"

#include "unit.h"

enum { PAGE = 4096, BYTES = 4096 };

static struct fake {
	uint8_t *memory;
	struct seam_ring_control *control;
	uint8_t *data;
	struct seam_ring ring;
} f;

static int close_fake(void **state)
{
	seam_ring_fini(&f.ring);
	free(f.memory);
	f.memory = NULL;
	return 0;
}

/* A ring whose positions begin at @start. */
static void open_fake(uint64_t start)
{
	close_fake(NULL);
	f.memory = aligned_alloc(PAGE, PAGE + BYTES);
	assert_non_null(f.memory);
	memset(f.memory, 0, PAGE + BYTES);
	f.control = (void *)f.memory;
	f.data = f.memory + PAGE;
	atomic_store(&f.control->data_head, start);
	atomic_store(&f.control->data_tail, start);
	seam_ring_attach(&f.ring, f.memory, PAGE, BYTES);
}

/* What a producer does, without a look at the tail. */
static void put(uint32_t type, uint16_t size)
{
	uint64_t head = atomic_load(&f.control->data_head);
	struct seam_ring_header header = { .type = type, .size = size };

	for (uint64_t i = 0; i < size; i++)
		f.data[(head + i) % BYTES] = i < sizeof(header) ?
			((const uint8_t *)&header)[i] : (uint8_t)(type + i);
	atomic_store(&f.control->data_head, head + size);
}

/* Take all records; their number. */
static size_t take(void)
{
	struct seam_ring_header header;
	struct seam_ring_span span;
	size_t n = 0, pos = 0;

	seam_ring_peek(&f.ring, &span);
	for (; seam_ring_record(&span, pos, &header); n++)
		pos += header.size;
	seam_ring_advance(&f.ring, &span);
	return n;
}

UNIT_TEST(delivers_what_was_put_across_every_wrap)
{
	uint8_t scratch[128];
	struct seam_ring_header header;
	struct seam_ring_span span;

	open_fake(0);
	for (uint32_t i = 0; i < 1000; i++) {
		const uint8_t *p;

		put(i, (uint16_t)(8 + 8 * (i % 15)));
		assert_int_equal(seam_ring_peek(&f.ring, &span),
				 8 + 8 * (i % 15));
		assert_true(seam_ring_record(&span, 0, &header));
		assert_int_equal(header.type, i);
		p = seam_ring_bytes(&span, 0, header.size, scratch);
		for (size_t k = sizeof(header); k < header.size; k++)
			assert_int_equal(p[k], (uint8_t)(i + k));
		seam_ring_advance(&f.ring, &span);
		assert_int_equal(atomic_load(&f.control->data_tail),
				 atomic_load(&f.control->data_head));
	}
}

UNIT_TEST(counts_on_past_the_end_of_64_bits)
{
	open_fake(UINT64_MAX - 63);
	for (int i = 0; i < 20; i++) {
		put(1, 24);
		put(2, 40);
		assert_int_equal(take(), 2);
	}
	assert_int_equal(f.ring.n_resyncs, 0);
}

UNIT_TEST(takes_a_ring_that_is_full_to_the_byte)
{
	open_fake(1000 * 8);
	for (int i = 0; i < BYTES / 64; i++)
		put(1, 64);
	assert_int_equal(take(), BYTES / 64);
	assert_int_equal(take(), 0);
}

UNIT_TEST(gives_space_back_only_when_advanced)
{
	struct seam_ring_span span;

	open_fake(0);
	put(1, 64);
	seam_ring_peek(&f.ring, &span);
	assert_int_equal(atomic_load(&f.control->data_tail), 0);
	put(2, 64);		/* comes after the look: not in the span */
	seam_ring_advance(&f.ring, &span);
	assert_int_equal(atomic_load(&f.control->data_tail), 64);
	assert_int_equal(take(), 1);
}

UNIT_TEST(survives_heads_that_cannot_be)
{
	static const uint64_t heads[] = {
		BYTES + 8, UINT64_MAX, UINT64_MAX - 7, 1, 7, 4, 1 << 30,
		UINT64_C(1) << 63,
	};
	struct seam_ring_span span;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(heads); i++) {
		open_fake(0);
		atomic_store(&f.control->data_head, heads[i]);
		assert_int_equal(seam_ring_peek(&f.ring, &span), 0);
		assert_int_equal(seam_ring_span_bytes(&span), 0);
		assert_int_equal(f.ring.n_resyncs, 1);
		/* and goes on from there */
		atomic_store(&f.control->data_head, heads[i] & ~UINT64_C(7));
		put(5, 32);
		assert_int_equal(take(), 1);
	}
}

UNIT_TEST(ends_at_sizes_that_cannot_be)
{
	static const uint16_t sizes[] = { 0, 1, 4, 7, 9, 12, 72, 65535 };

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(sizes); i++) {
		struct seam_ring_header header;
		struct seam_ring_span span;

		open_fake(BYTES - 40);
		put(1, 32);
		put(2, 64);
		/* the second header ends the buffer, its record wraps */
		memcpy(f.data + BYTES - 8 + 6, &sizes[i], 2);
		assert_int_equal(seam_ring_peek(&f.ring, &span), 96);
		assert_true(seam_ring_record(&span, 0, &header));
		assert_false(seam_ring_record(&span, 32, &header));
		seam_ring_advance(&f.ring, &span);
		assert_int_equal(take(), 0);
	}
}

UNIT_TEST(uses_its_own_size_and_tail)
{
	open_fake(0);
	put(1, 64);
	assert_int_equal(take(), 1);
	/* what the other side writes there means nothing to us */
	atomic_store(&f.control->data_tail, 0);
	f.control->data_size = UINT64_MAX;
	f.control->data_offset = UINT64_MAX;
	put(2, 64);
	assert_int_equal(take(), 1);
	assert_int_equal(atomic_load(&f.control->data_tail), 128);
}

UNIT_TEST(a_zeroed_ring_is_empty)
{
	struct seam_ring ring = { 0 };
	struct seam_ring_span span;

	assert_int_equal(seam_ring_peek(&ring, &span), 0);
	seam_ring_advance(&ring, &span);
	seam_ring_fini(&ring);
}

UNIT_MAIN(NULL, NULL, NULL, close_fake)
