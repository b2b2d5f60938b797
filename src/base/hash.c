/* SPDX-License-Identifier: MIT */
/* hash.c - the key of this process, and hashes of bytes; see hash.h */
#include "base/hash.h"

#include <endian.h>
#include <sys/auxv.h>
#include <sys/random.h>

struct seam_hash_key seam_hash_key;

void seam_hash_key_init(struct seam_hash_key *key, uint64_t k0, uint64_t k1)
{
	/* Source: the SipHash paper, 2.1: "somepseudorandomlygeneratedbytes" */
	key->v[0] = k0 ^ UINT64_C(0x736f6d6570736575);
	key->v[1] = k1 ^ UINT64_C(0x646f72616e646f6d);
	key->v[2] = k0 ^ UINT64_C(0x6c7967656e657261);
	key->v[3] = k1 ^ UINT64_C(0x7465646279746573);
	for (uint64_t i = 0; i < SEAM_ARRAY_SIZE(key->words); i++)
		key->words[i] = seam_hash_sip(key, &i, sizeof(i));
}

/*
 * Without getrandom(), as early in a boot or in a sandbox that forbids it, the
 * 16 random bytes of AT_RANDOM are used.
 */
__attribute__((constructor)) static void make_key(void)
{
	uint64_t k[2] = { 0 };
	unsigned long start;

	if (getrandom(k, sizeof(k), GRND_NONBLOCK) != sizeof(k)) {
		start = getauxval(AT_RANDOM);
		if (start)
			memcpy(k, (const void *)(uintptr_t)start, sizeof(k));
	}
	seam_hash_key_init(&seam_hash_key, k[0], k[1]);
}

static uint64_t sip_bytes(struct seam_sip *s, const uint8_t *p, size_t size,
			  uint64_t total)
{
	uint8_t last[8] = { 0 };

	for (; size >= 8; size -= 8, p += 8)
		seam_sip_word(s, le64toh(seam_u64_at(p)));
	if (size)
		memcpy(last, p, size);
	return seam_sip_end(s, total << 56 | le64toh(seam_u64_at(last)));
}

uint64_t seam_hash_sip(const struct seam_hash_key *key, const void *data,
		       size_t size)
{
	struct seam_sip s = seam_sip_begin(key);

	return sip_bytes(&s, data, size, size);
}

uint64_t seam_hash_bytes(const void *data, size_t size, uint64_t seed)
{
	struct seam_sip s = seam_sip_begin(&seam_hash_key);

	seam_sip_word(&s, seed);
	return sip_bytes(&s, data, size, size + 8);
}

seam_u128 seam_hash_long(const void *words, size_t n, uint64_t seed)
{
	const uint8_t *rest = (const uint8_t *)words + 8 * SEAM_HASH_WORDS;

	seed = seam_hash_bytes(rest, 8 * (n - SEAM_HASH_WORDS), seed);
	return seam_hash_nh(&seam_hash_key, words, SEAM_HASH_WORDS, seed);
}

/* -- without a key ------------------------------------------------------ */

/* Odd constants with about half of their bits set: digits of pi. */
#define PI_0 UINT64_C(0x243f6a8885a308d3)
#define PI_1 UINT64_C(0x13198a2e03707345)

/* 64 x 64 -> 128 bits, both halves xored. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	seam_u128 wide = seam_hash_product(a, b);

	return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

/* Values are in files that exist: they may not change. */
uint64_t seam_hash_stable(const void *data, size_t size, uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t hash = seed ^ (size * PI_1);
	uint64_t lanes[4] = { hash, ~hash, hash << 1, hash >> 1 };
	uint64_t a = 0, b = 0;

	if (size >= 64) {
		for (; size >= 64; size -= 64, p += 64)
			for (size_t i = 0; i < 4; i++)
				lanes[i] = fold(lanes[i] ^ PI_0 ^
						seam_u64_at(p + 16 * i),
						PI_1 ^ seam_u64_at(
							p + 16 * i + 8));
		hash = fold(lanes[0] ^ lanes[1], PI_0) ^
		       fold(lanes[2] ^ lanes[3], PI_1);
	}
	for (; size >= 16; size -= 16, p += 16)
		hash = fold(hash ^ PI_0 ^ seam_u64_at(p),
			    PI_1 ^ seam_u64_at(p + 8));
	if (size > 8) {
		memcpy(&a, p, 8);
		memcpy(&b, p + 8, size - 8);
	} else if (size) {
		memcpy(&a, p, size);
	}
	return fold(hash ^ a ^ PI_0, b ^ PI_1);
}
