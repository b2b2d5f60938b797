/* SPDX-License-Identifier: MIT */
/*
 * hash.h - mixing bits for tables that live in memory only
 *
 * Not for files and not against an adversary that can measure us: a table
 * built over these degrades to longer probes, never to a wrong answer.
 *
 * The idea is the folded multiply: 64 x 64 -> 128 bits, both halves xored.
 * One multiplication takes in 16 bytes, so a callchain of 22 addresses
 * costs about 12 of them.
 */
#ifndef SEAM_HASH_H
#define SEAM_HASH_H

#include "base/base.h"

#include <string.h>

/* Odd constants with about half of their bits set: digits of pi. */
#define SEAM_HASH_K0 UINT64_C(0x243f6a8885a308d3)
#define SEAM_HASH_K1 UINT64_C(0x13198a2e03707345)

static inline uint64_t seam_hash_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 wide = (unsigned __int128)a * b;

	return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

static inline uint64_t seam_hash_u64(uint64_t v)
{
	return seam_hash_fold(v ^ SEAM_HASH_K0, SEAM_HASH_K1);
}

/* Add one value to a running hash. */
static inline uint64_t seam_hash_add(uint64_t hash, uint64_t v)
{
	return seam_hash_fold(hash ^ v ^ SEAM_HASH_K0, SEAM_HASH_K1);
}

static inline uint64_t seam_hash_word(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/*
 * Any bytes, any alignment.  Long runs go through four lanes that do not
 * wait for each other's multiplication.
 */
static inline uint64_t seam_hash_bytes(const void *data, size_t size,
				       uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t hash = seed ^ (size * SEAM_HASH_K1);
	uint64_t lanes[4] = { hash, ~hash, hash << 1, hash >> 1 };
	uint64_t a = 0, b = 0;

	if (size >= 64) {
		for (; size >= 64; size -= 64, p += 64)
			for (size_t i = 0; i < 4; i++)
				lanes[i] = seam_hash_fold(
					lanes[i] ^ SEAM_HASH_K0 ^
					seam_hash_word(p + 16 * i),
					SEAM_HASH_K1 ^
					seam_hash_word(p + 16 * i + 8));
		hash = seam_hash_fold(lanes[0] ^ lanes[1], SEAM_HASH_K0) ^
		       seam_hash_fold(lanes[2] ^ lanes[3], SEAM_HASH_K1);
	}
	for (; size >= 16; size -= 16, p += 16)
		hash = seam_hash_fold(hash ^ SEAM_HASH_K0 ^ seam_hash_word(p),
				      SEAM_HASH_K1 ^ seam_hash_word(p + 8));
	if (size > 8) {
		memcpy(&a, p, 8);
		memcpy(&b, p + 8, size - 8);
	} else if (size) {
		memcpy(&a, p, size);
	}
	return seam_hash_fold(hash ^ a ^ SEAM_HASH_K0, b ^ SEAM_HASH_K1);
}

#endif /* SEAM_HASH_H */
