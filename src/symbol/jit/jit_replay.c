/* SPDX-License-Identifier: MIT */
/* jit_replay.c - events, by time, into a code map; see jit_events.h */
#include "symbol/jit/jit_events.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pair_map.h"
#include "base/radix_sort.h"

static uint64_t end_addr(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/* The size that an event covers: for a move, what the record claims. */
static uint64_t event_size(const struct seam_jit_code *jit,
			   const struct seam_jit_event *event)
{
	return event->move == SEAM_NONE ?
	       jit->objects.items[event->object].size :
	       jit->moves.items[event->move].record.code_size;
}

/* Replaying one layer: the load of a code index, and where it is now. */
struct replay {
	struct seam_jit_code *jit;
	struct seam_jit_layer *layer;
	struct seam_pair_map by_index;	/* (source, index) -> object */
	struct seam_pair_map by_place;	/* (index, address) -> object */
	uint32_t *place;		/* event that placed an object last */
	uint32_t first_object;		/* of place[] */
	SEAM_ARRAY(uint32_t) unknown;	/* moves without a load so far */
	bool has_moves;
};

/* An index is unique in its dump; else the address decides. */
static uint32_t moved_object(struct replay *p, const struct seam_jit_move *move)
{
	const struct seam_jitdump_move *record = &move->record;
	uint32_t *object = seam_pair_map_find(&p->by_place, record->code_index,
					      record->old_code_addr);

	if (!object)
		object = seam_pair_map_find(&p->by_index, move->source,
					    record->code_index);
	return object ? *object : SEAM_NONE;
}

static int remember(struct replay *p, uint32_t event, uint32_t object)
{
	const struct seam_jit_object *o = &p->jit->objects.items[object];

	p->place[object - p->first_object] = event;
	return seam_pair_map_put(&p->by_place, o->code_index,
				 p->layer->events.items[event].start_addr,
				 object);
}

/* The object of a move.  SEAM_NONE when it must be skipped. */
static uint32_t match_move(struct replay *p, const struct seam_jit_move *move)
{
	uint32_t object = moved_object(p, move);

	if (object == SEAM_NONE) {
		/* Without memory one is not counted. */
		(void)SEAM_ARRAY_ADD(&p->unknown,
				     (uint32_t)(move - p->jit->moves.items));
		return SEAM_NONE;
	}
	if (p->jit->objects.items[object].size != move->record.code_size) {
		p->layer->notes[SEAM_JIT_MOVE_SIZE]++;
		return SEAM_NONE;
	}
	if (p->layer->events.items[p->place[object - p->first_object]]
	    .start_addr != move->record.old_code_addr)
		p->layer->notes[SEAM_JIT_MOVE_PLACE]++;
	return object;
}

static int play_move(struct replay *p, uint32_t i)
{
	struct seam_jit_event *event = &p->layer->events.items[i];
	uint32_t from;

	event->object = match_move(p, &p->jit->moves.items[event->move]);
	if (event->object == SEAM_NONE)
		return 0;
	from = p->place[event->object - p->first_object];
	if (seam_code_map_remove(&p->layer->map, from, event->time_ns) ||
	    remember(p, i, event->object))
		return -ENOMEM;
	return seam_code_map_place(&p->layer->map, i, event->time_ns);
}

/*
 * Two lines of a map for one address that may have been written at the same
 * time: a sample may be of either.  One function that is written twice does
 * not count.
 */
static void find_reuse(struct replay *p, uint32_t i)
{
	struct seam_jit_event *events = p->layer->events.items;
	struct seam_jit_object *objects = p->jit->objects.items;
	struct seam_jit_object *object = &objects[events[i].object];
	uint32_t at = SEAM_NONE, below;

	while (!object->is_reused &&
	       (below = seam_code_map_below(&p->layer->map, i, &at)) !=
	       SEAM_NONE) {
		const struct seam_jit_object *other =
			&objects[events[below].object];

		object->is_reused = events[below].time_ns ==
				    events[i].time_ns &&
				    (other->is_reused ||
				     strcmp(other->name, object->name) != 0);
	}
}

static int play_load(struct replay *p, uint32_t i)
{
	const struct seam_jit_event *event = &p->layer->events.items[i];
	const struct seam_jit_object *object =
		&p->jit->objects.items[event->object];
	uint32_t *twin;

	if (p->has_moves) {
		twin = seam_pair_map_find(&p->by_index, object->dump,
					  object->code_index);
		if (twin)
			p->layer->notes[SEAM_JIT_INDEX_TWICE]++;
		if (seam_pair_map_put(&p->by_index, object->dump,
				      object->code_index, event->object) ||
		    remember(p, i, event->object))
			return -ENOMEM;
	}
	if (object->known_ns)
		find_reuse(p, i);
	return seam_code_map_place(&p->layer->map, i, event->time_ns);
}

/* Count moves without a load before them, by whether one came later. */
static void count_unknown(struct replay *p)
{
	for (size_t i = 0; i < p->unknown.n; i++) {
		const struct seam_jit_move *move =
			&p->jit->moves.items[p->unknown.items[i]];
		bool is_early = seam_pair_map_find(&p->by_index, move->source,
						   move->record.code_index);

		p->layer->notes[is_early ? SEAM_JIT_MOVE_EARLY :
				SEAM_JIT_MOVE_UNKNOWN]++;
	}
}

/* Room for where each object is, if any moves. */
static int begin_playing(struct replay *p)
{
	uint32_t low = SEAM_NONE, high = 0;

	for (size_t i = 0; i < p->layer->events.n; i++) {
		uint32_t object = p->layer->events.items[i].object;

		if (p->layer->events.items[i].move != SEAM_NONE) {
			p->has_moves = true;
			continue;
		}
		low = object < low ? object : low;
		high = object > high ? object : high;
	}
	p->first_object = low;
	if (!p->has_moves || low == SEAM_NONE)
		return 0;
	p->place = calloc((size_t)high - low + 1, sizeof(*p->place));
	return p->place ? 0 : -ENOMEM;
}

static int play(struct seam_jit_code *jit, struct seam_jit_layer *layer)
{
	struct replay p = { .jit = jit, .layer = layer };
	int r = begin_playing(&p);

	for (uint32_t i = 0; !r && i < layer->events.n; i++)
		r = layer->events.items[i].move == SEAM_NONE ?
		    play_load(&p, i) : play_move(&p, i);
	count_unknown(&p);
	seam_pair_map_fini(&p.by_index);
	seam_pair_map_fini(&p.by_place);
	free(p.place);
	free(p.unknown.items);
	return r ? r : seam_code_map_seal(&layer->map);
}

int seam_jit_replay(struct seam_jit_code *jit, struct seam_jit_layer *layer)
{
	size_t n = layer->events.n;
	struct seam_code_range *ranges;
	int r;

	seam_code_map_fini(&layer->map);
	memset(layer->notes, 0, sizeof(layer->notes));
	if (!n)
		return 0;
	r = SEAM_RADIX_SORT(&layer->events, time_ns);
	ranges = r ? NULL : malloc(n * sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct seam_jit_event *event = &layer->events.items[i];

		ranges[i] = (struct seam_code_range) {
			event->start_addr,
			end_addr(event->start_addr, event_size(jit, event)),
		};
	}
	r = seam_code_map_init(&layer->map, ranges, n);
	free(ranges);
	return r ? r : play(jit, layer);
}
