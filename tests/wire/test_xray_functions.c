/* SPDX-License-Identifier: MIT */
/* test_xray_functions.c - announcements, as sent, cut and damaged */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "announcement_again.h"

static uint64_t room[SEAM_XRAY_MAX_ANNOUNCEMENT / 8];
static uint8_t *const buf = (uint8_t *)room;

static const uint64_t addresses[] = { 0x1000, 0x1040, UINT64_MAX };
static const struct seam_xray_image image = {
	.image = 3, .first_id = 17, .n_functions = 200, .bias = 0x555500000000,
	.build_id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
		      17, 18, 19, 20 },
	.build_id_bytes = 20, .entries_only = true, .path = "/usr/lib/libfoo.so.1",
};

/* The records of a program, one of each kind; returns their size. */
static size_t write_kind(int kind)
{
	switch (kind) {
	case SEAM_XRAY_ANNOUNCED_IMAGE:
		return seam_xray_write_image(buf, sizeof(room), &image);
	case SEAM_XRAY_ANNOUNCED_FUNCTIONS:
		return seam_xray_write_addresses(buf, sizeof(room),
			&(struct seam_xray_addresses) {
				.image = 3, .first_id = 18, .n = 3,
				.link_addresses = addresses });
	case SEAM_XRAY_ANNOUNCED_EVENT_TYPE:
		return seam_xray_write_named(buf, sizeof(room), kind,
			&(struct seam_xray_named) { 7, "request" });
	case SEAM_XRAY_ANNOUNCED_TRIGGER:
		return seam_xray_write_trigger(buf, sizeof(room),
			&(struct seam_xray_trigger) {
				.trigger = 1, .tid = 2, .number = 3, .tsc = 4,
				.ticks = 5, .function = 6 });
	case SEAM_XRAY_ANNOUNCED_NAME:
		return seam_xray_write_named(buf, sizeof(room), kind,
			&(struct seam_xray_named) { 9, "fib" });
	default:
		return seam_xray_write_match(buf, sizeof(room),
			&(struct seam_xray_match) { 1, 2 });
	}
}

/* An exact, aligned copy, so that a sanitizer sees any access beyond it. */
static int read_copy(const uint8_t *bytes, size_t size,
		     struct seam_xray_announcement *a)
{
	uint64_t *copy = malloc(size + !size);
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	r = seam_xray_read_announcement(
		(struct seam_bytes) { (const uint8_t *)copy, size }, a);
	if (r == 0)
		assert_true(announcement_again(a, (const uint8_t *)copy, size));
	free(copy);
	return r;
}

static void reads_what_was_written(void **state)
{
	struct seam_xray_announcement a;
	struct seam_bytes bytes = { buf, 0 };

	(void)state;
	bytes.size = write_kind(SEAM_XRAY_ANNOUNCED_IMAGE);
	assert_int_equal(seam_xray_read_announcement(bytes, &a), 0);
	assert_int_equal(a.kind, SEAM_XRAY_ANNOUNCED_IMAGE);
	assert_int_equal(a.image.image, 3);
	assert_int_equal(a.image.first_id, 17);
	assert_int_equal(a.image.n_functions, 200);
	assert_true(a.image.bias == image.bias);
	assert_int_equal(a.image.build_id_bytes, 20);
	assert_true(a.image.entries_only);
	assert_memory_equal(a.image.build_id, image.build_id, 20);
	assert_string_equal(a.image.path, image.path);
	bytes.size = write_kind(SEAM_XRAY_ANNOUNCED_FUNCTIONS);
	assert_int_equal(seam_xray_read_announcement(bytes, &a), 0);
	assert_int_equal(a.addresses.n, 3);
	assert_int_equal(a.addresses.first_id, 18);
	assert_memory_equal(a.addresses.link_addresses, addresses,
			    sizeof(addresses));
	bytes.size = write_kind(SEAM_XRAY_ANNOUNCED_EVENT_TYPE);
	assert_int_equal(seam_xray_read_announcement(bytes, &a), 0);
	assert_int_equal(a.named.number, 7);
	assert_string_equal(a.named.name, "request");
	bytes.size = write_kind(SEAM_XRAY_ANNOUNCED_TRIGGER);
	assert_int_equal(seam_xray_read_announcement(bytes, &a), 0);
	assert_int_equal(a.trigger.trigger, 1);
	assert_int_equal(a.trigger.tid, 2);
	assert_int_equal(a.trigger.number, 3);
	assert_int_equal(a.trigger.tsc, 4);
	assert_int_equal(a.trigger.ticks, 5);
	assert_int_equal(a.trigger.function, 6);
	bytes.size = write_kind(SEAM_XRAY_ANNOUNCED_NAME);
	assert_int_equal(seam_xray_read_announcement(bytes, &a), 0);
	assert_int_equal(a.named.number, 9);
	assert_string_equal(a.named.name, "fib");
	bytes.size = write_kind(SEAM_XRAY_ANNOUNCED_MATCH);
	assert_int_equal(seam_xray_read_announcement(bytes, &a), 0);
	assert_int_equal(a.match.trigger, 1);
	assert_int_equal(a.match.n_functions, 2);
}

static void a_cut_announcement_is_refused(void **state)
{
	struct seam_xray_announcement a;

	(void)state;
	for (int kind = 1; kind <= SEAM_XRAY_ANNOUNCED_NAME; kind++) {
		size_t size = write_kind(kind);

		assert_true(size > 0 && size % 8 == 0);
		assert_int_equal(read_copy(buf, size, &a), 0);
		for (size_t n = 0; n < size; n++)
			assert_int_equal(read_copy(buf, n, &a), -EBADMSG);
		memset(buf + size, 0, 8);
		assert_int_equal(read_copy(buf, size + 8, &a), -EBADMSG);
	}
}

static void each_flipped_bit_is_refused_or_a_value(void **state)
{
	struct seam_xray_announcement a;
	size_t n_taken = 0, n_refused = 0;

	(void)state;
	for (int kind = 1; kind <= SEAM_XRAY_ANNOUNCED_NAME; kind++) {
		size_t size = write_kind(kind);

		for (size_t bit = 0; bit < 8 * size; bit++) {
			buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (read_copy(buf, size, &a) == 0)
				n_taken++;
			else
				n_refused++;
			buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	assert_true(n_taken > 100 && n_refused > 100);
}

static void what_no_program_sends_is_refused(void **state)
{
	struct seam_xray_announcement a;
	size_t size = write_kind(SEAM_XRAY_ANNOUNCED_IMAGE);

	(void)state;
	memset(buf + 4, 0, 4);		/* image 0 */
	assert_int_equal(read_copy(buf, size, &a), -EBADMSG);
	write_kind(SEAM_XRAY_ANNOUNCED_IMAGE);
	memset(buf + 45, 'x', SEAM_XRAY_MAX_PATH);
	memset(buf + 45 + SEAM_XRAY_MAX_PATH, 0, 3);
	assert_int_equal(read_copy(buf, 48 + SEAM_XRAY_MAX_PATH, &a), -EBADMSG);
	memset(buf, 0, 64);		/* kind 0, and 7 */
	assert_int_equal(read_copy(buf, 64, &a), -EBADMSG);
	buf[0] = 7;
	assert_int_equal(read_copy(buf, 64, &a), -EBADMSG);
}

static void what_cannot_be_read_is_not_written(void **state)
{
	static uint64_t many[SEAM_XRAY_MAX_ADDRESSES];
	static char path[SEAM_XRAY_MAX_PATH + 10];
	struct seam_xray_addresses f = { 1, 1, SEAM_XRAY_MAX_ADDRESSES, many };
	struct seam_xray_image i = image;
	struct seam_xray_announcement a;
	size_t size;

	(void)state;
	assert_int_equal(seam_xray_write_addresses(buf, sizeof(room), &f),
			 sizeof(room));
	assert_int_equal(seam_xray_write_addresses(buf, sizeof(room) - 1, &f),
			 0);
	f.n++;
	assert_int_equal(seam_xray_write_addresses(buf, sizeof(room), &f), 0);
	f.n = 2;
	f.first_id = SEAM_XRAY_MAX_FUNCTION;
	assert_int_equal(seam_xray_write_addresses(buf, sizeof(room), &f), 0);
	f.first_id = 0;
	assert_int_equal(seam_xray_write_addresses(buf, sizeof(room), &f), 0);
	i.image = 0;
	assert_int_equal(seam_xray_write_image(buf, sizeof(room), &i), 0);
	i.image = 1;
	memset(path, 'x', sizeof(path) - 1);
	i.path = path;
	size = seam_xray_write_image(buf, sizeof(room), &i);
	assert_int_equal(read_copy(buf, size, &a), 0);
	assert_int_equal(seam_xray_write_image(buf, 4096, &i), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_was_written),
		cmocka_unit_test(a_cut_announcement_is_refused),
		cmocka_unit_test(each_flipped_bit_is_refused_or_a_value),
		cmocka_unit_test(what_no_program_sends_is_refused),
		cmocka_unit_test(what_cannot_be_read_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
