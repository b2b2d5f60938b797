/* SPDX-License-Identifier: MIT */
/* process_maps.c - lists of mappings, shared until changed; process_maps.h */
#include "record/stacks/process_maps.h"

#include <stdlib.h>

enum { FIRST_CAP = 16 };	/* mappings of a small program */

/* ---- a list ---- */

struct seam_process_map *seam_process_map_get(struct seam_process_map *map)
{
	if (map)
		map->n_users++;
	return map;
}

static void use(struct seam_process_maps *maps,
		const struct seam_process_mapping *items, size_t count, int n)
{
	for (size_t i = 0; maps->use && i < count; i++)
		maps->use(maps->context, items[i].file, n);
}

void seam_process_maps_put(struct seam_process_maps *maps,
			   struct seam_process_map *map)
{
	if (!map || --map->n_users > 0)
		return;
	maps->n_mappings -= map->n;
	use(maps, map->items, map->n, -1);
	free(map);
}

/* The index of the first mapping that ends after @addr. */
static uint32_t first_after(const struct seam_process_map *map, uint64_t addr)
{
	return (uint32_t)SEAM_ARRAY_SEARCH(i, map->n,
					   map->items[i].end <= addr);
}

const struct seam_process_mapping *
seam_process_map_at(const struct seam_process_map *map, uint64_t addr)
{
	uint32_t i = first_after(map, addr);

	return i < map->n && map->items[i].begin <= addr ? &map->items[i] :
	       NULL;
}

/*
 * A list that @process alone uses, with room for two more mappings; NULL: out
 * of memory, or too many.
 */
static struct seam_process_map *own_map(struct seam_process_maps *maps,
					struct seam_mapped_process *process)
{
	struct seam_process_map *old = process->map, *map;
	uint32_t n = old ? old->n : 0, cap = old ? old->cap : FIRST_CAP;
	bool is_shared = old && old->n_users > 1;

	if (n + 2 > SEAM_PROCESS_MAX_MAPPINGS || maps->n_mappings + 2 +
	    (is_shared ? n : 0) > SEAM_PROCESS_MAPS_MAX_MAPPINGS)
		return NULL;
	if (old && !is_shared && n + 2 <= cap)
		return old;
	if (n + 2 > cap)
		cap *= 2;
	map = malloc(sizeof(*map) + cap * sizeof(*map->items));
	if (!map)
		return NULL;
	*map = (struct seam_process_map) {
		.n_users = 1, .n = n, .cap = cap,
		.flags = old ? old->flags : 0,
	};
	if (n)
		memcpy(map->items, old->items, n * sizeof(*map->items));
	maps->n_mappings += n;
	use(maps, map->items, n, 1);
	seam_process_maps_put(maps, old);
	return process->map = map;
}

/* Map @m over what is there: at most two parts of older mappings remain. */
static void cover(struct seam_process_maps *maps, struct seam_process_map *map,
		  const struct seam_process_mapping *m)
{
	struct seam_process_mapping with[3];
	uint32_t from = first_after(map, m->begin), to = from, n = 0;

	if (from < map->n && map->items[from].begin < m->begin) {
		with[n] = map->items[from];
		with[n++].end = m->begin;
	}
	with[n++] = *m;
	while (to < map->n && map->items[to].begin < m->end)
		to++;
	if (to > from && map->items[to - 1].end > m->end) {
		with[n] = map->items[to - 1];
		with[n].offset += m->end - with[n].begin;
		with[n++].begin = m->end;
	}
	use(maps, with, n, 1);
	use(maps, map->items + from, to - from, -1);
	memmove(map->items + from + n, map->items + to,
		(map->n - to) * sizeof(*map->items));
	memcpy(map->items + from, with, n * sizeof(*with));
	maps->n_mappings = maps->n_mappings - (to - from) + n;
	map->n = map->n - (to - from) + n;
	map->flags |= m->flags;
}

/* ---- processes ---- */

/* The place of the number of @pid's process, + 1; 0 there: it is not known. */
static uint32_t *place_of(struct seam_process_maps *maps, int32_t pid)
{
	uint32_t *at = &maps->by_pid[(uint32_t)pid % SEAM_PROCESS_MAPS_LISTS];

	while (*at && maps->processes.items[*at - 1].pid != pid)
		at = &maps->processes.items[*at - 1].next;
	return at;
}

static void free_slot(struct seam_process_maps *maps, uint32_t i)
{
	struct seam_mapped_process *process = &maps->processes.items[i];

	*place_of(maps, process->pid) = process->next;
	seam_process_maps_put(maps, process->map);
	*process = (struct seam_mapped_process) { 0 };
	(void)SEAM_ARRAY_ADD(&maps->free, i);
}

/* The process of @pid, a new one if it is not known; NULL: no room. */
static struct seam_mapped_process *get_process(struct seam_process_maps *maps,
					       int32_t pid)
{
	uint32_t *list = &maps->by_pid[(uint32_t)pid % SEAM_PROCESS_MAPS_LISTS];
	uint32_t i = pid > 0 ? *place_of(maps, pid) : 0;

	if (i)
		return &maps->processes.items[i - 1];
	if (pid <= 0 || (!maps->free.n &&
			 (maps->processes.n >= SEAM_PROCESS_MAPS_MAX ||
			  !SEAM_ARRAY_RESERVE(&maps->processes, 1))))
		return NULL;
	i = maps->free.n ? maps->free.items[--maps->free.n] :
			   (uint32_t)maps->processes.n++;
	maps->processes.items[i] = (struct seam_mapped_process) {
		.pid = pid, .next = *list,
	};
	*list = i + 1;
	return &maps->processes.items[i];
}

void seam_process_maps_add(struct seam_process_maps *maps, int32_t pid,
			   const struct seam_process_mapping *mapping)
{
	struct seam_mapped_process *process = get_process(maps, pid);
	struct seam_process_map *map = process ? own_map(maps, process) : NULL;

	if (mapping->begin >= mapping->end)
		return;
	if (map)
		cover(maps, map, mapping);
	else
		maps->n_left_out++;
}

void seam_process_maps_fork(struct seam_process_maps *maps, int32_t pid,
			    int32_t parent)
{
	struct seam_mapped_process *process = get_process(maps, pid);
	struct seam_process_map *old;

	if (!process) {
		maps->n_left_out++;
		return;
	}
	if (pid == parent) {
		process->n_threads++;
		return;
	}
	old = process->map;
	process->map = seam_process_map_get(seam_process_maps_find(maps,
								   parent));
	seam_process_maps_put(maps, old);
	process->has_birth = true;
	process->has_ended = false;
	process->n_threads = 1;
}

void seam_process_maps_exec(struct seam_process_maps *maps, int32_t pid)
{
	struct seam_mapped_process *process = get_process(maps, pid);

	if (!process)
		return;
	seam_process_maps_put(maps, process->map);
	process->map = NULL;
	/* the kernel has ended all other threads before */
	process->has_birth = true;
	process->n_threads = 1;
}

bool seam_process_maps_exit(struct seam_process_maps *maps, int32_t pid)
{
	uint32_t i = *place_of(maps, pid), *place;
	struct seam_mapped_process *process;

	if (!i)
		return false;
	process = &maps->processes.items[i - 1];
	/* one that ran before may have more threads: until its pid is reused */
	if (!process->has_birth || process->n_threads == 0 ||
	    --process->n_threads > 0)
		return false;
	process->has_ended = true;
	place = &maps->ended[maps->n_ended++ % SEAM_PROCESS_MAPS_ENDED];
	if (*place && maps->processes.items[*place - 1].has_ended)
		free_slot(maps, *place - 1);
	*place = i;
	return true;
}

struct seam_process_map *
seam_process_maps_find(const struct seam_process_maps *maps, int32_t pid)
{
	uint32_t i = maps->by_pid[(uint32_t)pid % SEAM_PROCESS_MAPS_LISTS];

	while (i && maps->processes.items[i - 1].pid != pid)
		i = maps->processes.items[i - 1].next;
	return i && pid > 0 ? maps->processes.items[i - 1].map : NULL;
}

void seam_process_maps_fini(struct seam_process_maps *maps)
{
	for (size_t i = 0; i < maps->processes.n; i++)
		seam_process_maps_put(maps, maps->processes.items[i].map);
	free(maps->processes.items);
	free(maps->free.items);
	*maps = (struct seam_process_maps) { 0 };
}
