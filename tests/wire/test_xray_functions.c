/* SPDX-License-Identifier: MIT */
/* test_xray_functions.c - announcements, as sent, cut and damaged */

#include "wire/xray/xray_functions.h"
#include "unit.h"

static uint64_t room[SEAM_XRAY_MAX_ANNOUNCEMENT / 8];
static uint8_t *const buf = (uint8_t *)room;

static const uint64_t addresses[] = { 0x1000, 0x1040, UINT64_MAX };

/* One of each kind. */
static const struct seam_xray_announcement all[] = {
	{ .image = {
		.kind = SEAM_XRAY_ANNOUNCED_IMAGE, .image = 3,
		.bias = 0x555500000000,
		.build_id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
			      15, 16, 17, 18, 19, 20 },
		.build_id_bytes = 20, .entries_only = 1,
		.path = "/usr/lib/libfoo.so.1" } },
	{ .addresses = { SEAM_XRAY_ANNOUNCED_FUNCTIONS, 3, 18, 3, addresses } },
	{ .named = { SEAM_XRAY_ANNOUNCED_EVENT_TYPE, 7, "request" } },
	{ .trigger = { SEAM_XRAY_ANNOUNCED_TRIGGER, 1, 2, 3, 4, 5, 6, 0 } },
	{ .match = { SEAM_XRAY_ANNOUNCED_MATCH, 1, 2, 0 } },
	{ .named = { SEAM_XRAY_ANNOUNCED_NAME, 9, "fib" } },
};

static size_t write_one(const struct seam_xray_announcement *a)
{
	return seam_xray_write_announcement(buf, sizeof(room), a);
}

/*
 * An exact, aligned copy, so that a sanitizer sees any access beyond it.  What
 * is read gives the same bytes again.
 */
static int read_copy(const uint8_t *bytes, size_t size)
{
	static uint8_t again[SEAM_XRAY_MAX_ANNOUNCEMENT];
	uint64_t *copy = malloc(size + !size);
	struct seam_xray_announcement a;
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	r = seam_xray_read_announcement(
		(struct seam_bytes) { (const uint8_t *)copy, size }, &a);
	if (r == 0) {
		assert_int_equal(seam_xray_write_announcement(again,
						sizeof(again), &a), size);
		assert_memory_equal(again, copy, size);
	}
	free(copy);
	return r;
}

UNIT_TEST(reads_what_was_written)
{
	struct seam_xray_announcement read[SEAM_ARRAY_SIZE(all)];

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(all); i++) {
		struct seam_bytes bytes = { buf, write_one(&all[i]) };
		struct seam_xray_announcement *a = &read[i];

		assert_int_equal(seam_xray_read_announcement(bytes, a), 0);
		assert_int_equal(a->kind, i + 1);
		switch (a->kind) {
		case SEAM_XRAY_ANNOUNCED_IMAGE:
			assert_string_equal(a->image.path, all[i].image.path);
			a->image.path = all[i].image.path;
			break;
		case SEAM_XRAY_ANNOUNCED_FUNCTIONS:
			assert_memory_equal(a->addresses.link_addresses,
					    addresses, sizeof(addresses));
			a->addresses.link_addresses = addresses;
			break;
		case SEAM_XRAY_ANNOUNCED_EVENT_TYPE:
		case SEAM_XRAY_ANNOUNCED_NAME:
			assert_string_equal(a->named.name, all[i].named.name);
			a->named.name = all[i].named.name;
			break;
		}
	}
	assert_memory_equal(read, all, sizeof(all));
}

UNIT_TEST(a_cut_announcement_is_refused)
{
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(all); i++) {
		size_t size = write_one(&all[i]);

		assert_true(size > 0 && size % 8 == 0);
		assert_int_equal(read_copy(buf, size), 0);
		for (size_t n = 0; n < size; n++)
			assert_int_equal(read_copy(buf, n), -EBADMSG);
		memset(buf + size, 0, 8);
		assert_int_equal(read_copy(buf, size + 8), -EBADMSG);
	}
}

UNIT_TEST(each_flipped_bit_is_refused_or_a_value)
{
	size_t n_taken = 0, n_refused = 0;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(all); i++) {
		size_t size = write_one(&all[i]);

		for (size_t bit = 0; bit < 8 * size; bit++) {
			buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (read_copy(buf, size) == 0)
				n_taken++;
			else
				n_refused++;
			buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	assert_true(n_taken > 100 && n_refused > 100);
}

UNIT_TEST(what_no_program_sends_is_refused)
{
	size_t size = write_one(&all[0]);

	memset(buf + 4, 0, 4);		/* image 0 */
	assert_int_equal(read_copy(buf, size), -EBADMSG);
	write_one(&all[0]);
	memset(buf + 38, 'x', SEAM_XRAY_MAX_PATH);
	memset(buf + 38 + SEAM_XRAY_MAX_PATH, 0, 2);
	assert_int_equal(read_copy(buf, 40 + SEAM_XRAY_MAX_PATH), -EBADMSG);
	memset(buf, 0, 64);		/* kind 0, and 7 */
	assert_int_equal(read_copy(buf, 64), -EBADMSG);
	buf[0] = 7;
	assert_int_equal(read_copy(buf, 64), -EBADMSG);
}

UNIT_TEST(what_cannot_be_read_is_not_written)
{
	static uint64_t many[SEAM_XRAY_MAX_ADDRESSES];
	static char path[SEAM_XRAY_MAX_PATH + 10];
	struct seam_xray_announcement f = { .addresses = {
		SEAM_XRAY_ANNOUNCED_FUNCTIONS, 1, 1, SEAM_XRAY_MAX_ADDRESSES,
		many } };
	struct seam_xray_announcement i = all[0];

	assert_int_equal(write_one(&f), sizeof(room));
	assert_int_equal(seam_xray_write_announcement(buf, sizeof(room) - 1,
						      &f), 0);
	f.addresses.n++;
	assert_int_equal(write_one(&f), 0);
	f.addresses.n = 2;
	f.addresses.first_id = SEAM_XRAY_MAX_FUNCTION;
	assert_int_equal(write_one(&f), 0);
	f.addresses.first_id = 0;
	assert_int_equal(write_one(&f), 0);
	i.image.image = 0;
	assert_int_equal(write_one(&i), 0);
	i.image.image = 1;
	memset(path, 'x', sizeof(path) - 1);
	i.image.path = path;
	assert_int_equal(read_copy(buf, write_one(&i)), 0);
	assert_int_equal(seam_xray_write_announcement(buf, 4096, &i), 0);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
