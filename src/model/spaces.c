/* SPDX-License-Identifier: MIT */
/* spaces.c - rectangles of addresses and times; the contract is in spaces.h */
#include "model/spaces.h"

#include <errno.h>
#include <stdlib.h>

uint32_t seam_spaces_add(struct seam_spaces *spaces)
{
	struct seam_space *space = SEAM_ARRAY_PUSH(&spaces->items);

	if (!space)
		return SEAM_NONE;
	*space = (struct seam_space) { 0 };
	return (uint32_t)(spaces->items.n - 1);
}

/* Position in live of the first area that ends above @addr. */
static size_t first_above(const struct seam_space *space, uint64_t addr)
{
	size_t low = 0, high = space->live.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct seam_area *area =
			&space->areas.items[space->live.items[mid]];

		if (area->end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Append an area; the caller puts it among the live ones. */
static uint32_t add_area(struct seam_space *space, struct seam_area area)
{
	struct seam_area *slot = SEAM_ARRAY_PUSH(&space->areas);

	if (!slot)
		return SEAM_NONE;
	*slot = area;
	return (uint32_t)(space->areas.n - 1);
}

static void remove_live(struct seam_space *space, size_t at, size_t n)
{
	if (n == 0)
		return;
	memmove(space->live.items + at, space->live.items + at + n,
		(space->live.n - at - n) * sizeof(*space->live.items));
	space->live.n -= n;
}

static int insert_live(struct seam_space *space, size_t at, uint32_t area)
{
	if (area == SEAM_NONE || !SEAM_ARRAY_RESERVE(&space->live, 1))
		return -ENOMEM;
	memmove(space->live.items + at + 1, space->live.items + at,
		(space->live.n - at) * sizeof(*space->live.items));
	space->live.items[at] = area;
	space->live.n++;
	return 0;
}

/*
 * End the live areas that [begin, end) touches.  Parts of the first and the
 * last that stick out live on as areas of their own.  Returns the position
 * where an area for [begin, end) belongs, or -ENOMEM.
 */
static ssize_t make_way(struct seam_space *space, uint64_t time_ns,
			uint64_t begin, uint64_t end)
{
	size_t at = first_above(space, begin), n = 0;
	struct seam_area left = { 0 }, right = { 0 };

	for (; at + n < space->live.n; n++) {
		uint32_t id = space->live.items[at + n];
		struct seam_area *area = &space->areas.items[id];

		if (area->begin >= end)
			break;
		area->to_ns = time_ns;
		if (area->begin < begin) {
			left = *area;
			left.end = begin;
		}
		if (area->end > end) {
			right = *area;
			right.begin_pos += end - area->begin;
			right.begin = end;
		}
	}
	remove_live(space, at, n);
	left.from_ns = right.from_ns = time_ns;
	left.to_ns = right.to_ns = UINT64_MAX;
	if (right.end && insert_live(space, at, add_area(space, right)))
		return -ENOMEM;
	if (left.end && insert_live(space, at++, add_area(space, left)))
		return -ENOMEM;
	return (ssize_t)at;
}

int seam_spaces_map(struct seam_spaces *spaces, uint32_t id, uint64_t time_ns,
		    uint64_t begin, uint64_t end, uint32_t mapping)
{
	struct seam_space *space = &spaces->items.items[id];
	ssize_t at;

	if (begin >= end)
		return 0;
	at = make_way(space, time_ns, begin, end);
	if (at < 0)
		return (int)at;
	return insert_live(space, (size_t)at, add_area(space,
		(struct seam_area) {
			.begin = begin, .end = end, .from_ns = time_ns,
			.to_ns = UINT64_MAX, .mapping = mapping,
		}));
}

int seam_spaces_unmap(struct seam_spaces *spaces, uint32_t id,
		      uint64_t time_ns, uint64_t begin, uint64_t end)
{
	ssize_t at = begin < end ? make_way(&spaces->items.items[id], time_ns,
					    begin, end) : 0;

	return at < 0 ? (int)at : 0;
}

void seam_spaces_clear(struct seam_spaces *spaces, uint32_t id,
		       uint64_t time_ns)
{
	struct seam_space *space = &spaces->items.items[id];

	for (size_t i = 0; i < space->live.n; i++)
		space->areas.items[space->live.items[i]].to_ns = time_ns;
	space->live.n = 0;
}

int seam_spaces_copy(struct seam_spaces *spaces, uint32_t child,
		     uint32_t parent, uint64_t time_ns)
{
	struct seam_space *to = &spaces->items.items[child];
	const struct seam_space *from = &spaces->items.items[parent];

	for (size_t i = 0; i < from->live.n; i++) {
		struct seam_area area =
			from->areas.items[from->live.items[i]];

		area.from_ns = time_ns;
		area.to_ns = UINT64_MAX;
		if (insert_live(to, to->live.n, add_area(to, area)))
			return -ENOMEM;
	}
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct seam_area *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int seal_one(struct seam_space *space)
{
	uint64_t reach = 0;

	free(space->live.items);
	space->live.items = NULL;
	space->live.n = space->live.cap = 0;
	if (space->areas.n == 0)
		return 0;
	qsort(space->areas.items, space->areas.n, sizeof(*space->areas.items),
	      by_begin);
	space->reach = malloc(space->areas.n * sizeof(*space->reach));
	if (!space->reach)
		return -ENOMEM;
	for (size_t i = 0; i < space->areas.n; i++) {
		if (space->areas.items[i].end > reach)
			reach = space->areas.items[i].end;
		space->reach[i] = reach;
	}
	return 0;
}

int seam_spaces_seal(struct seam_spaces *spaces)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < spaces->items.n; i++)
		r = seal_one(&spaces->items.items[i]);
	return r;
}

/* Position behind the last area that begins at or below @addr. */
static size_t behind(const struct seam_space *space, uint64_t addr)
{
	size_t low = 0, high = space->areas.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (space->areas.items[mid].begin <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct seam_area *seam_spaces_find(const struct seam_spaces *spaces,
					 uint32_t id, uint64_t addr,
					 uint64_t time_ns, uint64_t *from_ns,
					 uint64_t *to_ns)
{
	const struct seam_space *space = &spaces->items.items[id];
	size_t i = behind(space, addr);

	*from_ns = 0;
	*to_ns = UINT64_MAX;
	/* Backwards until nothing before reaches as far as @addr. */
	while (i-- > 0 && space->reach[i] > addr) {
		const struct seam_area *area = &space->areas.items[i];

		if (area->end <= addr || area->from_ns == area->to_ns)
			continue;
		if (area->from_ns <= time_ns && time_ns < area->to_ns) {
			*from_ns = area->from_ns;
			*to_ns = area->to_ns;
			return area;
		}
		/* Of another time: it bounds the time in which nothing is. */
		if (area->to_ns <= time_ns && area->to_ns > *from_ns)
			*from_ns = area->to_ns;
		if (area->from_ns > time_ns && area->from_ns < *to_ns)
			*to_ns = area->from_ns;
	}
	return NULL;
}

void seam_spaces_fini(struct seam_spaces *spaces)
{
	for (size_t i = 0; i < spaces->items.n; i++) {
		free(spaces->items.items[i].areas.items);
		free(spaces->items.items[i].live.items);
		free(spaces->items.items[i].reach);
	}
	free(spaces->items.items);
	*spaces = (struct seam_spaces) { 0 };
}
