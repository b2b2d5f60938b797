/* SPDX-License-Identifier: MIT */
/* test_unwound.c - how a stack was unwound, written and read */
#include "wire/perf/unwound.h"

#include "unit.h"

static uint8_t buffer[SEAM_UNWOUND_MAX_BYTES];

/* Write, and take the size off; the RAW data are an own block of memory. */
static struct seam_bytes write_raw(uint8_t end, size_t n_frames,
				   const uint64_t *cfas, size_t n_cfas)
{
	size_t n = seam_unwound_write(buffer, end, n_frames, cfas, n_cfas);
	struct seam_bytes raw;
	uint32_t size;
	uint8_t *copy;

	assert_int_equal(n % 8, 0);
	memcpy(&size, buffer, sizeof(size));
	assert_int_equal(size + sizeof(size), n);
	copy = malloc(size);
	memcpy(copy, buffer + sizeof(size), size);
	raw = (struct seam_bytes) { copy, size };
	return raw;
}

static void free_raw(struct seam_bytes raw)
{
	free((void *)(uintptr_t)raw.data);
}

static const uint64_t cfas[] = {
	0x7ffd00001010, 0x7ffd00001020, 0x7ffd00001020, 0x7ffd00009000,
	/* another stack, and back */
	0x7f0000000018, 0x7ffd0000a000,
};

UNIT_TEST(what_is_written_is_read)
{
	for (size_t n = 0; n <= SEAM_ARRAY_SIZE(cfas); n++) {
		struct seam_bytes raw = write_raw(7, n + 1, cfas, n);
		struct seam_unwound read;
		uint8_t end;

		assert_true(seam_unwound_is(raw, &end));
		assert_int_equal(end, 7);
		assert_int_equal(seam_unwound_read(raw, &read), 0);
		assert_int_equal(read.end, 7);
		assert_int_equal(read.n_frames, n + 1);
		assert_int_equal(read.n_cfas, n);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(seam_unwound_next(&read), cfas[i]);
		free_raw(raw);
	}
}

/* The bytes that doc/formats/unwound.md shows. */
UNIT_TEST(the_bytes_are_those_of_the_document)
{
	static const uint8_t expected[] = {
		'S', 'u', 1, 0, 3, 2,
		0x82, 0x84, 0x80, 0x80, 0xfa, 0xff, 0x03, 0x08,
	};
	static const uint64_t two[] = { 0x7ffd00001010, 0x7ffd00001050 };
	struct seam_bytes raw = write_raw(0, 3, two, 2);

	assert_int_equal(raw.size, 20);
	assert_memory_equal(raw.data, expected, sizeof(expected));
	free_raw(raw);
}

UNIT_TEST(a_cfa_that_is_no_word_apart_ends_the_list)
{
	static const uint64_t odd[] = { 0x1000, 0x1010, 0x1014, 0x1020 };
	struct seam_bytes raw = write_raw(0, 5, odd, 4);
	struct seam_unwound read;

	assert_int_equal(seam_unwound_read(raw, &read), 0);
	assert_int_equal(read.n_frames, 5);
	assert_int_equal(read.n_cfas, 2);
	free_raw(raw);
}

UNIT_TEST(the_deepest_stack_fits)
{
	uint64_t *many = calloc(65536, sizeof(*many));
	struct seam_unwound read;
	struct seam_bytes raw;

	for (size_t i = 0; i < 65536; i++)
		many[i] = i * UINT64_C(0x123456789abcdef8);
	raw = write_raw(0, 65537, many, 65536);
	assert_true(raw.size <= SEAM_UNWOUND_MAX_BYTES);
	assert_int_equal(seam_unwound_read(raw, &read), 0);
	assert_int_equal(read.n_frames, 65537);
	assert_in_range(read.n_cfas, 1000, 65535);
	for (size_t i = 0; i < read.n_cfas; i++)
		assert_int_equal(seam_unwound_next(&read), many[i]);
	free_raw(raw);
	free(many);
}

UNIT_TEST(other_data_are_no_record)
{
	static const uint8_t later[] = { 'S', 'u', 2, 0, 0, 0, 0, 0 };
	static const uint8_t other[] = { 'S', 'v', 1, 0, 0, 0, 0, 0 };
	struct seam_unwound read;
	uint8_t end;

	assert_int_equal(seam_unwound_read((struct seam_bytes) { later, 8 },
					   &read), -ENOTSUP);
	assert_int_equal(seam_unwound_read((struct seam_bytes) { other, 8 },
					   &read), -ENOTSUP);
	assert_int_equal(seam_unwound_read((struct seam_bytes) { 0 }, &read),
			 -ENOTSUP);
	assert_false(seam_unwound_is((struct seam_bytes) { other, 8 }, &end));
}

/* Cut and changed at every byte: an error, or all that it announces. */
UNIT_TEST(damage_is_an_error_or_can_be_read)
{
	struct seam_bytes raw = write_raw(1, 6, cfas, 6);

	for (size_t i = 0; i < raw.size; i++) {
		for (int flip = 0; flip < 256; flip++) {
			uint8_t *copy = malloc(raw.size);
			struct seam_bytes bad = { copy, flip ? raw.size : i };
			struct seam_unwound read;

			memcpy(copy, raw.data, raw.size);
			copy[i] ^= (uint8_t)flip;
			if (!flip)	/* exactly as large as it is cut */
				bad.data = copy = realloc(copy, i ? i : 1);
			if (seam_unwound_read(bad, &read) == 0) {
				assert_true(read.n_cfas <= read.n_frames);
				assert_true(read.n_cfas <= bad.size);
				for (size_t k = 0; k < read.n_cfas; k++)
					seam_unwound_next(&read);
				assert_int_equal(read.cfas.error, 0);
			}
			free(copy);
		}
	}
	free_raw(raw);
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
