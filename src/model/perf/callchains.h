/* SPDX-License-Identifier: MIT */
/*
 * callchains.h - each distinct callchain of a recording once
 *
 * A recording has millions of samples and some thousands of callchains.
 * While records are read, a sample's chain becomes an id; its addresses are
 * resolved later, once for each id.
 *
 * A chain is a run of u64 as the kernel writes it, context markers included
 * (PERF_CONTEXT_*), leaf first.  The process belongs to its identity: equal
 * addresses of two processes are two chains.  Return addresses after the marker
 * SEAM_CALLCHAIN_JOINED are those of other samples (stack_joins.h).
 */
#pragma once

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"

/* A marker of ours, as those of guest_merge.h. */
#define SEAM_CALLCHAIN_JOINED ((uint64_t)-3002)

struct seam_callchain {
	size_t first;		/* in words */
	uint32_t n;
	int32_t pid;

	/*
	 * The stack of the last look-up, its address space, and from when to
	 * when it holds: nearly always the next sample's as well.
	 */
	uint32_t space;		/* SEAM_NONE: not resolved yet */
	uint32_t stack;
	uint64_t from_ns, to_ns;
};

/*
 * Most samples have one of few chains: the last one of each slot is found
 * without the keyed hash that the index needs.
 */
struct seam_callchain_recent {
	seam_u128 sum;		/* seam_hash_words() */
	uint32_t id;
};

enum { SEAM_CALLCHAINS_RECENT = 2048 };

struct seam_callchains {
	SEAM_ARRAY(struct seam_callchain) items;
	SEAM_ARRAY(uint64_t) words;
	struct seam_index index;
	struct seam_callchain_recent *recent;	/* NULL before the first */
	size_t max_items;	/* no more chains are added; 0: any number */
};

static inline bool seam_callchains_is(const struct seam_callchains *chains,
				      uint32_t id, int32_t pid,
				      const void *words, size_t n)
{
	const struct seam_callchain *chain = &chains->items.items[id];

	return chain->n == n && chain->pid == pid &&
	       memcmp(chains->words.items + chain->first, words, 8 * n) == 0;
}

static inline struct seam_callchain_recent *
seam_callchains_recent(const struct seam_callchains *chains, seam_u128 sum)
{
	return &chains->recent[(sum >> 64) % SEAM_CALLCHAINS_RECENT];
}

/* As seam_callchains_add(), for a chain that is not a recent one. */
uint32_t seam_callchains_find(struct seam_callchains *chains, int32_t pid,
			      const void *words, size_t n, seam_u128 sum);

/*
 * The id of the chain of @n words at @words (any alignment) in process
 * @pid; SEAM_NONE when memory ran out, or there are max_items.  Cost: a hash of the words, a probe,
 * a comparison; some 30 ns for 22 words that are in the cache.
 */
static inline uint32_t seam_callchains_add(struct seam_callchains *chains,
					   int32_t pid, const void *words,
					   size_t n)
{
	seam_u128 sum = seam_hash_words(words, n, (uint32_t)pid);
	const struct seam_callchain_recent *recent;

	if (chains->recent) {
		recent = seam_callchains_recent(chains, sum);
		if (recent->sum == sum &&
		    seam_callchains_is(chains, recent->id, pid, words, n))
			return recent->id;
	}
	return seam_callchains_find(chains, pid, words, n, sum);
}

void seam_callchains_fini(struct seam_callchains *chains);
