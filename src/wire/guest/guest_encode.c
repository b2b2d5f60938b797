/* SPDX-License-Identifier: MIT */
/*
 * guest_encode.c - structs to bytes; see guest_encode.h
 *
 * Runs inside handlers: memcpy() is all it calls.  Fields are stored by hand;
 * tests compare the bytes with those that the tables of guest_decode.c give.
 */
#include "wire/guest/guest_encode.h"

enum {
	HEAD = 24, SEGMENT = 16, FRAME = 8, SYMBOL = 36,
	MIN_FRAMES = 3,		/* of a segment that is cut: leaf, mark, root */
};

static uint8_t *put8(uint8_t *to, uint8_t value)
{
	*to = value;
	return to + 1;
}

static uint8_t *put16(uint8_t *to, uint16_t value)
{
	return put8(put8(to, (uint8_t)value), (uint8_t)(value >> 8));
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
	return put16(put16(to, (uint16_t)value), (uint16_t)(value >> 16));
}

static uint8_t *put64(uint8_t *to, uint64_t value)
{
	return put32(put32(to, (uint32_t)value), (uint32_t)(value >> 32));
}

static uint8_t *put_start(uint8_t *to, enum seam_guest_kind kind,
			  uint8_t adapter, uint8_t flags, uint32_t table)
{
	to = put8(to, SEAM_GUEST_VERSION);
	to = put8(to, (uint8_t)kind);
	to = put8(to, adapter);
	return put32(put8(to, flags), table);
}

static uint8_t *put_head(uint8_t *to, const struct seam_guest_head *head,
			 bool is_cut)
{
	bool changes = is_cut && head->guest_end == SEAM_GUEST_COMPLETE;

	to = put_start(to, SEAM_GUEST_SAMPLE, head->adapter, head->flags,
		       head->table);
	to = put8(to, head->vmstate);
	to = put8(to, changes ? SEAM_GUEST_CUT : head->guest_end);
	to = put8(to, head->host_end);
	to = put8(to, head->n_segments);
	return put64(put32(to, head->n_ticks), head->vm);
}

static uint8_t *put_frame(uint8_t *to, struct seam_guest_frame frame)
{
	return put32(put32(to, frame.id), frame.place);
}

static uint8_t *put_frames(uint8_t *to, const struct seam_guest_frame *frames,
			   size_t n)
{
	for (size_t i = 0; i < n; i++)
		to = put_frame(to, frames[i]);
	return to;
}

/* How many frames those @n are for a reader: a mark represents several. */
static uint32_t represented(const struct seam_guest_frame *frames, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += seam_guest_frame_kind(frames[i]) ==
		       SEAM_GUEST_FRAME_CUT ? frames[i].id : 1;
	return sum;
}

/* At most @limit frames of a segment: half of them from each end. */
static uint8_t *put_segment(uint8_t *to,
			    const struct seam_guest_segment *segment,
			    const struct seam_guest_frame *frames,
			    size_t limit)
{
	size_t n = segment->n_frames, leaf = limit / 2, root, n_cut;
	bool is_cut = n > limit;
	bool changes = is_cut && segment->end == SEAM_GUEST_COMPLETE;

	to = put16(put16(to, segment->join), segment->n_replaced);
	to = put16(to, (uint16_t)(is_cut ? limit : n));
	to = put16(to, changes ? SEAM_GUEST_CUT : segment->end);
	to = put64(to, segment->thread);
	if (!is_cut)
		return put_frames(to, frames, n);
	root = limit - 1 - leaf;
	n_cut = n - leaf - root;
	to = put_frames(to, frames, leaf);
	to = put_frame(to, seam_guest_frame_make(SEAM_GUEST_FRAME_CUT,
				represented(frames + leaf, n_cut), 0));
	return put_frames(to, frames + n - root, root);
}

/* How many frames there are if no segment has more than @limit. */
static size_t count_frames(const struct seam_guest_head *head,
			   const struct seam_guest_segment *segments,
			   size_t limit)
{
	size_t sum = 0;

	for (size_t i = 0; i < head->n_segments; i++)
		sum += segments[i].n_frames < limit ? segments[i].n_frames :
						      limit;
	return sum;
}

/* The most frames for a segment with which all of them fit @budget; or 0. */
static size_t find_limit(const struct seam_guest_head *head,
			 const struct seam_guest_segment *segments,
			 size_t budget)
{
	size_t fits = MIN_FRAMES, does_not = UINT16_MAX + 1;

	if (count_frames(head, segments, UINT16_MAX) <= budget)
		return UINT16_MAX;
	if (count_frames(head, segments, fits) > budget)
		return 0;
	while (does_not - fits > 1) {
		size_t middle = (fits + does_not) / 2;

		if (count_frames(head, segments, middle) <= budget)
			fits = middle;
		else
			does_not = middle;
	}
	return fits;
}

size_t seam_guest_encode_sample(uint8_t *buf, size_t cap,
				const struct seam_guest_head *head,
				const struct seam_guest_segment *segments,
				const struct seam_guest_frame *frames)
{
	size_t fixed = HEAD + (size_t)head->n_segments * SEGMENT;
	size_t limit;
	uint8_t *to = buf;

	if (cap > SEAM_GUEST_MAX_BYTES)
		cap = SEAM_GUEST_MAX_BYTES;
	if (cap < fixed)
		return 0;
	limit = find_limit(head, segments, (cap - fixed) / FRAME);
	if (!limit)
		return 0;
	to = put_head(to, head, limit < UINT16_MAX);
	for (size_t i = 0; i < head->n_segments; i++) {
		to = put_segment(to, &segments[i], frames, limit);
		frames += segments[i].n_frames;
	}
	return (size_t)(to - buf);
}

size_t seam_guest_encode_symbol(uint8_t buf[SEAM_GUEST_SYMBOL_BYTES],
				const struct seam_guest_symbol *symbol)
{
	uint16_t n_chunk = symbol->n_chunk;
	uint8_t n_name = symbol->n_name, flags = symbol->flags;
	uint8_t *to;
	size_t size;

	if (n_chunk > SEAM_GUEST_MAX_CHUNK) {
		n_chunk = SEAM_GUEST_MAX_CHUNK;
		flags |= SEAM_GUEST_CHUNK_CUT;
	}
	if (n_name > SEAM_GUEST_MAX_NAME) {
		n_name = SEAM_GUEST_MAX_NAME;
		flags |= SEAM_GUEST_NAME_CUT;
	}
	to = put_start(buf, SEAM_GUEST_SYMBOL, symbol->adapter, flags,
		       symbol->table);
	to = put32(put32(to, symbol->id), symbol->start);
	to = put32(put32(to, symbol->line), symbol->last_line);
	to = put16(put64(to, symbol->address), n_chunk);
	to = put8(put8(to, n_name), symbol->kind);
	memcpy(to, symbol->chunk, n_chunk);
	memcpy(to + n_chunk, symbol->name, n_name);
	size = SYMBOL + (size_t)n_chunk + n_name;
	memset(buf + size, 0, -size & 3);
	return size + (-size & 3);
}
