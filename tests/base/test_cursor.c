/* SPDX-License-Identifier: MIT */
/*
 * test_cursor.c - the promises of cursor.h, one test per promise
 *
 * Inputs are copied to heap blocks of their exact size, so that reading one
 * byte too many is an AddressSanitizer report and not a lucky pass.
 */
#include "base/cursor.h"

#include "unit.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static void *exact_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

UNIT_TEST(reads_integers_in_both_byte_orders)
{
	static const uint8_t bytes[15] = {
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
		0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
	};
	struct seam_cursor le = seam_cursor_make(bytes, 15, SEAM_LITTLE);
	struct seam_cursor be = seam_cursor_make(bytes, 15, SEAM_BIG);

	assert_int_equal(seam_cursor_u8(&le), 0x01);
	assert_int_equal(seam_cursor_u16(&le), 0x0302);
	assert_int_equal(seam_cursor_u32(&le), 0x07060504);
	assert_int_equal(seam_cursor_u64(&le), UINT64_C(0x0f0e0d0c0b0a0908));

	assert_int_equal(seam_cursor_u8(&be), 0x01);
	assert_int_equal(seam_cursor_u16(&be), 0x0203);
	assert_int_equal(seam_cursor_u32(&be), 0x04050607);
	assert_int_equal(seam_cursor_u64(&be), UINT64_C(0x08090a0b0c0d0e0f));

	assert_int_equal(le.error, 0);
	assert_int_equal(seam_cursor_left(&le), 0);
}

/* Cut a 21-byte record at every length: the value cut in two must fail. */
UNIT_TEST(fails_at_every_truncation_point_and_stays_failed)
{
	static const size_t starts[] = { 0, 1, 3, 7, 15, 21 };
	static const uint8_t record[21] = { [15] = 'm', 'a', 'i', 'n', '!' };

	for (size_t size = 0; size < sizeof(record); size++) {
		uint8_t *copy = exact_copy(record, size);
		struct seam_cursor c =
			seam_cursor_make(copy, size, SEAM_LITTLE);
		size_t expect = 0;

		while (starts[expect + 1] <= size)
			expect++;

		seam_cursor_u8(&c);
		seam_cursor_u16(&c);
		seam_cursor_u32(&c);
		seam_cursor_u64(&c);
		assert_null(seam_cursor_cstr(&c));

		assert_int_equal(c.error, -ENODATA);
		assert_int_equal(c.error_pos, starts[expect]);
		assert_int_equal(seam_cursor_u64(&c), 0);
		assert_null(seam_cursor_bytes(&c, 0));
		assert_int_equal(c.error_pos, starts[expect]);
		free(copy);
	}
}

UNIT_TEST(reads_an_empty_window)
{
	struct seam_cursor c = seam_cursor_make(NULL, 0, SEAM_BIG);

	assert_non_null(seam_cursor_bytes(&c, 0));
	seam_cursor_align(&c, 8);
	assert_int_equal(c.error, 0);
	assert_null(seam_cursor_cstr(&c));
	assert_int_equal(c.error, -ENODATA);
}

UNIT_TEST(reads_leb128)
{
	/* The first eight pairs are the examples of DWARF 5, tables 7.7/7.8. */
	static const struct {
		const char *bytes;
		size_t size;
		uint64_t u;
		int64_t s;
		int u_error;
		int s_error;
	} cases[] = {
		{ "\x02", 1, 2, 2, 0, 0 },
		{ "\x7f", 1, 127, -1, 0, 0 },
		{ "\x80\x01", 2, 128, 128, 0, 0 },
		{ "\x81\x01", 2, 129, 129, 0, 0 },
		{ "\xb9\x64", 2, 12857, -3527, 0, 0 },
		{ "\x7e", 1, 126, -2, 0, 0 },
		{ "\xff\x00", 2, 127, 127, 0, 0 },
		{ "\x81\x7f", 2, 16257, -127, 0, 0 },
		/* Padded zero, padded minus one. */
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12,
		  0, 0, 0, 0 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12,
		  0, -1, -EOVERFLOW, 0 },
		/* The extremes of each type, and one bit beyond. */
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10,
		  UINT64_MAX, 0, 0, -EOVERFLOW },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", 10,
		  INT64_MAX, INT64_MAX, 0, 0 },
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 10,
		  0, INT64_MIN, -EOVERFLOW, 0 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10,
		  0, 0, -EOVERFLOW, -EOVERFLOW },
		/* Padded INT64_MAX: bit 62 must not be read as the sign. */
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x00", 11,
		  INT64_MAX, INT64_MAX, 0, 0 },
		/* Continuation bit on the last byte of the window. */
		{ "\x80", 1, 0, 0, -ENODATA, -ENODATA },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t *copy = exact_copy(cases[i].bytes, cases[i].size);
		struct seam_cursor u, s;

		u = seam_cursor_make(copy, cases[i].size, SEAM_LITTLE);
		s = u;
		assert_int_equal(seam_cursor_uleb128(&u), cases[i].u);
		assert_int_equal(seam_cursor_sleb128(&s), cases[i].s);
		assert_int_equal(u.error, cases[i].u_error);
		assert_int_equal(s.error, cases[i].s_error);
		assert_int_equal(u.error ? u.error_pos : u.pos,
				 u.error ? 0 : cases[i].size);
		assert_int_equal(s.error ? s.error_pos : s.pos,
				 s.error ? 0 : cases[i].size);
		free(copy);
	}
}

UNIT_TEST(string_must_end_inside_the_window)
{
	struct seam_cursor c = seam_cursor_make("ab\0cd", 5, SEAM_LITTLE);

	assert_string_equal(seam_cursor_cstr(&c), "ab");
	assert_null(seam_cursor_cstr(&c));
	assert_int_equal(c.error, -ENODATA);
	assert_int_equal(c.error_pos, 3);
}

UNIT_TEST(failure_in_a_child_leaves_the_parent_alone)
{
	struct seam_cursor c = seam_cursor_make("\1\2\3\4\5", 5, SEAM_LITTLE);
	struct seam_cursor child = seam_cursor_split(&c, 3);

	seam_cursor_u32(&child);
	assert_int_equal(child.error, -ENODATA);
	assert_int_equal(seam_cursor_u16(&c), 0x0504);
	assert_int_equal(c.error, 0);

	child = seam_cursor_split(&c, SIZE_MAX);
	assert_int_equal(child.error, -ENODATA);
	assert_int_equal(child.size, 0);
	assert_int_equal(c.error, -ENODATA);
}

UNIT_TEST(count_is_bounded_by_the_input)
{
	static const uint8_t bytes[32];
	struct seam_cursor c = seam_cursor_make(bytes, 32, SEAM_LITTLE);

	assert_int_equal(seam_cursor_count(&c, 2, 16), 2);
	assert_int_equal(seam_cursor_count(&c, 3, 16), 0);
	assert_int_equal(c.error, -EBADMSG);

	/* 2^60 * 16 wraps to 0: a multiplication would accept it. */
	c = seam_cursor_make(bytes, 32, SEAM_LITTLE);
	assert_int_equal(seam_cursor_count(&c, UINT64_C(1) << 60, 16), 0);
	assert_int_equal(c.error, -EBADMSG);
}

UNIT_TEST(align_counts_from_the_window_start)
{
	static const uint8_t bytes[16];
	struct seam_cursor c = seam_cursor_make(bytes + 1, 15, SEAM_LITTLE);

	seam_cursor_align(&c, 8);
	assert_int_equal(c.pos, 0);
	seam_cursor_skip(&c, 1);
	seam_cursor_align(&c, 8);
	assert_int_equal(c.pos, 8);
	seam_cursor_skip(&c, 1);
	seam_cursor_align(&c, 8);
	assert_int_equal(c.error, -ENODATA);
}

UNIT_TEST(first_failure_wins)
{
	struct seam_cursor c = seam_cursor_make("\1\2\3", 3, SEAM_LITTLE);

	seam_cursor_skip(&c, 1);
	seam_cursor_fail(&c, -EBADMSG, 0);
	assert_int_equal(seam_cursor_u64(&c), 0);
	assert_int_equal(seam_cursor_uleb128(&c), 0);
	assert_int_equal(seam_cursor_sleb128(&c), 0);
	assert_int_equal(seam_cursor_count(&c, 1, 1), 0);
	seam_cursor_fail(&c, -EOVERFLOW, 1);
	assert_int_equal(c.error, -EBADMSG);
	assert_int_equal(c.error_pos, 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
