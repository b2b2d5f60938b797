/* SPDX-License-Identifier: MIT */
/*
 * hash.h - mixing bits for tables that live in memory only
 *
 * Names, addresses and ids come from whoever made a recording, and one that
 * makes all of them fall on one place would turn every look-up into a search.
 * So each process has a key of its own: what collides here does not collide
 * there.  What is written or drawn must not depend on it: seam_hash_stable().
 *
 * The idea is the folded multiply: 64 x 64 -> 128 bits, both halves xored.
 * One multiplication takes in 16 bytes, so a callchain of 22 addresses
 * costs about 12 of them.  A product with 0 forgets the other operand; so
 * the key is in both.
 */
#ifndef SEAM_HASH_H
#define SEAM_HASH_H

#include "base/base.h"

#include <string.h>

struct seam_hash_key {
	uint64_t a, b;
};

/* This process's; made before main(), then only read. */
extern struct seam_hash_key seam_hash_key;

static inline uint64_t seam_hash_fold(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 wide = (unsigned __int128)a * b;

	return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

static inline uint64_t seam_hash_u64(uint64_t v)
{
	return seam_hash_fold(v ^ seam_hash_key.a, seam_hash_key.b);
}

/* Add one value to a running hash. */
static inline uint64_t seam_hash_add(uint64_t hash, uint64_t v)
{
	return seam_hash_fold(hash ^ v ^ seam_hash_key.a, seam_hash_key.b);
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
static inline uint64_t seam_hash_by(struct seam_hash_key key, const void *data,
				    size_t size, uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t hash = seed ^ (size * key.b);
	uint64_t lanes[4] = { hash, ~hash, hash << 1, hash >> 1 };
	uint64_t a = 0, b = 0;

	if (size >= 64) {
		for (; size >= 64; size -= 64, p += 64)
			for (size_t i = 0; i < 4; i++)
				lanes[i] = seam_hash_fold(
					lanes[i] ^ key.a ^
					seam_hash_word(p + 16 * i),
					key.b ^
					seam_hash_word(p + 16 * i + 8));
		hash = seam_hash_fold(lanes[0] ^ lanes[1], key.a) ^
		       seam_hash_fold(lanes[2] ^ lanes[3], key.b);
	}
	for (; size >= 16; size -= 16, p += 16)
		hash = seam_hash_fold(hash ^ key.a ^ seam_hash_word(p),
				      key.b ^ seam_hash_word(p + 8));
	if (size > 8) {
		memcpy(&a, p, 8);
		memcpy(&b, p + 8, size - 8);
	} else if (size) {
		memcpy(&a, p, size);
	}
	return seam_hash_fold(hash ^ a ^ key.a, b ^ key.b);
}

static inline uint64_t seam_hash_bytes(const void *data, size_t size,
				       uint64_t seed)
{
	return seam_hash_by(seam_hash_key, data, size, seed);
}

/*
 * The same in every process: for what is kept or drawn.  Whoever made the
 * bytes can make others that have the same.
 */
uint64_t seam_hash_stable(const void *data, size_t size, uint64_t seed);

#endif /* SEAM_HASH_H */
