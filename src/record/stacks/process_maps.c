/* SPDX-License-Identifier: MIT */
/* process_maps.c - lists of mappings, shared until changed; process_maps.h */
#include "record/stacks/process_maps.h"

#include "base/hash.h"

#include <stdlib.h>

enum {
	FIRST_CAP = 16,		/* mappings of a small program */
	STALE = 1024,		/* entries of the index, before it is rebuilt */
};

/* ---- a list ---- */

static size_t map_bytes(uint32_t cap)
{
	return sizeof(struct seam_process_map) +
	       cap * sizeof(struct seam_process_mapping);
}

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
	if (is_shared) {
		map = malloc(map_bytes(cap));
		if (!map)
			return NULL;
		memcpy(map, old, map_bytes(n));
		maps->n_mappings += n;
		use(maps, map->items, n, 1);
		seam_process_maps_put(maps, old);
	} else {
		map = realloc(old, map_bytes(cap));
		if (!map)
			return NULL;
		if (!old)
			map->n = map->flags = 0;
	}
	map->n_users = 1;
	map->cap = cap;
	return process->map = map;
}

/* Replace [from, to) of the list by @n mappings. */
static void replace(struct seam_process_maps *maps,
		    struct seam_process_map *map, uint32_t from, uint32_t to,
		    const struct seam_process_mapping *with, uint32_t n)
{
	use(maps, with, n, 1);
	use(maps, map->items + from, to - from, -1);
	memmove(map->items + from + n, map->items + to,
		(map->n - to) * sizeof(*map->items));
	memcpy(map->items + from, with, n * sizeof(*with));
	maps->n_mappings = maps->n_mappings - (to - from) + n;
	map->n = map->n - (to - from) + n;
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
	replace(maps, map, from, to, with, n);
	map->flags |= m->flags;
}

/* ---- processes ---- */

static uint64_t hash_of(int32_t pid)
{
	return seam_hash_u64((uint32_t)pid);
}

static uint32_t slot_of(const struct seam_process_maps *maps, int32_t pid)
{
	/* an entry may be of a process that had the slot before */
	return SEAM_INDEX_FIND(&maps->index, hash_of(pid), i,
			       maps->processes.items[i].pid == pid);
}

/* Drop the entries of ended processes from the index. */
static void rebuild_index(struct seam_process_maps *maps)
{
	struct seam_index index = { 0 };

	if (maps->index.n < STALE +
	    2 * (maps->processes.n - maps->free.n))
		return;
	for (size_t i = 0; i < maps->processes.n; i++)
		if (maps->processes.items[i].pid &&
		    seam_index_add(&index,
				   hash_of(maps->processes.items[i].pid),
				   (uint32_t)i) < 0) {
			seam_index_fini(&index);
			return;
		}
	seam_index_fini(&maps->index);
	maps->index = index;
}

static void free_slot(struct seam_process_maps *maps, uint32_t i)
{
	struct seam_mapped_process *process = &maps->processes.items[i];

	seam_process_maps_put(maps, process->map);
	*process = (struct seam_mapped_process) { 0 };
	(void)SEAM_ARRAY_ADD(&maps->free, i);
}

static uint32_t new_slot(struct seam_process_maps *maps)
{
	struct seam_mapped_process *process;

	if (maps->free.n)
		return maps->free.items[--maps->free.n];
	if (maps->processes.n >= SEAM_PROCESS_MAPS_MAX)
		return SEAM_NONE;
	process = SEAM_ARRAY_PUSH(&maps->processes);
	return process ? (uint32_t)maps->processes.n - 1 : SEAM_NONE;
}

/* The process of @pid, a new one if it is not known; NULL: no room. */
static struct seam_mapped_process *get_process(struct seam_process_maps *maps,
					int32_t pid)
{
	uint32_t i = pid > 0 ? slot_of(maps, pid) : SEAM_NONE;

	if (i != SEAM_NONE)
		return &maps->processes.items[i];
	rebuild_index(maps);
	i = pid > 0 ? new_slot(maps) : SEAM_NONE;
	if (i == SEAM_NONE)
		return NULL;
	maps->processes.items[i] = (struct seam_mapped_process) { .pid = pid };
	if (seam_index_add(&maps->index, hash_of(pid), i) == 0)
		return &maps->processes.items[i];
	free_slot(maps, i);
	return NULL;
}

static void set_map(struct seam_process_maps *maps,
		    struct seam_mapped_process *process,
		    struct seam_process_map *map)
{
	struct seam_process_map *old = process->map;

	process->map = seam_process_map_get(map);
	seam_process_maps_put(maps, old);
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

	if (!process) {
		maps->n_left_out++;
		return;
	}
	if (pid == parent) {
		process->n_threads++;
		return;
	}
	set_map(maps, process, seam_process_maps_find(maps, parent));
	process->has_birth = true;
	process->has_ended = false;
	process->n_threads = 1;
}

void seam_process_maps_exec(struct seam_process_maps *maps, int32_t pid)
{
	struct seam_mapped_process *process = get_process(maps, pid);

	if (!process)
		return;
	set_map(maps, process, NULL);
	/* the kernel has ended all other threads before */
	process->has_birth = true;
	process->n_threads = 1;
}

bool seam_process_maps_exit(struct seam_process_maps *maps, int32_t pid)
{
	uint32_t i = slot_of(maps, pid), *place;
	struct seam_mapped_process *process;

	if (i == SEAM_NONE)
		return false;
	process = &maps->processes.items[i];
	/* one that ran before may have more threads: until its pid is reused */
	if (!process->has_birth || process->n_threads == 0 ||
	    --process->n_threads > 0)
		return false;
	process->has_ended = true;
	place = &maps->ended[maps->n_ended++ % SEAM_PROCESS_MAPS_ENDED];
	if (*place && maps->processes.items[*place - 1].has_ended)
		free_slot(maps, *place - 1);
	*place = i + 1;
	return true;
}

struct seam_process_map *
seam_process_maps_find(const struct seam_process_maps *maps, int32_t pid)
{
	uint32_t i = pid > 0 ? slot_of(maps, pid) : SEAM_NONE;

	return i == SEAM_NONE ? NULL : maps->processes.items[i].map;
}

void seam_process_maps_fini(struct seam_process_maps *maps)
{
	for (size_t i = 0; i < maps->processes.n; i++)
		seam_process_maps_put(maps, maps->processes.items[i].map);
	free(maps->processes.items);
	free(maps->free.items);
	seam_index_fini(&maps->index);
	*maps = (struct seam_process_maps) { 0 };
}
