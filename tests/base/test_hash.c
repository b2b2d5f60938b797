/* SPDX-License-Identifier: MIT */
/* test_hash.c - hashes are those of the papers; see base/hash.h */
#include "base/hash.h"

#include "base/index.h"
#include "unit.h"

/* -- SipHash as its paper tells it, byte by byte -------------------------- */

static uint64_t little_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static uint64_t rotate(uint64_t v, int by)
{
	for (int i = 0; i < by; i++)
		v = v << 1 | v >> 63;
	return v;
}

static void rounds(uint64_t v[4], int n)
{
	static const int by[2][2] = { { 13, 16 }, { 17, 21 } };

	for (int i = 0; i < 2 * n; i++) {
		/* each half: (0, 1) and (2, 3), then (2, 1) and (0, 3) */
		int a = i % 2 ? 2 : 0, b = i % 2 ? 0 : 2;

		v[a] += v[1];
		v[b] += v[3];
		v[1] = rotate(v[1], by[i % 2][0]) ^ v[a];
		v[3] = rotate(v[3], by[i % 2][1]) ^ v[b];
		v[a] = rotate(v[a], 32);
	}
}

static uint64_t sip(int c, int d, const uint8_t key[16], const uint8_t *p,
		    size_t size)
{
	static const char init[] = "uespemosmodnarodarenegylsetybdet";
	uint64_t v[4], word;

	for (int i = 0; i < 4; i++)
		v[i] = little_endian((const uint8_t *)init + 8 * i, 8) ^
		       little_endian(key + 8 * (i % 2), 8);
	for (size_t at = 0; at <= size; at += 8) {
		size_t n = size - at < 8 ? size - at : 8;

		word = little_endian(p + at, n);
		if (n < 8)
			word |= (uint64_t)size << 56;
		v[3] ^= word;
		rounds(v, c);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	rounds(v, d);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void fill(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)i;
}

/* The paper's own example is of SipHash-2-4: key 00 to 0f, text 00 to 0e. */
UNIT_TEST(the_reference_gives_the_papers_example)
{
	uint8_t bytes[16];

	fill(bytes, sizeof(bytes));
	assert_true(sip(2, 4, bytes, bytes, 15) ==
		    UINT64_C(0xa129ca6149be45e5));
}

UNIT_TEST(bytes_are_hashed_with_siphash_1_3)
{
	static struct seam_hash_key key;
	uint8_t bytes[200], k[16];

	fill(k, sizeof(k));
	fill(bytes, sizeof(bytes));
	seam_hash_key_init(&key, little_endian(k, 8), little_endian(k + 8, 8));
	for (size_t at = 0; at < 8; at++)
		for (size_t size = 0; size <= sizeof(bytes) - 8; size++)
			assert_true(seam_hash_sip(&key, bytes + at, size) ==
				    sip(1, 3, k, bytes + at, size));
}

UNIT_TEST(numbers_and_seeds_are_bytes_before_the_text)
{
	static const char text[] = "\1\2\3\4\5\6\7\10\0\0\0\0\0\0\0\7text";
	uint64_t first = UINT64_C(0x0807060504030201), seed = 7;

	seed <<= 56;
	assert_true(seam_hash_u64(first) ==
		    seam_hash_sip(&seam_hash_key, text, 8));
	assert_true(seam_hash_add(first, seed) ==
		    seam_hash_sip(&seam_hash_key, text, 16));
	assert_true(seam_hash_bytes(text + 8, 12, first) ==
		    seam_hash_sip(&seam_hash_key, text, 20));
}

/* -- NH ------------------------------------------------------------------- */

/* One more product for the sum hi:lo, in pieces of 32 bits. */
static void add_product(uint64_t sum[2], uint64_t a, uint64_t b)
{
	for (int i = 0; i < 4; i++) {
		uint64_t part = (a >> 32 * (i / 2) & UINT32_MAX) *
				(b >> 32 * (i % 2) & UINT32_MAX);
		int at = 32 * (i / 2 + i % 2);
		uint64_t low = at < 64 ? part << at : 0;
		uint64_t high = at == 0 ? 0 : at == 32 ? part >> 32 : part;

		sum[0] += low;
		sum[1] += high + (sum[0] < low);
	}
}

UNIT_TEST(callchains_are_summed_as_in_the_header)
{
	const uint64_t *k = seam_hash_key.words;
	uint64_t words[SEAM_HASH_WORDS + 1] = { 0 };

	for (size_t i = 0; i < SEAM_HASH_WORDS; i++)
		words[i] = sip(1, 3, (uint8_t *)words, (uint8_t *)&i, 8);
	for (size_t n = 0; n <= SEAM_HASH_WORDS; n++) {
		uint64_t sum[2] = { 0 }, last = words[n];
		seam_u128 got = seam_hash_words(words, n, 77);

		words[n] = 0;
		add_product(sum, n + k[0], 77 + k[1]);
		for (size_t i = 0; i < n; i += 2)
			add_product(sum, words[i] + k[i + 2],
				    words[i + 1] + k[i + 3]);
		words[n] = last;
		assert_true((uint64_t)got == sum[0]);
		assert_true((uint64_t)(got >> 64) == sum[1]);
	}
}

/* -- tables --------------------------------------------------------------- */

/* Mean look-ups per id; of half-full tables of random hashes, 1.5. */
static double probes_of(uint64_t (*value)(uint64_t i), size_t n)
{
	struct seam_index index = { 0 };
	size_t n_slots = 0;

	for (uint32_t id = 0; id < n; id++)
		assert_int_equal(seam_index_add(
				 &index, seam_hash_u64(value(id)), id), 0);
	for (uint32_t id = 0; id < n; id++) {
		uint64_t hash = seam_hash_u64(value(id));
		size_t at = seam_index_start(&index, seam_index_tag(hash));

		do
			n_slots++;
		while (index.slots[at++ & index.mask].id != id);
	}
	seam_index_fini(&index);
	return (double)n_slots / (double)n;
}

static uint64_t count_up(uint64_t i)
{
	return i;
}

static uint64_t high_bits(uint64_t i)
{
	return i << 46;
}

static uint64_t pairs(uint64_t i)
{
	return i << 32 | (uint32_t)~i;
}

static uint64_t reversed(uint64_t i)
{
	uint64_t v = 0;

	for (int bit = 0; bit < 64; bit++)
		v |= (i >> bit & 1) << (63 - bit);
	return v;
}

UNIT_TEST(a_table_of_any_pattern_stays_short_to_search)
{
	uint64_t (*const patterns[])(uint64_t) = {
		count_up, high_bits, pairs, reversed,
	};

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(patterns); i++)
		assert_true(probes_of(patterns[i], 1 << 17) < 1.7);
}

/* Kept in files and seen in pictures. */
UNIT_TEST(a_stable_hash_is_the_same_in_every_process)
{
	uint64_t words[25];

	for (uint64_t i = 0; i < SEAM_ARRAY_SIZE(words); i++)
		words[i] = i * UINT64_C(0x0123456789abcdef);
	assert_true(seam_hash_stable("seam", 4, 0) ==
		    UINT64_C(0xee70fa2d330fe8d0));
	assert_true(seam_hash_stable(words, sizeof(words), 7) ==
		    UINT64_C(0x9fe6d02b03d31ef0));
}

UNIT_MAIN(NULL, NULL, NULL, NULL)
