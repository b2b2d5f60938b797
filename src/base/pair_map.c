/* SPDX-License-Identifier: MIT */
/* pair_map.c - a hash table of slots that are overwritten; see pair_map.h */
#include "base/pair_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

uint32_t *seam_pair_map_find(struct seam_pair_map *map, uint64_t a, uint64_t b)
{
	struct seam_index_probe probe;
	uint32_t id;

	/* A hash costs as much as the rest of a load of a jitdump. */
	if (map->slots.n == 0)
		return NULL;
	probe = seam_index_probe(&map->index, seam_hash_add(a, b));
	while ((id = seam_index_next(&map->index, &probe)) != SEAM_NONE)
		if (map->slots.items[id].a == a &&
		    map->slots.items[id].b == b)
			return &map->slots.items[id].value;
	return NULL;
}

int seam_pair_map_put(struct seam_pair_map *map, uint64_t a, uint64_t b,
		      uint32_t value)
{
	uint32_t *slot = seam_pair_map_find(map, a, b);
	size_t n = map->slots.n;

	if (slot) {
		*slot = value;
		return 0;
	}
	if (!SEAM_ARRAY_RESERVE(&map->slots, 1) ||
	    seam_index_add(&map->index, seam_hash_add(a, b), (uint32_t)n))
		return -ENOMEM;
	map->slots.items[n].a = a;
	map->slots.items[n].b = b;
	map->slots.items[n].value = value;
	map->slots.n++;
	return 0;
}

void seam_pair_map_fini(struct seam_pair_map *map)
{
	free(map->slots.items);
	seam_index_fini(&map->index);
	*map = (struct seam_pair_map) { 0 };
}
