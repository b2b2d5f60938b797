/* SPDX-License-Identifier: MIT */
/* test_batch.c - batches as blocks and as files: equal, cut, damaged */
#include "batch_made.h"

#include <zstd.h>

static void free_bytes(struct seam_bytes bytes)
{
	free((void *)(uintptr_t)bytes.data);
}

/* -- blocks ------------------------------------------------------------- */

/* Written by hand from the format's description. */
static const uint8_t golden[] =
	"\x08\x01"
	"\x03""day\x04""Date\x35\x51"
	"\x05""agent\x06UInt64\x10\x32\x54\x76\x98\xba\xdc\xfe"
	"\x03""pid\x05Int32\xfe\xff\xff\xff"
	"\x07service\x06String\x03web"
	"\x05""event\x06String\x00"
	"\x06labels\x0d""Array(String)\x02\0\0\0\0\0\0\0\x03""a=1\x03""b=2"
	"\x08stack_id\x06UInt64\x07\0\0\0\0\0\0\0"
	"\x04unit\x05UInt8\x01";

UNIT_TEST(a_block_is_read_as_the_format_says)
{
	uint8_t *bytes = malloc(sizeof(golden) - 1);
	struct seam_cursor c = seam_cursor_make(
		memcpy(bytes, golden, sizeof(golden) - 1), sizeof(golden) - 1,
		SEAM_LITTLE);
	struct seam_batch b = { 0 };
	const struct seam_batch_sample *s;
	const struct seam_batch_origin *o;

	assert_int_equal(seam_batch_decode(&b, SEAM_TABLE_SAMPLES, &c, NULL),
			 1);
	assert_int_equal(seam_batch_decode(&b, SEAM_TABLE_SAMPLES, &c, NULL),
			 0);
	assert_int_equal(b.samples.n, 1);
	s = &b.samples.items[0];
	assert_int_equal(s->pid, -2);
	/* a column that the block has not */
	assert_int_equal(s->tid, -1);
	assert_int_equal(s->stack, 7);
	assert_int_equal(s->unit, 1);
	assert_int_equal(s->event, 0);
	o = &b.origins.items[s->origin];
	assert_string_equal(seam_strings_get(&b.strings, o->service), "web");
	assert_int_equal(o->n_labels, 2);
	assert_string_equal(seam_strings_get(&b.strings,
			    b.labels.items[o->labels + 1]), "b=2");
	seam_batch_fini(&b);
	free(bytes);
}

UNIT_TEST(a_block_is_written_as_the_format_says)
{
	struct seam_native_buffer to = { 0 };
	struct seam_batch b = { .id = { 0xfedcba9876543210, 3 } };
	static const uint8_t expected[] =
		"\x04\x01"
		"\x05""agent\x06UInt64\x10\x32\x54\x76\x98\xba\xdc\xfe"
		"\x04seen\x04""Date\0\0"
		"\x08stack_id\x06UInt64\x09\0\0\0\0\0\0\0"
		"\x06""frames\x0d""Array(UInt64)\x02\0\0\0\0\0\0\0"
		"\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0";

	assert_true(SEAM_ARRAY_ADD(&b.frame_ids, 5));
	assert_true(SEAM_ARRAY_ADD(&b.frame_ids, 6));
	assert_true(SEAM_ARRAY_ADD(&b.stacks, (struct seam_batch_stack) {
		.id = 9, .first = 0, .n = 2 }));
	seam_batch_encode(&b, SEAM_TABLE_STACKS, &to);
	assert_false(to.is_bad);
	assert_int_equal(to.bytes.n, sizeof(expected) - 1);
	assert_memory_equal(to.bytes.items, expected, to.bytes.n);
	free(to.bytes.items);
	seam_batch_fini(&b);
}

UNIT_TEST(a_block_that_is_cut_anywhere_is_refused)
{
	for (size_t n = 1; n < sizeof(golden) - 1; n++) {
		uint8_t *bytes = malloc(n);
		struct seam_cursor c = seam_cursor_make(
			memcpy(bytes, golden, n), n, SEAM_LITTLE);
		struct seam_batch b = { 0 };

		assert_true(seam_batch_decode(&b, SEAM_TABLE_SAMPLES, &c,
					      NULL) < 0);
		seam_batch_fini(&b);
		free(bytes);
	}
}

static int decode(const char *bytes, size_t n, enum seam_batch_table_id table)
{
	struct seam_cursor c = seam_cursor_make(bytes, n, SEAM_LITTLE);
	struct seam_batch b = { 0 };
	int r = seam_batch_decode(&b, table, &c, NULL);

	seam_batch_fini(&b);
	return r;
}

#define DECODE(bytes, table) \
	decode(bytes, sizeof(bytes) - 1, SEAM_TABLE_##table)

UNIT_TEST(sizes_that_cannot_be_are_refused)
{
	/* more rows than a block may have, or than there are bytes for */
	assert_int_equal(DECODE("\x01\x81\x80\x40\x04unit\x05UInt8", SAMPLES),
			 -EBADMSG);
	assert_true(DECODE("\x01\xff\xff\x3f\x04unit\x05UInt8\x01", SAMPLES) <
		    0);
	assert_int_equal(DECODE("\x00\xff\x3f", SAMPLES), -EBADMSG);
	assert_int_equal(DECODE("\xff\xff\xff\xff\x7f\x01", SAMPLES), -EBADMSG);
	/* an array that ends before it begins; one of 2^56 elements */
	assert_int_equal(DECODE("\x01\x02\x06""frames\x0d""Array(UInt64)"
		"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", STACKS),
		-EBADMSG);
	assert_true(DECODE("\x01\x01\x06""frames\x0d""Array(UInt64)"
		"\0\0\0\0\0\0\0\x01\1\0\0\0\0\0\0\0", STACKS) < 0);
	/* counts without their buckets */
	assert_int_equal(DECODE("\x01\x01\x06""counts\x0d""Array(UInt64)"
		"\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", CALLS), -EBADMSG);
	/* another type than the column's; a type that is not read */
	assert_int_equal(DECODE("\x01\x01\x04unit\x06UInt16\0\0", SAMPLES),
			 -EBADMSG);
	assert_int_equal(DECODE("\x01\x01\x04unit\x06""Float3\0\0", SAMPLES),
			 -ENOTSUP);
}

UNIT_TEST(names_that_are_too_long_are_cut)
{
	struct seam_native_buffer to = { 0 };
	struct seam_batch b = { 0 };
	struct seam_cursor c;
	char text[3000] = "";

	memset(text, 'x', sizeof(text) - 1);
	seam_native_begin(&to, 1, 1);
	seam_native_column(&to, "thread", SEAM_NATIVE_STRING);
	seam_native_put_text(&to, text);
	c = seam_cursor_make(to.bytes.items, to.bytes.n, SEAM_LITTLE);
	assert_int_equal(seam_batch_decode(&b, SEAM_TABLE_SAMPLES, &c, NULL),
			 1);
	assert_int_equal(strlen(seam_strings_get(&b.strings,
			 b.samples.items[0].thread)), SEAM_BATCH_MAX_TEXT);
	free(to.bytes.items);
	seam_batch_fini(&b);
}

/* -- files -------------------------------------------------------------- */

static void assert_equal(const struct seam_batch *a, const struct seam_batch *b)
{
	assert_memory_equal(&a->id, &b->id, sizeof(a->id));
	assert_int_equal(a->from_ns, b->from_ns);
	assert_int_equal(a->to_ns, b->to_ns);
	for (unsigned int i = 0; i < SEAM_N_BATCH_TABLES; i++) {
		struct seam_native_buffer one = { 0 }, two = { 0 };

		seam_batch_encode(a, i, &one);
		seam_batch_encode(b, i, &two);
		assert_int_equal(one.bytes.n, two.bytes.n);
		assert_memory_equal(one.bytes.items, two.bytes.items,
				    one.bytes.n);
		free(one.bytes.items);
		free(two.bytes.items);
	}
}

UNIT_TEST(a_file_holds_all_of_a_batch)
{
	for (size_t n = 1; n < 4; n++) {
		struct seam_batch b = made_batch(n, n * 100), again;
		struct seam_bytes file = made_file(&b);

		assert_true(seam_batch_file_is(file));
		assert_int_equal(seam_batch_file_read(&again, file, NULL), 0);
		assert_equal(&b, &again);
		assert_int_equal(again.samples.n, n * 100);
		assert_int_equal(again.origins.n, n);
		free_bytes(file);
		seam_batch_fini(&again);
		seam_batch_fini(&b);
	}
}

UNIT_TEST(a_file_without_rows_says_where_it_is_from)
{
	struct seam_batch b = { .id = { 1, 0 } }, again;
	struct seam_bytes file;

	made_origin(&b, 0);
	made_origin(&b, 2);
	b.origins.items[0] = b.origins.items[1];
	b.origins.n = 1;
	file = made_file(&b);
	assert_int_equal(seam_batch_file_read(&again, file, NULL), 0);
	assert_equal(&b, &again);
	assert_int_equal(again.origins.items[0].n_labels, 2);
	free_bytes(file);
	seam_batch_fini(&again);
	seam_batch_fini(&b);
}

UNIT_TEST(the_head_of_a_file_is_read_alone)
{
	struct seam_batch b = made_batch(1, 100);
	struct seam_bytes file = made_file(&b);
	size_t n = ZSTD_findFrameCompressedSize(file.data, file.size);
	struct seam_batch_head head;

	assert_int_equal(seam_batch_head_read(&head, (struct seam_bytes) {
		file.data, n }, NULL), 0);
	assert_int_equal(head.id.agent, b.id.agent);
	assert_int_equal(head.id.seq, 42);
	assert_int_equal(head.from_ns, b.from_ns);
	assert_int_equal(head.to_ns, b.to_ns);
	assert_int_equal(head.rows[SEAM_TABLE_SAMPLES], 100);
	assert_int_equal(head.rows[SEAM_TABLE_LOSSES], 1);
	assert_string_equal(head.service, "service-0");
	assert_string_equal(head.recording, "0123456789abcdef");
	assert_int_equal(head.n_labels, 0);
	seam_batch_head_fini(&head);
	free_bytes(file);
	seam_batch_fini(&b);
}

/* Read a changed file: it is refused, or is as before. */
static void check_damaged(const struct seam_batch *b, struct seam_bytes file)
{
	struct seam_batch again;

	if (seam_batch_file_read(&again, file, NULL) == 0)
		assert_equal(b, &again);
	seam_batch_fini(&again);
}

UNIT_TEST(a_file_that_is_cut_anywhere_is_refused)
{
	struct seam_batch b = made_batch(1, 30), again;
	struct seam_bytes file = made_file(&b);

	for (size_t n = 0; n < file.size; n++) {
		uint8_t *copy = malloc(n + !n);

		memcpy(copy, file.data, n);
		assert_true(seam_batch_file_read(&again, (struct seam_bytes) {
			copy, n }, NULL) < 0);
		seam_batch_fini(&again);
		free(copy);
	}
	free_bytes(file);
	seam_batch_fini(&b);
}

UNIT_TEST(a_file_with_any_bit_flipped_is_refused_or_the_same)
{
	struct seam_batch b = made_batch(1, 30);
	struct seam_bytes file = made_file(&b);
	uint8_t *bytes = (uint8_t *)(uintptr_t)file.data;

	for (size_t bit = 0; bit < 8 * file.size; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		check_damaged(&b, file);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free_bytes(file);
	seam_batch_fini(&b);
}

UNIT_TEST(a_file_with_more_after_it_is_refused)
{
	struct seam_batch b = made_batch(1, 3), again;
	struct seam_bytes file = made_file(&b);
	uint8_t *twice = malloc(2 * file.size);

	memcpy(twice, file.data, file.size);
	memcpy(twice + file.size, file.data, file.size);
	assert_int_equal(seam_batch_file_read(&again, (struct seam_bytes) {
		twice, 2 * file.size }, NULL), -EBADMSG);
	seam_batch_fini(&again);
	free(twice);
	free_bytes(file);
	seam_batch_fini(&b);
}

/* @head and @body as a file, packed here. */
static int read_text(const char *head, const char *body)
{
	const char *parts[] = { head, body };
	struct seam_batch b;
	uint8_t bytes[4096];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < 2; i++)
		n += ZSTD_compress(bytes + n, sizeof(bytes) - n, parts[i],
				   strlen(parts[i]), 1);
	r = seam_batch_file_read(&b, (struct seam_bytes) { bytes, n }, NULL);
	seam_batch_fini(&b);
	return r;
}

#define HEAD(more) "seam-batch 1\n{\"agent\": \"1f\", \"seq\": 0, " \
	"\"from_ns\": 1, \"to_ns\": 2, " more "\"rows\": {\"frames\": 0, " \
	"\"stacks\": 0, \"samples\": 0, \"calls\": 0, \"losses\": 0, " \
	"\"batches\": 1}}\n"

UNIT_TEST(a_head_that_lies_is_refused)
{
	assert_int_equal(read_text("", ""), -EBADMSG);
	assert_int_equal(read_text("seam-batch 2\n{}", ""), -ENOTSUP);
	assert_int_equal(read_text("seam-batch 1\n{}", ""), -EBADMSG);
	assert_int_equal(read_text("seam-batch 1\n{", ""), -EBADMSG);
	assert_int_equal(read_text(HEAD("\"service\": 3, "), ""), -EBADMSG);
	assert_int_equal(read_text(HEAD(""), ""), -EBADMSG);
	assert_int_equal(read_text(HEAD(""), "frames 99999999999\n"),
			 -EBADMSG);
	assert_int_equal(read_text(HEAD(""), "frames 3\n"), -EBADMSG);
}

/* A frame whose header claims 1 TiB. */
UNIT_TEST(a_file_of_a_size_that_is_too_large_is_refused)
{
	static const uint8_t huge[] = {
		0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0,
		1, 0, 0,
	};
	struct seam_batch b = made_batch(1, 3), again;
	struct seam_bytes file = made_file(&b);
	size_t n = ZSTD_findFrameCompressedSize(file.data, file.size);
	uint8_t *bytes = malloc(n + sizeof(huge));

	assert_false(seam_batch_file_is((struct seam_bytes) {
		huge, sizeof(huge) }));
	memcpy(bytes, file.data, n);
	memcpy(bytes + n, huge, sizeof(huge));
	assert_int_equal(seam_batch_file_read(&again, (struct seam_bytes) {
		bytes, n + sizeof(huge) }, NULL), -EBADMSG);
	seam_batch_fini(&again);
	free(bytes);
	free_bytes(file);
	seam_batch_fini(&b);
}

/* -- ids ---------------------------------------------------------------- */

/* They are stored: other values would part what is one. */
UNIT_TEST(ids_are_the_same_in_every_process_and_version)
{
	struct seam_batch b = { 0 };
	struct seam_batch_frame frame = {
		.layer = 1, .is_named = true, .line = 12, .offset = 0x1234,
		.function = made_text(&b, "main", 0),
		.module = made_text(&b, "/usr/bin/app", 0),
	};
	uint64_t ids[2] = { 1, 2 };

	assert_int_equal(seam_batch_frame_id(&b, &frame),
			 UINT64_C(0xfd8c3e4ad2636a6d));
	assert_int_equal(seam_batch_stack_id(ids, 2),
			 UINT64_C(0x3584c15fb3cecd0f));
	assert_int_equal(seam_batch_stack_id(ids, 0), 0);
	seam_batch_fini(&b);
}

UNIT_TEST(each_field_of_a_frame_is_in_its_id)
{
	struct seam_batch b = { 0 };
	struct seam_batch_frame frames[10] = { 0 };

	frames[1].layer = 1;
	frames[2].is_named = true;
	frames[3].is_inlined = true;
	frames[4].line = 1;
	frames[5].offset = 1;
	frames[6].function = made_text(&b, "x", 0);
	frames[7].file = frames[6].function;
	frames[8].module = frames[6].function;
	frames[9].build_id = frames[6].function;
	for (size_t i = 0; i < 10; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(seam_batch_frame_id(&b, &frames[i]) !=
				    seam_batch_frame_id(&b, &frames[k]));
	seam_batch_fini(&b);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
