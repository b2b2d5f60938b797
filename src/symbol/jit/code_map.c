/* SPDX-License-Identifier: MIT */
/* code_map.c - rectangles in a segment tree; the idea is in code_map.h */
#include "symbol/jit/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/radix_sort.h"

/* Sort the ends of all ranges, and give each range its two indices. */
static int find_bounds(struct seam_code_map *map,
		       const struct seam_code_range *ranges, size_t n)
{
	struct seam_radix_item *pairs = malloc((2 * n + 1) * sizeof(*pairs));
	size_t n_bounds = 0;
	int r = pairs ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < 2 * n; i++)
		pairs[i] = (struct seam_radix_item) {
			.key = i % 2 ? ranges[i / 2].end_addr :
			       ranges[i / 2].start_addr,
			.id = (uint32_t)i,
		};
	if (!r)
		r = seam_radix_sort(pairs, 2 * n);
	for (size_t i = 0; !r && i < 2 * n; i++) {
		struct seam_code_rect *end = &map->ends[pairs[i].id / 2];

		if (!i || map->bounds[n_bounds - 1] != pairs[i].key)
			map->bounds[n_bounds++] = pairs[i].key;
		if (pairs[i].id % 2)
			end->right = (uint32_t)n_bounds - 1;
		else
			end->left = (uint32_t)n_bounds - 1;
	}
	map->n_bounds = n_bounds;
	free(pairs);
	return r;
}

/* A tree of bits, 64 to a word, so that the bit before another is near. */
static int make_levels(struct seam_code_map *map)
{
	size_t n = map->n_bounds;

	do {
		n = n / 64 + 1;
		map->levels[map->n_levels] = calloc(n, sizeof(uint64_t));
		if (!map->levels[map->n_levels++])
			return -ENOMEM;
	} while (n > 1);
	return 0;
}

static void set_bit(struct seam_code_map *map, size_t i)
{
	for (unsigned int l = 0; l < map->n_levels; l++, i /= 64)
		map->levels[l][i / 64] |= UINT64_C(1) << i % 64;
}

static void clear_bit(struct seam_code_map *map, size_t i)
{
	for (unsigned int l = 0; l < map->n_levels; l++, i /= 64) {
		map->levels[l][i / 64] &= ~(UINT64_C(1) << i % 64);
		if (map->levels[l][i / 64])
			return;
	}
}

/* The largest set bit <= @i, or SEAM_NONE. */
static uint32_t bit_before(const struct seam_code_map *map, size_t i)
{
	unsigned int l = 0;
	uint64_t word = map->levels[0][i / 64] << (63 - i % 64);

	/* Up until something is to the left, then down along the right. */
	if (word)
		return (uint32_t)i - (uint32_t)__builtin_clzll(word);
	do {
		i /= 64;
		if (++l >= map->n_levels)
			return SEAM_NONE;
		word = map->levels[l][i / 64] &
		       ((UINT64_C(1) << i % 64) - 1);
	} while (!word);
	i = i / 64 * 64;
	for (;;) {
		i += 63 - (size_t)__builtin_clzll(word);
		if (!l)
			return (uint32_t)i;
		word = map->levels[--l][i];
		i *= 64;
	}
}

int seam_code_map_init(struct seam_code_map *map,
		       const struct seam_code_range *ranges, size_t n)
{
	*map = (struct seam_code_map) { .n_ranges = n };
	if (n >= SEAM_CODE_REMOVED)
		return -ENOMEM;
	map->bounds = malloc((2 * n + 1) * sizeof(*map->bounds));
	map->ends = calloc(n + 1, sizeof(*map->ends));
	if (!map->bounds || !map->ends || find_bounds(map, ranges, n))
		return -ENOMEM;
	map->alive = malloc((map->n_bounds + 1) * sizeof(*map->alive));
	if (!map->alive)
		return -ENOMEM;
	return make_levels(map);
}

/* End the one alive from bound @left on.  One of no duration is dropped. */
static struct seam_code_rect end_rect(struct seam_code_map *map, uint32_t left,
				      uint64_t time)
{
	struct seam_code_rect *rect = &map->rects.items[map->alive[left]];
	struct seam_code_rect ended = *rect;

	rect->to = time;
	if (rect->from == time)
		rect->range = SEAM_NONE;
	clear_bit(map, left);
	return ended;
}

static bool has_room(struct seam_code_map *map, size_t n)
{
	return SEAM_ARRAY_RESERVE(&map->rects, n) &&
	       map->rects.n < SEAM_NONE - n;
}

/* The caller has made room. */
static void begin_rect(struct seam_code_map *map, uint32_t left, uint32_t right,
		       uint32_t range, uint64_t time)
{
	map->alive[left] = (uint32_t)map->rects.n;
	map->rects.items[map->rects.n++] = (struct seam_code_rect) {
		.left = left, .right = right, .range = range,
		.from = time, .to = UINT64_MAX,
	};
	set_bit(map, left);
}

/* Clear [@left, @right) of what is alive; parts outside stay. */
static void clear(struct seam_code_map *map, uint32_t left, uint32_t right,
		  uint64_t time)
{
	uint32_t at;

	while ((at = bit_before(map, right - 1)) != SEAM_NONE &&
	       map->rects.items[map->alive[at]].right > left) {
		struct seam_code_rect old = end_rect(map, at, time);

		if (old.right > right)
			begin_rect(map, right, old.right, old.range, time);
		if (old.left < left)
			begin_rect(map, old.left, left, old.range, time);
		/* Each turn clears one bit in the range, or is the last. */
		if (old.left <= left)
			break;
	}
}

int seam_code_map_place(struct seam_code_map *map, uint32_t range,
			uint64_t time)
{
	uint32_t left = map->ends[range].left, right = map->ends[range].right;

	if (left >= right)
		return 0;
	if (!has_room(map, 3))
		return -ENOMEM;
	clear(map, left, right, time);
	begin_rect(map, left, right, range, time);
	return 0;
}

int seam_code_map_remove(struct seam_code_map *map, uint32_t range,
			 uint64_t time)
{
	uint32_t left = map->ends[range].left, right = map->ends[range].right;
	uint32_t at;

	while (right > left &&
	       (at = bit_before(map, right - 1)) != SEAM_NONE && at >= left) {
		right = at;
		if (map->rects.items[map->alive[at]].range != range)
			continue;
		if (!has_room(map, 1))
			return -ENOMEM;
		begin_rect(map, at, end_rect(map, at, time).right,
			   SEAM_CODE_REMOVED + range, time);
	}
	return 0;
}

/*
 * The nodes that together are [left, right): leaves are n_bounds .. 2 *
 * n_bounds - 1, the parent of i is i / 2.  Count or fill, as @nodes is.
 */
static void insert(const struct seam_code_map *map, uint32_t rect,
		   uint32_t *first, uint32_t *nodes)
{
	size_t left = map->rects.items[rect].left + map->n_bounds;
	size_t right = map->rects.items[rect].right + map->n_bounds;

	for (; left < right; left /= 2, right /= 2) {
		size_t here[2] = { 0, 0 };

		if (left % 2)
			here[0] = left++;
		if (right % 2)
			here[1] = --right;
		for (int i = 0; i < 2; i++) {
			if (here[i] && nodes)
				nodes[first[here[i]]++] = rect;
			else if (here[i])
				first[here[i]]++;
		}
	}
}

static void insert_all(const struct seam_code_map *map, uint32_t *first,
		       uint32_t *nodes)
{
	for (uint32_t i = 0; i < map->rects.n; i++)
		if (map->rects.items[i].range != SEAM_NONE)
			insert(map, i, first, nodes);
}

static void drop_building(struct seam_code_map *map)
{
	free(map->alive);
	map->alive = NULL;
	for (unsigned int l = 0; l < map->n_levels; l++)
		free(map->levels[l]);
	map->n_levels = 0;
}

int seam_code_map_seal(struct seam_code_map *map)
{
	size_t n_nodes = 2 * map->n_bounds;
	uint64_t sum = 0;

	drop_building(map);
	map->first = calloc(n_nodes + 1, sizeof(*map->first));
	if (!map->first)
		return -ENOMEM;
	insert_all(map, map->first, NULL);
	for (size_t i = 0; i <= n_nodes; i++) {
		uint32_t count = map->first[i];

		map->first[i] = (uint32_t)sum;
		sum += count;
	}
	map->nodes = sum < UINT32_MAX ? malloc((sum + 1) * sizeof(uint32_t)) :
		     NULL;
	if (!map->nodes)
		return -ENOMEM;
	insert_all(map, map->first, map->nodes);
	/* Filling moved each start to its end, the next one's start. */
	memmove(map->first + 1, map->first, n_nodes * sizeof(*map->first));
	map->first[0] = 0;
	return 0;
}

/* Rects of @node that began by @time; they follow one another in time. */
static size_t begun_by(const struct seam_code_map *map, size_t node,
		       uint64_t time)
{
	const uint32_t *nodes = map->nodes + map->first[node];

	return SEAM_ARRAY_SEARCH(i, map->first[node + 1] - map->first[node],
				 map->rects.items[nodes[i]].from <= time);
}

/* The rect of one node at @time, or NULL. */
static const struct seam_code_rect *at_node(const struct seam_code_map *map,
					    size_t node, uint64_t time)
{
	size_t n = begun_by(map, node, time);
	const struct seam_code_rect *rect = n ? &map->rects.items[
		map->nodes[map->first[node] + n - 1]] : NULL;

	return rect && time < rect->to ? rect : NULL;
}

/* The range in force from bound @i to the next. */
static uint32_t in_force(const struct seam_code_map *map, size_t i,
			 uint64_t time)
{
	for (size_t node = i + map->n_bounds; node; node /= 2) {
		const struct seam_code_rect *rect = at_node(map, node, time);

		if (rect)
			return rect->range;
	}
	return SEAM_NONE;
}

/* The last bound at or before @addr, plus 1; 0: none. */
static size_t bound_of(const struct seam_code_map *map, uint64_t addr)
{
	return SEAM_ARRAY_SEARCH(i, map->n_bounds, map->bounds[i] <= addr);
}

uint32_t seam_code_map_top(const struct seam_code_map *map, uint64_t addr,
			   uint64_t time, bool *is_there)
{
	size_t bound = map->nodes ? bound_of(map, addr) : 0;
	uint32_t range = bound ? in_force(map, bound - 1, time) : SEAM_NONE;

	*is_there = false;
	if (range == SEAM_NONE)
		return SEAM_NONE;
	if (range >= SEAM_CODE_REMOVED)
		return range - SEAM_CODE_REMOVED;
	*is_there = in_force(map, map->ends[range].left, time) == range;
	return range;
}

uint32_t seam_code_map_find(const struct seam_code_map *map, uint64_t addr,
			    uint64_t time)
{
	bool is_there;
	uint32_t range = seam_code_map_top(map, addr, time, &is_there);

	return is_there ? range : SEAM_NONE;
}

uint32_t seam_code_map_below(const struct seam_code_map *map, uint32_t range,
			     uint32_t *at)
{
	uint32_t left = map->ends[range].left;
	uint32_t end = *at == SEAM_NONE ? map->ends[range].right : *at;
	const struct seam_code_rect *rect;

	if (end <= left)
		return SEAM_NONE;
	*at = bit_before(map, end - 1);
	if (*at == SEAM_NONE)
		return SEAM_NONE;
	rect = &map->rects.items[map->alive[*at]];
	return rect->right > left ? rect->range : SEAM_NONE;
}

/* The first rect of one node that begins after @time, or NULL. */
static const struct seam_code_rect *
next_at_node(const struct seam_code_map *map, size_t node, uint64_t time)
{
	size_t i = map->first[node] + begun_by(map, node, time);

	return i < map->first[node + 1] ? &map->rects.items[map->nodes[i]] :
	       NULL;
}

uint32_t seam_code_map_next(const struct seam_code_map *map, uint64_t addr,
			    uint64_t time)
{
	size_t bound = map->nodes ? bound_of(map, addr) : 0;
	const struct seam_code_rect *first = NULL;

	for (size_t node = bound ? bound - 1 + map->n_bounds : 0; node;
	     node /= 2) {
		const struct seam_code_rect *rect =
			next_at_node(map, node, time);

		if (rect && (!first || rect->from < first->from))
			first = rect;
	}
	return first && first->range < SEAM_CODE_REMOVED ? first->range :
	       SEAM_NONE;
}

void seam_code_map_fini(struct seam_code_map *map)
{
	drop_building(map);
	free(map->bounds);
	free(map->ends);
	free(map->rects.items);
	free(map->first);
	free(map->nodes);
	*map = (struct seam_code_map) { 0 };
}
