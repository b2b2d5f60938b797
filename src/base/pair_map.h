/* SPDX-License-Identifier: MIT */
/* pair_map.h - a map from two numbers to the value put last */
#pragma once

#include "base/array.h"
#include "base/index.h"

struct seam_pair_map_slot {
	uint64_t a, b;
	uint32_t value;
};

/* Zeroed is valid and empty. */
struct seam_pair_map {
	SEAM_ARRAY(struct seam_pair_map_slot) slots;
	struct seam_index index;
};

/* The value of (@a, @b), to read or change until the next put; NULL: none. */
uint32_t *seam_pair_map_find(struct seam_pair_map *map, uint64_t a, uint64_t b);

/* 0 or -ENOMEM. */
int seam_pair_map_put(struct seam_pair_map *map, uint64_t a, uint64_t b,
		      uint32_t value);

void seam_pair_map_fini(struct seam_pair_map *map);
