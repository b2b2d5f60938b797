/* SPDX-License-Identifier: MIT */
/* index.c - insertion and growth; the look-up is inline in index.h */
#include "base/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_limit.h"

#define MIN_SLOTS 64

static void place(struct seam_index *index, struct seam_index_slot slot)
{
	size_t at = seam_index_start(index, slot.hash);

	while (index->slots[at].id != SEAM_NONE)
		at = (at + 1) & index->mask;
	index->slots[at] = slot;
}

static int grow(struct seam_index *index)
{
	size_t n_slots = index->slots ? (index->mask + 1) * 2 : MIN_SLOTS;
	struct seam_index old = *index;
	struct seam_index_slot *slots;

	if (n_slots > SIZE_MAX / sizeof(*slots))
		return -ENOMEM;
	slots = malloc(n_slots * sizeof(*slots));
	if (!slots) {
		seam_memory_refused();
		return -ENOMEM;
	}
	memset(slots, 0xff, n_slots * sizeof(*slots));
	index->slots = slots;
	index->mask = n_slots - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].id != SEAM_NONE)
			place(index, old.slots[i]);
	free(old.slots);
	return 0;
}

int seam_index_add(struct seam_index *index, uint64_t hash, uint32_t id)
{
	if ((!index->slots || index->n >= (index->mask + 1) / 2) &&
	    grow(index))
		return -ENOMEM;
	place(index, (struct seam_index_slot) {
		.hash = seam_index_tag(hash), .id = id,
	});
	index->n++;
	return 0;
}

void seam_index_fini(struct seam_index *index)
{
	free(index->slots);
	*index = (struct seam_index) { 0 };
}
