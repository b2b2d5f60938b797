/* SPDX-License-Identifier: MIT */
/*
 * guest_merge.h - a guest record put into the callchain of its sample
 *
 * The result is a callchain with more kinds of words, so that all that is
 * done for callchains (each distinct one is stored and resolved once) is done
 * for merged stacks too:
 *
 *	PERF_CONTEXT_USER address
 *	SEAM_GUEST_FRAMES table frame frame frame	in place of VM frames
 *	SEAM_GUEST_CALLER address address		return addresses again
 *
 * A frame is one word: its place in the upper half, its id in the lower.
 * Other than an address, it has meaning with its table alone.
 */
#pragma once

#include "base/array.h"
#include "wire/guest/guest_decode.h"

/*
 * Markers, as the kernel's PERF_CONTEXT_*, of values that it does not use.
 * In a callchain from a file they lead to functions without names.
 */
#define SEAM_GUEST_FRAMES ((uint64_t)-3000)
#define SEAM_GUEST_CALLER ((uint64_t)-3001)

struct seam_guest_words {
	uint64_t *items;
	size_t n, cap;
};

static inline uint64_t seam_guest_word(struct seam_guest_frame frame)
{
	return (uint64_t)frame.place << 32 | frame.id;
}

static inline struct seam_guest_frame seam_guest_frame_of_word(uint64_t word)
{
	return (struct seam_guest_frame) {
		.id = (uint32_t)word, .place = (uint32_t)(word >> 32),
	};
}

/*
 * Merge a guest record into the @n words of @chain, to @out, which is
 * emptied first.  0; -EBADMSG when a segment is not in the callchain;
 * -ENOMEM.
 */
int seam_guest_merge(struct seam_guest_reader reader, const uint64_t *chain,
		     size_t n, struct seam_guest_words *out);
