/* SPDX-License-Identifier: MIT */
/*
 * live_maps.h - what is mapped in a process now
 *
 * A mapping covers what was there, of which parts before and after may be left.
 * Of more than 16384 mappings the later ones are left out.
 */
#pragma once

#include "base/array.h"
#include "model/perf/spaces.h"

/* Zeroed is empty. */
struct seam_live_maps {
	SEAM_ARRAY(struct seam_vma) vmas; /* ascending, disjoint */
	uint32_t n_changes;               /* so far */
};

void seam_live_maps_clear(struct seam_live_maps *maps);

/* 0 or -ENOMEM. */
int seam_live_maps_copy(struct seam_live_maps *to,
			const struct seam_live_maps *from);
int seam_live_maps_add(struct seam_live_maps *maps, const struct seam_vma *vma);

/* The first vma that ends after @addr.  O(log n). */
size_t seam_live_maps_at(const struct seam_live_maps *maps, uint64_t addr);
