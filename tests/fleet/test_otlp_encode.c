/* SPDX-License-Identifier: MIT */
/* test_otlp_encode.c - batches that lack something, and memory that runs out */
#include "unit.h"

#include "base/cursor.h"
#include "fleet/otlp.h"
#include "no_memory.h"

enum { RESOURCES = 1, DICTIONARY = 2, LOCATIONS = 2, STACKS = 7 };

static struct seam_batch batch;
static struct seam_proto out;

static uint32_t text(const char *words)
{
	return seam_strings_put(&batch.strings, words);
}

static void origin(const char *service, const char *const labels[2])
{
	struct seam_batch_origin o = {
		.service = text(service), .host = text("h"),
		.labels = (uint32_t)batch.labels.n, .n_labels = 2,
	};

	for (int i = 0; i < 2; i++)
		assert_non_null(SEAM_ARRAY_ADD(&batch.labels,
					       text(labels[i])));
	assert_non_null(SEAM_ARRAY_ADD(&batch.origins, o));
}

static void frame(uint64_t id, bool is_inlined)
{
	struct seam_batch_frame f = {
		.id = id, .layer = 1, .is_named = true,
		.is_inlined = is_inlined, .function = text("f"),
		.module = text("/bin/x"), .build_id = text("aa"), .offset = 7,
	};

	assert_non_null(SEAM_ARRAY_ADD(&batch.frames, f));
}

static void stack(uint64_t id, const uint64_t *frames, uint32_t n)
{
	struct seam_batch_stack s = { id, (uint32_t)batch.frame_ids.n, n };

	for (uint32_t i = 0; i < n; i++)
		assert_non_null(SEAM_ARRAY_ADD(&batch.frame_ids, frames[i]));
	assert_non_null(SEAM_ARRAY_ADD(&batch.stacks, s));
}

static void sample(uint32_t origin, uint64_t stack)
{
	struct seam_batch_sample s = {
		.ts_ns = 20, .stack = stack, .count = 2, .value = 9,
		.origin = origin, .event = text("cycles"), .pid = 1, .tid = -1,
		.thread = text("t"),
	};

	assert_non_null(SEAM_ARRAY_ADD(&batch.samples, s));
}

static int make(void **state)
{
	const uint64_t whole[] = { 1, 2, 3 }, with_holes[] = { 9, 2, 9, 1 };
	const char *const labels[] = { "a=1", "host.name=forged" };
	const char *const same[] = { "b", "b=2" };

	(void)state;
	batch = (struct seam_batch) { .to_ns = 30 };
	origin("one", labels);
	origin("two", same);
	for (uint64_t id = 1; id <= 3; id++)
		frame(id, id > 1);
	stack(5, whole, 3);
	stack(6, with_holes, 4);
	stack(7, with_holes, 1);
	for (uint64_t id = 4; id <= 7; id++)
		sample(id % 2, id);
	sample(2, 5);
	return 0;
}

static int end(void **state)
{
	(void)state;
	seam_batch_fini(&batch);
	free(out.items);
	out = (struct seam_proto) { 0 };
	return 0;
}

/* How many messages or numbers there are at @path, of field numbers. */
static size_t count(struct seam_bytes in, const uint64_t *path, size_t depth)
{
	struct seam_cursor c = seam_cursor_over(in, SEAM_LITTLE);
	size_t n = 0;

	while (seam_cursor_left(&c) && !c.error) {
		uint64_t tag = seam_cursor_uleb128(&c);
		struct seam_bytes part = { 0 };

		if ((tag & 7) == 2) {
			part.size = seam_cursor_uleb128(&c);
			part.data = seam_cursor_bytes(&c, part.size);
		} else if ((tag & 7) == 1) {
			seam_cursor_u64(&c);
		} else {
			seam_cursor_uleb128(&c);
		}
		if (tag >> 3 == path[0])
			n += depth == 1 ? 1 : count(part, path + 1, depth - 1);
	}
	assert_int_equal(c.error, 0);
	return n;
}

#define COUNT(...)							\
	count((struct seam_bytes) { out.items, out.n },			\
	      (const uint64_t[]) { __VA_ARGS__ },			\
	      sizeof((const uint64_t[]) { __VA_ARGS__ }) / 8)

static void encode(void)
{
	assert_int_equal(seam_otlp_encode(&out, &batch, NULL), 0);
}

UNIT_TEST(a_sample_whose_stack_is_not_there_stays)
{
	make(state);
	encode();
	/* the fifth is of an origin that is not there */
	assert_int_equal(COUNT(RESOURCES, 2, 2, 2), 4);
	/* 5, 6, 7, and none */
	assert_int_equal(COUNT(DICTIONARY, STACKS), 4);
	end(state);
}

UNIT_TEST(inlined_frames_are_lines_of_the_place_that_they_are_in)
{
	make(state);
	encode();
	/* none; 1 with 2 and 3 in it; 2 alone; 1 alone */
	assert_int_equal(COUNT(DICTIONARY, LOCATIONS), 4);
	assert_int_equal(COUNT(DICTIONARY, LOCATIONS, 3), 5);
	end(state);
}

UNIT_TEST(no_label_is_there_twice_or_in_place_of_the_service)
{
	make(state);
	encode();
	assert_int_equal(COUNT(RESOURCES), 2);
	/* service.name and host.name of each, a, b */
	assert_int_equal(COUNT(RESOURCES, 1, 1), 6);
	end(state);
}

UNIT_TEST(an_empty_batch_has_empty_tables)
{
	(void)state;
	encode();
	assert_int_equal(COUNT(RESOURCES), 0);
	for (uint64_t field = 1; field <= 7; field++)
		assert_int_equal(COUNT(DICTIONARY, field), 1);
	end(state);
}

UNIT_TEST(memory_that_runs_out_is_an_error)
{
	make(state);
	for (long n = 1; ; n++) {
		struct seam_err err = { 0 };
		int r;

		until_failure = n;
		r = seam_otlp_encode(&out, &batch, &err);
		if (until_failure > 0) {
			assert_int_equal(r, 0);
			assert_true(n > 20);
			break;
		}
		assert_int_equal(r, -ENOMEM);
		free(out.items);
		out = (struct seam_proto) { 0 };
	}
	until_failure = 0;
	end(state);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
