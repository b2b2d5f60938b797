/* SPDX-License-Identifier: MIT */
/* latest.c - a hash table of slots that are overwritten; see latest.h */
#include "symbol/elf/latest.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static uint64_t hash(uint64_t a, uint64_t b)
{
	return seam_hash_add(a, b);
}

uint32_t *seam_latest_find(struct seam_latest *latest, uint64_t a, uint64_t b)
{
	struct seam_index_probe probe = seam_index_probe(&latest->index,
							 hash(a, b));
	uint32_t id;

	while ((id = seam_index_next(&latest->index, &probe)) != SEAM_NONE)
		if (latest->slots.items[id].a == a &&
		    latest->slots.items[id].b == b)
			return &latest->slots.items[id].value;
	return NULL;
}

int seam_latest_put(struct seam_latest *latest, uint64_t a, uint64_t b,
		    uint32_t value)
{
	uint32_t *slot = seam_latest_find(latest, a, b);
	size_t n = latest->slots.n;

	if (slot) {
		*slot = value;
		return 0;
	}
	if (!SEAM_ARRAY_RESERVE(&latest->slots, 1) ||
	    seam_index_add(&latest->index, hash(a, b), (uint32_t)n))
		return -ENOMEM;
	latest->slots.items[n].a = a;
	latest->slots.items[n].b = b;
	latest->slots.items[n].value = value;
	latest->slots.n++;
	return 0;
}

void seam_latest_fini(struct seam_latest *latest)
{
	free(latest->slots.items);
	seam_index_fini(&latest->index);
	*latest = (struct seam_latest) { 0 };
}
