/* SPDX-License-Identifier: MIT */
/* batch_made.h - a batch with rows in all tables, made from a seed */
#ifndef BATCH_MADE_H
#define BATCH_MADE_H

#include "unit.h"
#include "wire/fleet/batch_file.h"
#include "wire/fleet/batch_ids.h"

/* 2026-11-24 10:00 UTC */
#define MADE_NS (UINT64_C(1795514400) * 1000000000)

static inline uint32_t made_text(struct seam_batch *b, const char *format,
				 size_t i)
{
	char text[200];

	snprintf(text, sizeof(text), format, i);
	return seam_strings_put(&b->strings, text);
}

static inline void made_origin(struct seam_batch *b, size_t i)
{
	struct seam_batch_origin origin = {
		.service = made_text(b, "service-%zu", i),
		.host = made_text(b, "host-%zu", i),
		.recording = i ? 0 : made_text(b, "0123456789abcdef", 0),
		.labels = (uint32_t)b->labels.n, .n_labels = (uint32_t)i,
	};

	for (size_t k = 0; k < i; k++)
		assert_true(SEAM_ARRAY_ADD(&b->labels,
					   made_text(b, "version=%zu", k)));
	assert_true(seam_batch_origin(b, &origin) != SEAM_NONE);
}

static inline void made_frame(struct seam_batch *b, size_t i)
{
	struct seam_batch_frame frame = {
		.layer = (uint8_t)(i % 4), .is_named = i % 3,
		.is_inlined = i % 5 == 0,
		.function = made_text(b, "function_%zu()", i),
		.file = i % 2 ? made_text(b, "/src/file%zu.c", i) : 0,
		.module = made_text(b, "/usr/lib/lib%zu.so", i % 3),
		.build_id = made_text(b, "0102030405060708%02zx", i % 3),
		.line = (uint32_t)i * 7, .offset = i * UINT64_C(0x123456789),
	};

	frame.id = seam_batch_frame_id(b, &frame);
	assert_true(SEAM_ARRAY_ADD(&b->frames, frame));
}

/* Stack @i: frames 0 to @i. */
static inline void made_stack(struct seam_batch *b, size_t i)
{
	struct seam_batch_stack stack = {
		.first = (uint32_t)b->frame_ids.n, .n = (uint32_t)i + 1,
	};

	for (size_t k = 0; k <= i; k++)
		assert_true(SEAM_ARRAY_ADD(&b->frame_ids,
					   b->frames.items[k].id));
	stack.id = seam_batch_stack_id(&b->frame_ids.items[stack.first],
				       stack.n);
	assert_true(SEAM_ARRAY_ADD(&b->stacks, stack));
}

static inline void made_sample(struct seam_batch *b, size_t i)
{
	assert_true(SEAM_ARRAY_ADD(&b->samples, (struct seam_batch_sample) {
		.ts_ns = MADE_NS + i / 10 * UINT64_C(10000000000),
		.stack = i % 7 ? b->stacks.items[i % b->stacks.n].id : 0,
		.count = 1 + i % 3, .value = (1 + i % 3) * UINT64_C(52631578),
		.origin = (uint32_t)(i % b->origins.n),
		.event = made_text(b, i % 4 ? "cpu-clock" : "off-cpu", 0),
		.unit = 1, .kind = i % 4 ? SEAM_BATCH_SAMPLES :
				    SEAM_BATCH_BLOCKED,
		.pid = i % 9 ? 1000 + (int32_t)i % 2 : -1,
		.tid = i % 9 ? 1000 + (int32_t)i % 4 : -1,
		.process = made_text(b, "process-%zu", i % 2),
		.thread = made_text(b, "thread-%zu", i % 4),
	}));
}

static inline void made_calls(struct seam_batch *b, size_t i)
{
	struct seam_batch_calls calls = {
		.ts_ns = MADE_NS, .frame = b->frames.items[i].id,
		.count = i + 1, .min_ns = 10, .max_ns = 1000 + i,
		.sum_ns = 5000, .total_ns = 4000, .self_ns = 3000,
		.origin = (uint32_t)(i % b->origins.n), .pid = 1000,
		.process = made_text(b, "process-%zu", 0),
		.first = (uint32_t)b->buckets.n, .n = (uint32_t)i,
	};

	for (size_t k = 0; k < i; k++)
		assert_true(SEAM_ARRAY_ADD(&b->buckets,
					   (struct seam_batch_bucket) {
			.bucket = (uint16_t)(3 * k), .count = k + 1 }));
	assert_true(SEAM_ARRAY_ADD(&b->calls, calls));
}

static inline struct seam_batch made_batch(size_t n_origins, size_t n_samples)
{
	struct seam_batch b = {
		.id = { 0xfedcba9876543210, 42 },
		.from_ns = MADE_NS, .to_ns = MADE_NS + UINT64_C(60000000000),
	};

	for (size_t i = 0; i < n_origins; i++)
		made_origin(&b, i);
	for (size_t i = 0; i < 12; i++)
		made_frame(&b, i);
	for (size_t i = 0; i < 12; i++)
		made_stack(&b, i);
	for (size_t i = 0; i < n_samples; i++)
		made_sample(&b, i);
	for (size_t i = 0; i < 5; i++)
		made_calls(&b, i);
	assert_true(SEAM_ARRAY_ADD(&b.losses, (struct seam_batch_loss) {
		.ts_ns = MADE_NS, .records = 12, .bytes = 0, .origin = 0,
		.cause = made_text(&b, "ring full", 0),
		.source = made_text(&b, "cpu-clock", 0),
	}));
	return b;
}

/* A file of @b, on a heap block of its exact size. */
static inline struct seam_bytes made_file(const struct seam_batch *b)
{
	struct seam_native_buffer to = { 0 };
	uint8_t *copy;
	size_t n;

	assert_int_equal(seam_batch_file_write(b, &to, NULL), 0);
	n = to.bytes.n;
	copy = malloc(n);
	memcpy(copy, to.bytes.items, n);
	free(to.bytes.items);
	return (struct seam_bytes) { copy, n };
}

#endif /* BATCH_MADE_H */
