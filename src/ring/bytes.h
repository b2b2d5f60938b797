/* SPDX-License-Identifier: MIT */
/*
 * bytes.h - bytes of a ring that may change while they are read
 *
 * In a ring that overwrites, the reader copies bytes that a writer may be
 * overwriting, and drops those afterwards.  Both sides therefore use relaxed
 * atomics, of 8 bytes where a position allows it: the result is right or
 * dropped, and never undefined.  Positions are masked; a run may wrap.
 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

/* relaxed, all of these: the caller's barriers order them */
static inline void seam_ring_store_byte(uint8_t *at, uint8_t v)
{
	atomic_store_explicit((_Atomic uint8_t *)at, v, memory_order_relaxed);
}

static inline uint8_t seam_ring_load_byte(const uint8_t *at)
{
	return atomic_load_explicit((const _Atomic uint8_t *)at,
				    memory_order_relaxed);
}

/* Copy @bytes of @src to position @pos of @data, of @mask + 1 bytes. */
static inline void seam_ring_store(uint8_t *data, uint64_t mask, uint64_t pos,
				   const void *src, size_t bytes)
{
	const uint8_t *from = src;
	uint64_t word;

	for (; bytes > 0 && pos % 8; bytes--)
		seam_ring_store_byte(data + (pos++ & mask), *from++);
	for (; bytes >= 8; bytes -= 8, from += 8, pos += 8) {
		memcpy(&word, from, 8);
		atomic_store_explicit((_Atomic uint64_t *)(void *)
				      (data + (pos & mask)), word,
				      memory_order_relaxed);
	}
	for (; bytes > 0; bytes--)
		seam_ring_store_byte(data + (pos++ & mask), *from++);
}

/* Copy @bytes at position @pos of @data, of @mask + 1 bytes, to @dst. */
static inline void seam_ring_load(const uint8_t *data, uint64_t mask,
				  uint64_t pos, void *dst, size_t bytes)
{
	uint8_t *to = dst;
	uint64_t word;

	for (; bytes > 0 && pos % 8; bytes--)
		*to++ = seam_ring_load_byte(data + (pos++ & mask));
	for (; bytes >= 8; bytes -= 8, to += 8, pos += 8) {
		word = atomic_load_explicit((const _Atomic uint64_t *)
					    (const void *)(data + (pos & mask)),
					    memory_order_relaxed);
		memcpy(to, &word, 8);
	}
	for (; bytes > 0; bytes--)
		*to++ = seam_ring_load_byte(data + (pos++ & mask));
}
