/* SPDX-License-Identifier: MIT */
/* callchains.c - add chains; see callchains.h */
#include "model/perf/callchains.h"

#include <stdlib.h>

static uint32_t add_new(struct seam_callchains *chains, int32_t pid,
			const void *words, size_t n, uint64_t hash)
{
	uint32_t id = SEAM_NONE;

	if (chains->max_items && chains->items.n >= chains->max_items)
		return SEAM_NONE;
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

void seam_callchains_fini(struct seam_callchains *chains)
{
	free(chains->items.items);
	free(chains->words.items);
	free(chains->recent);
	seam_index_fini(&chains->index);
	*chains = (struct seam_callchains) { 0 };
}
