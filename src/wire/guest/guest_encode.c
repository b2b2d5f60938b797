/* SPDX-License-Identifier: MIT */
/*
 * guest_encode.c - structs to bytes; see guest_encode.h
 *
 * Runs inside handlers: memcpy() is all it calls.  Fields are stored by hand;
 * tests compare the bytes with those that the tables of guest_decode.c give.
 */
#include "wire/guest/guest_encode.h"

enum { HEAD = 24, SEGMENT = 16, FRAME = 8, SYMBOL = 36 };

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

size_t seam_guest_encode_sample(uint8_t *buf, size_t cap,
				const struct seam_guest_head *head,
				const struct seam_guest_segment *segments,
				const struct seam_guest_frame *frames)
{
	size_t size = HEAD + (size_t)head->n_segments * SEGMENT;
	uint8_t *to;

	for (size_t i = 0; i < head->n_segments; i++)
		size += (size_t)segments[i].n_frames * FRAME;
	if (size > cap || size > SEAM_GUEST_MAX_BYTES)
		return 0;
	to = put_start(buf, SEAM_GUEST_SAMPLE, head->adapter, head->flags,
		       head->table);
	to = put8(put8(to, head->vmstate), head->guest_end);
	to = put8(put8(to, head->host_end), head->n_segments);
	to = put64(put32(to, head->n_ticks), head->vm);
	for (size_t i = 0; i < head->n_segments; i++) {
		const struct seam_guest_segment *s = &segments[i];

		to = put16(put16(to, s->join), s->n_replaced);
		to = put16(put16(to, s->n_frames), s->end);
		to = put64(to, s->thread);
		for (size_t k = 0; k < s->n_frames; k++, frames++)
			to = put32(put32(to, frames->id), frames->place);
	}
	return size;
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
