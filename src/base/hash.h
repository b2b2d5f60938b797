/* SPDX-License-Identifier: MIT */
/*
 * hash.h - hashes for tables that live in memory only
 *
 * Names, addresses and ids come from the author of a recording, so hashes
 * depend on a random key of the process: no set of inputs chosen before the key
 * is known collides more often than chance.
 *
 *   strings, numbers   SipHash-1-3.  Source: Aumasson, Bernstein, "SipHash: a
 *                      fast short-input PRF", INDOCRYPT 2012
 *   callchains         NH, then SipHash-1-3 of its 128 bits: two chains
 *                      collide in NH with a probability of at most 2^-64.
 *                      Source: Black et al., "UMAC: Fast and Secure Message
 *                      Authentication", CRYPTO 1999, theorem 4.2
 *
 * Folded multiplication (as in wyhash) has no such bound: equal lanes cancel
 * one another under any key.  Output must not depend on the key: it uses
 * seam_hash_stable().
 */
#pragma once

#include "base/base.h"

#include <string.h>

enum {
	SEAM_HASH_WORDS = 254,	/* of a callchain, hashed by NH */
};

struct seam_hash_key {
	uint64_t v[4];		/* SipHash's state before the first word */
	/* NH's: two for the header, one for each word */
	uint64_t words[2 + SEAM_HASH_WORDS];
};

/* The key of this process; made before main(), then only read. */
extern struct seam_hash_key seam_hash_key;

/* Make @key from 128 random bits. */
void seam_hash_key_init(struct seam_hash_key *key, uint64_t k0, uint64_t k1);

/* -- SipHash-1-3 -------------------------------------------------------- */

struct seam_sip {
	uint64_t v0, v1, v2, v3;
};

static inline struct seam_sip seam_sip_begin(const struct seam_hash_key *key)
{
	return (struct seam_sip) { key->v[0], key->v[1], key->v[2], key->v[3] };
}

static inline uint64_t seam_sip_rotate(uint64_t v, unsigned int by)
{
	return v << by | v >> (64 - by);
}

static inline void seam_sip_round(struct seam_sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = seam_sip_rotate(s->v1, 13) ^ s->v0;
	s->v3 = seam_sip_rotate(s->v3, 16) ^ s->v2;
	s->v0 = seam_sip_rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = seam_sip_rotate(s->v1, 17) ^ s->v2;
	s->v3 = seam_sip_rotate(s->v3, 21) ^ s->v0;
	s->v2 = seam_sip_rotate(s->v2, 32);
}

static inline void seam_sip_word(struct seam_sip *s, uint64_t word)
{
	s->v3 ^= word;
	seam_sip_round(s);
	s->v0 ^= word;
}

/* @last: the bytes after the last whole word, and the size in the top byte. */
static inline uint64_t seam_sip_end(struct seam_sip *s, uint64_t last)
{
	seam_sip_word(s, last);
	s->v2 ^= 0xff;
	seam_sip_round(s);
	seam_sip_round(s);
	seam_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* -- numbers and bytes ---------------------------------------------------- */

static inline uint64_t seam_hash_u64(uint64_t v)
{
	struct seam_sip s = seam_sip_begin(&seam_hash_key);

	seam_sip_word(&s, v);
	return seam_sip_end(&s, UINT64_C(8) << 56);
}

/* Two values; or one more value for a running hash. */
static inline uint64_t seam_hash_add(uint64_t hash, uint64_t v)
{
	struct seam_sip s = seam_sip_begin(&seam_hash_key);

	seam_sip_word(&s, hash);
	seam_sip_word(&s, v);
	return seam_sip_end(&s, UINT64_C(16) << 56);
}

/* SipHash-1-3 of @size bytes, any alignment, under @key. */
uint64_t seam_hash_sip(const struct seam_hash_key *key, const void *data,
		       size_t size);

/* A hash of @size bytes and @seed, a number or 0. */
uint64_t seam_hash_bytes(const void *data, size_t size, uint64_t seed);

/* -- callchains --------------------------------------------------------- */

__extension__ typedef unsigned __int128 seam_u128;

static inline seam_u128 seam_hash_product(uint64_t a, uint64_t b)
{
	return (seam_u128)a * b;
}

/*
 * The sum of (w0 + k0) * (w1 + k1) over pairs of words, mod 2^128.  The
 * first pair is (n, seed), so chains of several lengths differ there; an odd
 * word is paired with 0.  Two messages that differ in a pair are equal for
 * one in 2^64 of that pair's keys, whatever the other pairs are.
 */
static inline seam_u128 seam_hash_nh(const struct seam_hash_key *key,
				     const void *words, size_t n, uint64_t seed)
{
	const uint64_t *k = key->words;
	const uint8_t *p = words;
	seam_u128 sum = seam_hash_product(n + k[0], seed + k[1]);

#pragma GCC unroll 4
	for (k += 2; n >= 2; n -= 2, k += 2, p += 16)
		sum += seam_hash_product(seam_u64_at(p) + k[0],
					 seam_u64_at(p + 8) + k[1]);
	if (n)
		sum += seam_hash_product(seam_u64_at(p) + k[0], k[1]);
	return sum;
}

/* As seam_hash_words(), for more than SEAM_HASH_WORDS. */
seam_u128 seam_hash_long(const void *words, size_t n, uint64_t seed);

/*
 * A hash of @n words, any alignment, and @seed; seam_hash_u128() reduces it
 * to 64 bits.  The products are independent: 22 addresses cost about 30
 * cycles.  Words beyond SEAM_HASH_WORDS go through
 * SipHash into the seed.
 */
static inline seam_u128 seam_hash_words(const void *words, size_t n,
					uint64_t seed)
{
	if (__builtin_expect(n > SEAM_HASH_WORDS, 0))
		return seam_hash_long(words, n, seed);
	return seam_hash_nh(&seam_hash_key, words, n, seed);
}

static inline uint64_t seam_hash_u128(seam_u128 v)
{
	return seam_hash_add((uint64_t)v, (uint64_t)(v >> 64));
}

/*
 * The same in every process: for what is stored or drawn.  Other bytes with
 * the same hash are easy to make.
 */
uint64_t seam_hash_stable(const void *data, size_t size, uint64_t seed);
