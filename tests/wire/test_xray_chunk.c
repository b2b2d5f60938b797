/* SPDX-License-Identifier: MIT */
/* test_xray_chunk.c - chunks of a traced thread, whole, cut and damaged */

#include "chunk_made.h"
#include "unit.h"

static struct chunk chunk, again;

static void fill(uint64_t seed)
{
	chunk_begin(&chunk, 10, 11, 12345678901234, 3, 99);
	while (chunk_random_record(&chunk, &seed))
		;
}

/*
 * Read the first @size bytes, which are copied so that a sanitizer sees any
 * access beyond; what is accepted is, written again, the same bytes.
 */
static struct seam_xray_chunk read_chunk(const uint8_t *bytes, size_t size)
{
	uint8_t *in = malloc(size + !size), *out = malloc(size + !size);
	struct seam_xray_chunk found;
	size_t n;

	assert_true(in && out);
	memcpy(in, bytes, size);
	seam_xray_chunk_read(in, size, out, NULL, &found);
	assert_true(found.n_bytes + found.bad_bytes <= size);
	if (found.n_bytes) {
		assert_true(chunk_of_body(&again, in, out, found.n_bytes));
		assert_int_equal(again.n_records, found.n_records);
		n = again.n;
		assert_true(n + found.bad_bytes <= size);
		assert_memory_equal(again.bytes, in, n);
		/* all bytes are valid, or invalid, or after the end */
		if (n + found.bad_bytes < size)
			assert_true(found.bad_bytes == 0 && size - n >= 8 &&
				    memcmp(in + n, "\0\0\0\0\0\0\0", 8) == 0);
	}
	free(in);
	free(out);
	return found;
}

UNIT_TEST(all_records_of_a_chunk_are_in_its_block)
{
	struct seam_xray_chunk found;

	for (uint64_t seed = 0; seed < 50; seed++) {
		fill(seed);
		found = read_chunk(chunk.bytes, sizeof(chunk.bytes));
		assert_int_equal(found.bad_bytes, 0);
		assert_int_equal(found.n_records, chunk.n_records);
		assert_int_equal(again.n, chunk.n);
		assert_int_equal(found.pid, 10);
		assert_int_equal(found.tid, 11);
		assert_int_equal(found.wall_us, 12345678901234);
		assert_int_equal(found.tsc, 99);
	}
}

UNIT_TEST(a_cut_chunk_has_its_whole_records)
{
	struct seam_xray_chunk found;
	uint64_t n_records = 0;

	fill(4);
	for (size_t size = 0; size < 6000; size++) {
		found = read_chunk(chunk.bytes, size);
		assert_true(found.n_records >= n_records);
		assert_true(found.n_records <= chunk.n_records);
		n_records = found.n_records;
		assert_int_equal(found.n_bytes > 0,
				 size >= SEAM_XRAY_PREAMBLE_BYTES);
		if (size < SEAM_XRAY_PREAMBLE_BYTES)
			assert_int_equal(found.bad_bytes, size);
	}
	assert_true(n_records > 100);
}

UNIT_TEST(each_flipped_bit_is_harmless)
{
	size_t n_refused = 0, n_bits = 0;

	fill(5);
	for (size_t i = 0; i < 4000; i++)
		for (int bit = 0; bit < 8; bit++, n_bits++) {
			struct seam_xray_chunk found;

			chunk.bytes[i] ^= (uint8_t)(1 << bit);
			found = read_chunk(chunk.bytes, 4096);
			n_refused += found.bad_bytes > 0;
			chunk.bytes[i] ^= (uint8_t)(1 << bit);
		}
	assert_true(n_refused > n_bits / 20);
}

static bool is_refused(const char *record, size_t size)
{
	struct seam_xray_chunk found;

	chunk_begin(&chunk, 1, 2, 3, 4, 5);
	chunk_call(&chunk, SEAM_XRAY_EXIT, 1, 1);
	memcpy(chunk.bytes + chunk.n, record, size);
	found = read_chunk(chunk.bytes, sizeof(chunk.bytes));
	assert_int_equal(found.n_records, 1);
	return found.bad_bytes == sizeof(chunk.bytes) - chunk.n;
}

#define REFUSED(bytes) assert_true(is_refused(bytes, sizeof(bytes) - 1))

UNIT_TEST(what_no_thread_writes_is_refused)
{
	REFUSED("\x02\0\0\0" "\1\0\0\0");	/* function 0 */
	REFUSED("\x00\0\0\0" "\1\0\0\0");	/* likewise */
	REFUSED("\x18\0\0\0" "\1\0\0\0");	/* action 4 */
	REFUSED("\x01\1\0\0\0");		/* NewBuffer */
	REFUSED("\x03");			/* EndOfBuffer */
	REFUSED("\x09\1");			/* WallTime */
	REFUSED("\x0f\1");			/* BufferExtents */
	REFUSED("\x13\1");			/* Pid */
	REFUSED("\x15");			/* does not exist */
	REFUSED("\xff");
	REFUSED("\x0d\1");			/* argument of an exit */
	/* not zero after the fields */
	REFUSED("\x07\0\0\0\0\0\0\0\0\1");
	REFUSED("\x05\0\0\0\0\0\0\0\0\0\0\1");
	REFUSED("\x0b\0\0\0\0\0\0\0\0\1");
	REFUSED("\x11\0\0\0\0\0\0\0\0\0\0\1");
	/* an event of 4097 bytes, of a negative size, with bad padding */
	REFUSED("\x0b\x01\x10\0\0");
	REFUSED("\x0b\xff\xff\xff\xff");
	REFUSED("\x0b\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0xy");
}

UNIT_TEST(a_preamble_is_as_threads_write_it)
{
	/* of each record, its kind and what comes after its fields */
	static const size_t at[] = { 0, 5, 15, 16, 29, 32, 37, 40, 48, 59 };

	chunk_begin(&chunk, 1, 2, 3, 4, 5);
	chunk_call(&chunk, SEAM_XRAY_EXIT, 1, 1);
	assert_int_equal(read_chunk(chunk.bytes, chunk.n).n_records, 1);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		chunk.bytes[at[i]] ^= 2;
		assert_int_equal(read_chunk(chunk.bytes, chunk.n).bad_bytes,
				 chunk.n);
		chunk.bytes[at[i]] ^= 2;
	}
	/* a second has 1,000,000 microseconds */
	memcpy(chunk.bytes + 25, "\x40\x42\x0f", 4);
	assert_int_equal(read_chunk(chunk.bytes, chunk.n).n_records, 0);
	memcpy(chunk.bytes + 25, "\0\0\0", 4);
	assert_int_equal(read_chunk(chunk.bytes, chunk.n).n_records, 1);
	memcpy(chunk.bytes + 25, "\x3f\x42\x0f", 4);
	assert_int_equal(read_chunk(chunk.bytes, chunk.n).n_records, 1);
}

UNIT_TEST(notes_the_functions_seen)
{
	uint64_t bits[2] = { 0 };
	struct seam_xray_seen seen = { .bits = bits, .n = 128 };
	uint8_t out[256];
	struct seam_xray_chunk found;

	chunk_begin(&chunk, 1, 2, 3, 4, 5);
	chunk_call(&chunk, SEAM_XRAY_ENTRY, 1, 1);
	chunk_call(&chunk, SEAM_XRAY_EXIT, 127, 1);
	chunk_call(&chunk, SEAM_XRAY_EXIT, 128, 1);
	chunk_call(&chunk, SEAM_XRAY_TAIL_EXIT, 64, 1);
	seam_xray_chunk_read(chunk.bytes, chunk.n, out, &seen, &found);
	assert_int_equal(found.n_records, 4);
	assert_int_equal(bits[0], 2);
	assert_int_equal(bits[1], UINT64_C(1) << 63 | 1);
	assert_int_equal(seen.max, 128);
	assert_true(seam_xray_has_seen(&seen, 127));
	assert_false(seam_xray_has_seen(&seen, 128));
	assert_false(seam_xray_has_seen(&seen, 2));
}

UNIT_TEST(a_mark_of_what_is_lost_is_no_record)
{
	struct seam_xray_chunk found;
	struct seam_xray_record mark = {
		.state = SEAM_XRAY_AT_TYPED,
		.marker.event_type = SEAM_XRAY_LOST,
		.data = { (const uint8_t *)"8 bytes", 8 },
	};

	chunk_begin(&chunk, 1, 2, 3, 4, 5);
	chunk_put(&chunk, &mark);
	found = read_chunk(chunk.bytes, chunk.n);
	assert_int_equal(found.n_records, 0);
	assert_int_equal(found.bad_bytes, 0);
	/* of another size it is an event of the program's, to readers too */
	mark.data.size = 7;
	chunk_put(&chunk, &mark);
	mark.data.size = 8;
	mark.marker.event_type = SEAM_XRAY_LOST - 1;
	chunk_put(&chunk, &mark);
	/* a custom event has no type; what follows it is its data */
	mark.state = SEAM_XRAY_AT_CUSTOM;
	chunk_put(&chunk, &mark);
	assert_int_equal(read_chunk(chunk.bytes, chunk.n).n_records, 3);
}

UNIT_TEST(room_for_a_payload_is_an_odd_number_of_words)
{
	for (size_t n = 0; n <= SEAM_XRAY_MAX_PAYLOAD; n++) {
		size_t room = seam_xray_payload_room(n);

		assert_true(room >= n && room < n + 16 + !n && room % 16 == 8);
	}
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
