/* SPDX-License-Identifier: MIT */
/* test_proto.c - bytes of protobuf messages; test_exports.py has protoc */
#include "base/proto.h"

#include "unit.h"

#define CHECK(p, bytes)							\
	do {								\
		assert_false((p)->is_failed);				\
		assert_int_equal((p)->n, sizeof(bytes) - 1);		\
		assert_memory_equal((p)->items, bytes, (p)->n);		\
		free((p)->items);					\
	} while (0)

/* Source: protobuf.dev, "Encoding": 150 is 96 01 */
UNIT_TEST(numbers_are_varints)
{
	struct seam_proto p = { 0 };

	seam_proto_u64(&p, 1, 150);
	seam_proto_u64(&p, 2, 0);
	seam_proto_u64(&p, 16, 127);
	seam_proto_u64(&p, 1, UINT64_MAX);
	CHECK(&p, "\x08\x96\x01" "\x10\x00" "\x80\x01\x7f"
	      "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

UNIT_TEST(texts_and_bytes_have_their_length)
{
	struct seam_proto p = { 0 };

	seam_proto_text(&p, 2, "testing");
	seam_proto_text(&p, 3, "");
	seam_proto_bytes(&p, 4, (struct seam_bytes) {
			 (const uint8_t *)"\xff\0", 2 });
	seam_proto_bytes(&p, 5, (struct seam_bytes) { 0 });
	CHECK(&p, "\x12\x07testing" "\x1a\x00" "\x22\x02\xff\0" "\x2a\x00");
}

UNIT_TEST(a_text_is_utf8_without_control_characters)
{
	struct seam_proto p = { 0 };

	seam_proto_text(&p, 1, "\xff\x1b\xc3\xa4");
	CHECK(&p, "\x0a\x0a\\xff\\x1b\xc3\xa4");
}

UNIT_TEST(messages_nest_and_pack)
{
	struct seam_proto p = { 0 };
	size_t outer, inner;

	outer = seam_proto_open(&p, 3);
	seam_proto_u64(&p, 1, 150);
	inner = seam_proto_open(&p, 4);
	seam_proto_packed(&p, 3);
	seam_proto_packed(&p, 270);
	seam_proto_close(&p, inner);
	seam_proto_close(&p, outer);
	CHECK(&p, "\x1a\x08" "\x08\x96\x01" "\x22\x03\x03\x8e\x02");
}

UNIT_TEST(a_length_of_two_bytes_moves_the_content)
{
	struct seam_proto p = { 0 };
	size_t opened = seam_proto_open(&p, 1);
	char text[300];

	memset(text, 'x', sizeof(text));
	text[299] = '\0';
	seam_proto_text(&p, 2, text);
	seam_proto_close(&p, opened);
	assert_int_equal(p.n, 1 + 2 + 1 + 2 + 299);
	assert_memory_equal(p.items, "\x0a\xae\x02\x12\xab\x02xx", 8);
	free(p.items);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
