/* SPDX-License-Identifier: MIT */
/* jit_placements.c - the events of all processes; see jit_placements.h */
#include "symbol/jit/jit_placements.h"

#include <errno.h>
#include <stdlib.h>

#include "symbol/jit/jit_events.h"

/*
 * A rectangle of the code map is a part of a range that is in force from a time
 * on.  It is a new placement if the range was put there then, or if the range
 * was removed; else it is the rest of a placement from before.
 */
static bool is_new_placement(const struct seam_jit_layer *layer,
			     const struct seam_code_rect *rect,
			     uint32_t *object)
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

/*
 * Until when each range's first byte was its own: a part of it that is seen
 * longer means nothing from then on.
 */
static uint64_t *find_ends(const struct seam_code_map *map)
{
	uint64_t *ends = calloc(map->n_ranges + 1, sizeof(*ends));

	for (size_t i = 0; ends && i < map->rects.n; i++) {
		const struct seam_code_rect *rect = &map->rects.items[i];

		if (rect->range < map->n_ranges &&
		    rect->left == map->ends[rect->range].left &&
		    rect->to > ends[rect->range])
			ends[rect->range] = rect->to;
	}
	return ends;
}

static int add_rect(struct seam_jit_placements *to, int32_t pid,
		    const struct seam_jit_layer *layer,
		    const struct seam_code_rect *rect, uint64_t fork_ns,
		    const uint64_t *ends)
{
	const struct seam_code_map *map = &layer->map;
	struct seam_jit_placement p = {
		.pid = pid, .time_ns = rect->from ? rect->from : fork_ns,
		.start_addr = map->bounds[rect->left],
		.size = map->bounds[rect->right] - map->bounds[rect->left],
	};
	bool has_room = true;

	if (is_new_placement(layer, rect, &p.object)) {
		if (p.object != SEAM_NONE)
			p.offset = p.start_addr -
				layer->events.items[rect->range].start_addr;
		has_room = SEAM_ARRAY_ADD(&to->list, p);
	}
	if (has_room && rect->range < map->n_ranges &&
	    ends[rect->range] > rect->from && ends[rect->range] < rect->to) {
		p.object = SEAM_NONE;
		p.offset = 0;
		p.time_ns = ends[rect->range];
		has_room = SEAM_ARRAY_ADD(&to->list, p);
	}
	return has_room ? 0 : -ENOMEM;
}

static int add_layer(struct seam_jit_placements *to, int32_t pid,
		     const struct seam_jit_layer *layer, uint64_t fork_ns)
{
	const struct seam_code_map *map = &layer->map;
	uint64_t *ends = find_ends(map);
	int r = ends ? 0 : -ENOMEM;

	for (size_t i = 0; i < map->rects.n && r == 0; i++)
		if (map->rects.items[i].range != SEAM_NONE)
			r = add_rect(to, pid, layer, &map->rects.items[i],
				     fork_ns, ends);
	free(ends);
	return r;
}

int seam_jit_placements_read(struct seam_jit_placements *placements,
			     struct seam_jit_code *jit)
{
	int r = seam_jit_code_index(jit);

	for (size_t i = 0; r == 0 && i < jit->processes.n; i++) {
		const struct seam_jit_process *p = &jit->processes.items[i];
		uint64_t fork_ns = p->forks.n ?
			p->forks.items[p->forks.n - 1].time_ns + 1 : 0;

		for (int l = SEAM_JIT_N_LAYERS; r == 0 && l-- > 0;)
			r = add_layer(placements, p->pid, &p->layers[l],
				      fork_ns);
	}
	return r;
}

static int add_ends(const struct seam_jit_layer *layer, uint64_t *ends)
{
	uint64_t *of_ranges = find_ends(&layer->map);

	if (!of_ranges)
		return -ENOMEM;
	for (size_t i = 0; i < layer->map.n_ranges; i++) {
		uint32_t object = layer->events.items[i].object;

		if (object != SEAM_NONE && of_ranges[i] > ends[object])
			ends[object] = of_ranges[i];
	}
	free(of_ranges);
	return 0;
}

int seam_jit_placements_ends(struct seam_jit_code *jit, uint64_t *ends)
{
	int r = seam_jit_code_index(jit);

	for (size_t i = 0; r == 0 && i < jit->processes.n; i++)
		for (int l = 0; r == 0 && l < SEAM_JIT_N_LAYERS; l++)
			r = add_ends(&jit->processes.items[i].layers[l], ends);
	return r;
}
