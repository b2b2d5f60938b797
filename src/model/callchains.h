/* SPDX-License-Identifier: MIT */
/*
 * callchains.h - each distinct callchain of a recording once
 *
 * A recording has millions of samples and some thousands of callchains.
 * While records are read, a sample's chain becomes an id; what the addresses
 * mean is asked later, once for each id.
 *
 * A chain is a run of u64 as the kernel writes it, context markers included
 * (PERF_CONTEXT_*), leaf first.  The process belongs to its identity: equal
 * addresses of two processes are two chains.
 */
#ifndef SEAM_CALLCHAINS_H
#define SEAM_CALLCHAINS_H

#include "base/array.h"
#include "base/hash.h"
#include "base/index.h"

struct seam_callchain {
	size_t first;		/* in words */
	uint32_t n;
	int32_t pid;

	/*
	 * What it was resolved to last, for whom, and from when to when that
	 * holds: the next sample asks the same question nearly always.
	 */
	uint32_t space;		/* SEAM_NONE: not resolved yet */
	uint32_t stack;
	uint64_t from_ns, to_ns;
};

struct seam_callchains {
	SEAM_ARRAY(struct seam_callchain) items;
	SEAM_ARRAY(uint64_t) words;
	struct seam_index index;
};

/* The id of a chain that was not there; see seam_callchains_add(). */
uint32_t seam_callchains_add_new(struct seam_callchains *chains, int32_t pid,
				 const void *words, size_t n, uint64_t hash);

/*
 * The id of the chain of @n words at @words (any alignment) in process
 * @pid; SEAM_NONE when memory ran out.  Cost: a hash of the words, a probe,
 * a comparison; some 40 ns for 22 words that are in the cache.
 */
static inline uint32_t seam_callchains_add(struct seam_callchains *chains,
					   int32_t pid, const void *words,
					   size_t n)
{
	uint64_t hash = seam_hash_bytes(words, 8 * n, (uint32_t)pid);
	struct seam_index_probe probe = seam_index_probe(&chains->index, hash);
	uint32_t id;

	while ((id = seam_index_next(&chains->index, &probe)) != SEAM_NONE) {
		const struct seam_callchain *chain = &chains->items.items[id];

		if (chain->n == n && chain->pid == pid &&
		    memcmp(chains->words.items + chain->first, words,
			   8 * n) == 0)
			return id;
	}
	return seam_callchains_add_new(chains, pid, words, n, hash);
}

/*
 * Make @ip, an address of the context @marker, the leaf of a chain of @n > 0
 * words that begins with a marker.  @words has room for two more.  Returns how
 * many words it has then.
 *
 * The kernel walks the stack from the registers of the interrupt, which comes
 * some instructions after the one that a precise event is about, maybe in the
 * kernel after one of the user: what ran later than a user's instruction did
 * not call it and is left out.
 *
 * Source: Linux, arch/x86/events/intel/ds.c, setup_pebs_fixed_sample_data();
 * perf report takes the leaf from sample->ip (util/event.c).
 */
size_t seam_callchain_set_leaf(uint64_t *words, size_t n, uint64_t marker,
			       uint64_t ip);

void seam_callchains_fini(struct seam_callchains *chains);

#endif /* SEAM_CALLCHAINS_H */
