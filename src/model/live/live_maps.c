/* SPDX-License-Identifier: MIT */
/* live_maps.c - an array of mappings, ascending; see live_maps.h */
#include "model/live/live_maps.h"

#include <errno.h>
#include <stdlib.h>

/* Of one process: the least that a record may be for. */
enum { MAX_VMAS = 16384 };

void seam_live_maps_clear(struct seam_live_maps *maps)
{
	free(maps->vmas.items);
	maps->vmas.items = NULL;
	maps->vmas.n = maps->vmas.cap = 0;
	maps->n_changes++;
}

int seam_live_maps_copy(struct seam_live_maps *to,
			const struct seam_live_maps *from)
{
	seam_live_maps_clear(to);
	return SEAM_ARRAY_EXTEND(&to->vmas, from->vmas.items, from->vmas.n)
		       ? 0
		       : -ENOMEM;
}

size_t seam_live_maps_at(const struct seam_live_maps *maps, uint64_t addr)
{
	const struct seam_vma *vmas = maps->vmas.items;

	return SEAM_ARRAY_SEARCH(i, maps->vmas.n, vmas[i].end <= addr);
}

int seam_live_maps_add(struct seam_live_maps *maps, const struct seam_vma *vma)
{
	size_t first = seam_live_maps_at(maps, vma->begin), last = first,
	       n_left = 0;
	struct seam_vma left[2];
	struct seam_vma *vmas = maps->vmas.items;

	while (last < maps->vmas.n && vmas[last].begin < vma->end)
		last++;
	/* a neighbour that reaches beyond keeps its part */
	if (last > first && vmas[first].begin < vma->begin) {
		left[n_left] = vmas[first];
		left[n_left++].end = vma->begin;
	}
	if (last > first && vmas[last - 1].end > vma->end) {
		left[n_left] = vmas[last - 1];
		left[n_left++].begin = vma->end;
	}
	if (maps->vmas.n - (last - first) + n_left + 1 > MAX_VMAS)
		return 0;
	if (!SEAM_ARRAY_RESERVE(&maps->vmas, 3))
		return -ENOMEM;
	vmas = maps->vmas.items;
	memmove(vmas + first + n_left + 1, vmas + last,
		(maps->vmas.n - last) * sizeof(*vmas));
	maps->vmas.n += n_left + 1 - (last - first);
	for (size_t i = 0; i < n_left; i++)
		vmas[first + (left[i].begin < vma->begin ? 0 : n_left)] =
			left[i];
	vmas[first + (n_left && left[0].begin < vma->begin)] = *vma;
	maps->n_changes++;
	return 0;
}
