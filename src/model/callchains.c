/* SPDX-License-Identifier: MIT */
/* callchains.c - chains that are new; see callchains.h */
#include "model/callchains.h"

#include <stdlib.h>

uint32_t seam_callchains_add_new(struct seam_callchains *chains, int32_t pid,
				 const void *words, size_t n, uint64_t hash)
{
	struct seam_callchain *chain = SEAM_ARRAY_PUSH(&chains->items);
	uint32_t id = (uint32_t)(chains->items.n - 1);

	if (!chain)
		return SEAM_NONE;
	if (id == SEAM_NONE || !SEAM_ARRAY_RESERVE(&chains->words, n) ||
	    seam_index_add(&chains->index, hash, id)) {
		chains->items.n--;
		return SEAM_NONE;
	}
	*chain = (struct seam_callchain) {
		.first = chains->words.n, .n = (uint32_t)n, .pid = pid,
		.space = SEAM_NONE,
	};
	if (n)
		memcpy(chains->words.items + chains->words.n, words, 8 * n);
	chains->words.n += n;
	return id;
}

void seam_callchains_fini(struct seam_callchains *chains)
{
	free(chains->items.items);
	free(chains->words.items);
	seam_index_fini(&chains->index);
	*chains = (struct seam_callchains) { 0 };
}
