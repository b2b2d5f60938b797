/* SPDX-License-Identifier: MIT */
/*
 * xray_chunk.c - a chunk to the records of a block; see xray_chunk.h
 *
 * Function records are words of 8 bytes, so runs of them are checked in a loop
 * of a few instructions and copied at once.  Metadata records go by a table.
 */
#include "wire/xray/xray_chunk.h"

#include "wire/xray/xray_fdr.h"

enum {
	WORD_BYTES = 8,
	/* bit 0: metadata; bit 3: an action that does not exist */
	NO_CALL = 1 | 1 << 3,
	FIRST_CALL = 1 << 4,		/* function 1 */
	N_MICROSECONDS = 1000000,
	TYPE_AT = 1 + 4 + 4,		/* of a typed event, in its record */
};

struct walk {
	const uint8_t *in;
	size_t size, pos;
	uint8_t *out;
	size_t n_out;
	enum seam_xray_state state;	/* of the last record */
	uint64_t n_records;
};

static uint64_t load(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static void copy(struct walk *w, size_t bytes)
{
	memcpy(w->out + w->n_out, w->in + w->pos, bytes);
	w->n_out += bytes;
	w->pos += bytes;
}

/* ---- function records ---- */

static void note(struct seam_xray_seen *seen, const uint8_t *at,
		 const uint8_t *end)
{
	for (; at < end; at += WORD_BYTES) {
		uint32_t function = (uint32_t)load(at) >> 4;
		uint64_t bit = UINT64_C(1) << function % 64;

		seen->max = function > seen->max ? function : seen->max;
		/* read first: nearly all of them have been seen */
		if (function < seen->n && !(seen->bits[function / 64] & bit))
			seen->bits[function / 64] |= bit;
	}
}

static void take_calls(struct walk *w, struct seam_xray_seen *seen)
{
	const uint8_t *start = w->in + w->pos, *at = start;
	const uint8_t *end = start + (w->size - w->pos) / WORD_BYTES *
				     WORD_BYTES;
	uint64_t action;

	for (; at < end; at += WORD_BYTES) {
		uint64_t word = load(at);

		if (word & NO_CALL || (uint32_t)word < FIRST_CALL)
			break;
	}
	if (at == start)
		return;
	if (seen)
		note(seen, start, at);
	action = load(at - WORD_BYTES) >> 1 & 7;
	w->state = action == SEAM_XRAY_ENTRY || action == SEAM_XRAY_ENTRY_ARGS ?
		   SEAM_XRAY_AT_ENTRY : SEAM_XRAY_AT_EXIT;
	w->n_records += (size_t)(at - start) / WORD_BYTES;
	copy(w, (size_t)(at - start));
}

/* ---- metadata records ---- */

/*
 * Kinds, by their first byte >> 1; of each its fields' bytes.  What follows
 * them, up to 15, is zero.  Source: the tables in xray_fdr.c.
 */
static const struct {
	uint8_t state;		/* 0: there is no such kind */
	uint8_t bytes;
} kinds[] = {
	[SEAM_XRAY_NEW_BUFFER >> 1] = { SEAM_XRAY_AT_BUFFER, 4 },
	[SEAM_XRAY_NEW_CPU >> 1] = { SEAM_XRAY_AT_CPU, 10 },
	[SEAM_XRAY_TSC_WRAP >> 1] = { SEAM_XRAY_AT_WRAP, 8 },
	[SEAM_XRAY_WALL_TIME >> 1] = { SEAM_XRAY_AT_WALL, 12 },
	[SEAM_XRAY_CUSTOM_EVENT >> 1] = { SEAM_XRAY_AT_CUSTOM, 8 },
	[SEAM_XRAY_CALL_ARGUMENT >> 1] = { SEAM_XRAY_AT_ARGUMENT, 8 },
	[SEAM_XRAY_TYPED_EVENT >> 1] = { SEAM_XRAY_AT_TYPED, 10 },
	[SEAM_XRAY_PID >> 1] = { SEAM_XRAY_AT_PID, 4 },
};

/* The record at @at, of 16 bytes; SEAM_XRAY_AT_START: none that is valid. */
static enum seam_xray_state classify(const uint8_t *at)
{
	unsigned int kind = at[0] >> 1;
	uint64_t low = load(at), high = load(at + WORD_BYTES);
	unsigned int bits;

	if (!(at[0] & 1) || kind >= SEAM_ARRAY_SIZE(kinds) ||
	    !kinds[kind].state)
		return SEAM_XRAY_AT_START;
	bits = 8 * (kinds[kind].bytes + 1u);	/* the first byte too */
	if (bits < 64 ? low >> bits | high : high >> (bits - 64))
		return SEAM_XRAY_AT_START;
	return (enum seam_xray_state)kinds[kind].state;
}

static bool is_zero(const uint8_t *at, size_t bytes)
{
	uint8_t any = 0;

	for (size_t i = 0; i < bytes; i++)
		any |= at[i];
	return any == 0;
}

/* An event with its payload, whose padding is left out. */
static bool take_event(struct walk *w, enum seam_xray_state state)
{
	size_t left = w->size - w->pos - SEAM_XRAY_METADATA_BYTES, room;
	const uint8_t *payload = w->in + w->pos + SEAM_XRAY_METADATA_BYTES;
	struct seam_xray_payload event = { .data.data = payload };
	int32_t bytes;

	memcpy(&bytes, w->in + w->pos + 1, sizeof(bytes));
	if (bytes < 0 || bytes > SEAM_XRAY_MAX_PAYLOAD)
		return false;
	room = seam_xray_payload_room((size_t)bytes);
	if (room > left ||
	    !is_zero(payload + bytes, room - (size_t)bytes))
		return false;
	memcpy(&event.type, w->in + w->pos + TYPE_AT, sizeof(event.type));
	event.data.size = (size_t)bytes;
	w->n_records += state != SEAM_XRAY_AT_TYPED ||
			!seam_xray_is_lost(&event);
	copy(w, SEAM_XRAY_METADATA_BYTES + (size_t)bytes);
	w->pos += room - (size_t)bytes;
	return true;
}

static bool take_metadata(struct walk *w)
{
	enum seam_xray_state state;

	if (w->size - w->pos < SEAM_XRAY_METADATA_BYTES)
		return false;
	state = classify(w->in + w->pos);
	switch (state) {
	case SEAM_XRAY_AT_CUSTOM:
	case SEAM_XRAY_AT_TYPED:
		if (!take_event(w, state))
			return false;
		break;
	case SEAM_XRAY_AT_ARGUMENT:
		if (w->state != SEAM_XRAY_AT_ENTRY &&
		    w->state != SEAM_XRAY_AT_ARGUMENT)
			return false;
		copy(w, SEAM_XRAY_METADATA_BYTES);
		break;
	case SEAM_XRAY_AT_CPU:
	case SEAM_XRAY_AT_WRAP:
		copy(w, SEAM_XRAY_METADATA_BYTES);
		break;
	default:
		return false;
	}
	w->state = state;
	return true;
}

/* ---- the chunk ---- */

static bool read_preamble(const uint8_t *at, struct seam_xray_chunk *found)
{
	static const uint8_t states[] = {
		SEAM_XRAY_AT_BUFFER, SEAM_XRAY_AT_WALL, SEAM_XRAY_AT_PID,
		SEAM_XRAY_AT_CPU,
	};
	const uint8_t *field = at + 1;
	int64_t seconds;
	int32_t microseconds;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(states); i++)
		if (classify(at + i * SEAM_XRAY_METADATA_BYTES) != states[i])
			return false;
	memcpy(&found->tid, field, sizeof(found->tid));
	field += SEAM_XRAY_METADATA_BYTES;
	memcpy(&seconds, field, sizeof(seconds));
	memcpy(&microseconds, field + sizeof(seconds), sizeof(microseconds));
	/* what is no time that can be is the last one */
	found->wall_us = (uint64_t)seconds >= INT64_MAX / N_MICROSECONDS ?
			 INT64_MAX : (uint64_t)(seconds * N_MICROSECONDS +
						microseconds);
	field += SEAM_XRAY_METADATA_BYTES;
	memcpy(&found->pid, field, sizeof(found->pid));
	field += SEAM_XRAY_METADATA_BYTES + sizeof(uint16_t);
	memcpy(&found->tsc, field, sizeof(found->tsc));
	return microseconds >= 0 && microseconds < N_MICROSECONDS;
}

/* Whether the chunk goes on: false at its end, and at an invalid record. */
static bool take_next(struct walk *w, struct seam_xray_seen *seen)
{
	size_t pos = w->pos;

	take_calls(w, seen);
	if (w->size - w->pos >= WORD_BYTES && w->in[w->pos] & 1)
		return take_metadata(w);
	return w->pos > pos;
}

void seam_xray_chunk_read(const uint8_t *chunk, size_t size, uint8_t *out,
			  struct seam_xray_seen *seen,
			  struct seam_xray_chunk *found)
{
	struct walk w = {
		.in = chunk, .size = size, .out = out,
		.pos = SEAM_XRAY_PREAMBLE_BYTES - SEAM_XRAY_METADATA_BYTES,
		.state = SEAM_XRAY_AT_CPU,
	};

	*found = (struct seam_xray_chunk) { .bad_bytes = size };
	if (size < SEAM_XRAY_PREAMBLE_BYTES || !read_preamble(chunk, found)) {
		*found = (struct seam_xray_chunk) { .bad_bytes = size };
		return;
	}
	copy(&w, SEAM_XRAY_METADATA_BYTES);
	while (take_next(&w, seen))
		;
	found->n_bytes = w.n_out;
	found->n_records = w.n_records;
	found->bad_bytes = size - w.pos;
	if (size - w.pos >= WORD_BYTES && load(chunk + w.pos) == 0)
		found->bad_bytes = 0;
}
