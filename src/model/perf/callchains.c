/* SPDX-License-Identifier: MIT */
/* callchains.c - add chains and change their leaf; see callchains.h */
#include "model/perf/callchains.h"

#include <linux/perf_event.h>
#include <stdlib.h>

static uint32_t add_new(struct seam_callchains *chains, int32_t pid,
			const void *words, size_t n, uint64_t hash)
{
	uint32_t id = SEAM_NONE;

	if (SEAM_ARRAY_RESERVE(&chains->words, n))
		id = SEAM_INDEX_APPEND(&chains->index, hash, &chains->items,
			(struct seam_callchain) {
				.first = chains->words.n, .n = (uint32_t)n,
				.pid = pid, .space = SEAM_NONE,
			});
	if (id == SEAM_NONE)
		return SEAM_NONE;
	if (n)
		memcpy(chains->words.items + chains->words.n, words, 8 * n);
	chains->words.n += n;
	return id;
}

uint32_t seam_callchains_find(struct seam_callchains *chains, int32_t pid,
			      const void *words, size_t n, seam_u128 sum)
{
	uint64_t hash = seam_hash_u128(sum);
	uint32_t id = SEAM_INDEX_FIND(&chains->index, hash, i,
			seam_callchains_is(chains, i, pid, words, n));

	if (id == SEAM_NONE)
		id = add_new(chains, pid, words, n, hash);
	/* an unused slot has chain 0, and a hit is compared with its words */
	if (!chains->recent)
		chains->recent = calloc(SEAM_CALLCHAINS_RECENT,
					sizeof(*chains->recent));
	if (id != SEAM_NONE && chains->recent)
		*seam_callchains_recent(chains, sum) =
			(struct seam_callchain_recent) { .sum = sum, .id = id };
	return id;
}

/* Make room for @by words before the @n. */
static size_t shift(uint64_t *words, size_t n, size_t by)
{
	memmove(words + by, words, n * sizeof(*words));
	return n + by;
}

/* Leave only the context of @marker, or that marker alone. */
static size_t cut_to(uint64_t *words, size_t n, uint64_t marker)
{
	size_t at = 0;

	while (at < n && words[at] != marker)
		at++;
	memmove(words, words + at, (n - at) * sizeof(*words));
	words[0] = marker;
	return at < n ? n - at : 1;
}

size_t seam_callchain_set_leaf(uint64_t *words, size_t n, uint64_t marker,
			       uint64_t ip)
{
	if (words[0] != marker && marker == (uint64_t)PERF_CONTEXT_USER &&
	    words[0] == (uint64_t)PERF_CONTEXT_KERNEL)
		n = cut_to(words, n, marker);
	if (words[0] != marker) {
		n = shift(words, n, 2);
		words[0] = marker;
	} else if (n < 2 || words[1] >= (uint64_t)PERF_CONTEXT_MAX) {
		n = shift(words, n, 1);
		words[0] = marker;
	}
	words[1] = ip;
	return n;
}

void seam_callchains_fini(struct seam_callchains *chains)
{
	free(chains->items.items);
	free(chains->words.items);
	free(chains->recent);
	seam_index_fini(&chains->index);
	*chains = (struct seam_callchains) { 0 };
}
