/* SPDX-License-Identifier: MIT */
/* jit_placements.c - the events of all processes; see jit_placements.h */
#include "symbol/jit_placements.h"

#include <errno.h>
#include <stdlib.h>

#include "symbol/jit_events.h"
#include "symbol/radix.h"

/*
 * A rectangle of the code map is where a range is seen from a time on.  It says
 * something new if the range was put there then, or if what is left of it means
 * nothing any more; else it is the rest of what was there before.
 */
static bool is_news(const struct seam_jit_layer *layer,
		    const struct seam_code_rect *rect, uint32_t *object)
{
	const struct seam_code_map *map = &layer->map;
	uint32_t range = rect->range & ~(uint32_t)SEAM_CODE_REMOVED;
	const struct seam_jit_event *event = &layer->events.items[range];
	bool is_begin = event->time_ns == rect->from;

	*object = SEAM_NONE;
	if (rect->range & SEAM_CODE_REMOVED)
		return true;
	if (seam_code_map_find(map, map->bounds[map->ends[range].left],
			       rect->from) != range)
		return !is_begin;
	*object = event->object;
	return is_begin;
}

static int add_layer(struct seam_jit_placements *to, int32_t pid,
		     const struct seam_jit_layer *layer, uint64_t born_ns)
{
	const struct seam_code_map *map = &layer->map;

	for (size_t i = 0; i < map->rects.n; i++) {
		const struct seam_code_rect *rect = &map->rects.items[i];
		struct seam_jit_placement *slot;
		uint64_t start;
		uint32_t object;

		if (rect->range == SEAM_NONE || !is_news(layer, rect, &object))
			continue;
		slot = SEAM_ARRAY_PUSH(&to->list);
		if (!slot)
			return -ENOMEM;
		start = map->bounds[rect->left];
		*slot = (struct seam_jit_placement) {
			.pid = pid, .object = object, .start_addr = start,
			.time_ns = rect->from ? rect->from : born_ns,
			.size = map->bounds[rect->right] - start,
		};
		if (object != SEAM_NONE)
			slot->offset = start -
				layer->events.items[rect->range].start_addr;
	}
	return 0;
}

int seam_jit_placements_read(struct seam_jit_placements *placements,
			     struct seam_jit_code *jit)
{
	int r = seam_jit_code_index(jit);

	for (size_t i = 0; r == 0 && i < jit->processes.n; i++) {
		const struct seam_jit_process *p = &jit->processes.items[i];
		uint64_t born_ns = p->births.n ?
			p->births.items[p->births.n - 1].time_ns + 1 : 0;

		for (int l = SEAM_JIT_N_LAYERS; r == 0 && l-- > 0;)
			r = add_layer(placements, p->pid, &p->layers[l],
				      born_ns);
	}
	return r;
}

int seam_jit_placements_sort(struct seam_jit_placements *placements)
{
	size_t n = placements->list.n;
	struct seam_radix_item *pairs = malloc((n + 1) * sizeof(*pairs));
	struct seam_jit_placement *sorted = malloc((n + 1) * sizeof(*sorted));
	int r = pairs && sorted ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++)
		pairs[i] = (struct seam_radix_item) {
			placements->list.items[i].time_ns, (uint32_t)i };
	if (r == 0)
		r = seam_radix_sort(pairs, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		sorted[i] = placements->list.items[pairs[i].id];
	free(pairs);
	if (r == 0) {
		free(placements->list.items);
		placements->list.items = sorted;
		placements->list.cap = n + 1;
	} else {
		free(sorted);
	}
	return r;
}
