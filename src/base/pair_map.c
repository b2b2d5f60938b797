/* SPDX-License-Identifier: MIT */
/* pair_map.c - a hash table of slots that are overwritten; see pair_map.h */
#include "base/pair_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

uint32_t *seam_pair_map_find(struct seam_pair_map *map, uint64_t a, uint64_t b)
{
	uint32_t id;

	/* A hash costs as much as the rest of a load of a jitdump. */
	if (map->slots.n == 0)
		return NULL;
	id = SEAM_INDEX_FIND(&map->index, seam_hash_add(a, b), i,
			     map->slots.items[i].a == a &&
			     map->slots.items[i].b == b);
	return id == SEAM_NONE ? NULL : &map->slots.items[id].value;
}

int seam_pair_map_put(struct seam_pair_map *map, uint64_t a, uint64_t b,
		      uint32_t value)
{
	uint32_t *slot = seam_pair_map_find(map, a, b);

	if (slot) {
		*slot = value;
		return 0;
	}
	return SEAM_INDEX_APPEND(&map->index, seam_hash_add(a, b), &map->slots,
				 (struct seam_pair_map_slot) { a, b, value }) ==
	       SEAM_NONE ? -ENOMEM : 0;
}

void seam_pair_map_fini(struct seam_pair_map *map)
{
	free(map->slots.items);
	seam_index_fini(&map->index);
	*map = (struct seam_pair_map) { 0 };
}
