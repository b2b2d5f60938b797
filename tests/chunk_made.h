/* SPDX-License-Identifier: MIT */
/*
 * chunk_made.h - chunks of calls as a traced thread leaves them, for tests
 *
 * Records are encoded by the tables of the format; what is added here is the
 * padding of wire/xray/xray_chunk.h.
 */
#ifndef SEAM_TEST_CHUNK_MADE_H
#define SEAM_TEST_CHUNK_MADE_H

#include <assert.h>
#include <stdlib.h>

#include "wire/xray/xray_chunk.h"
#include "wire/xray/xray_fdr.h"

struct chunk {
	uint8_t bytes[SEAM_XRAY_CHUNK_BYTES];
	size_t n;
	uint64_t n_records;		/* calls and events */
	struct seam_xray_format format;
};

static inline size_t chunk_room(const struct seam_xray_record *record)
{
	bool is_event = record->state == SEAM_XRAY_AT_CUSTOM ||
			record->state == SEAM_XRAY_AT_TYPED;

	if (record->state == SEAM_XRAY_AT_ENTRY ||
	    record->state == SEAM_XRAY_AT_EXIT)
		return SEAM_XRAY_FUNCTION_BYTES;
	return SEAM_XRAY_METADATA_BYTES +
	       (is_event ? seam_xray_payload_room(record->data.size) : 0);
}

/* False: the chunk has no room for it. */
static inline bool chunk_put(struct chunk *c,
			     const struct seam_xray_record *record)
{
	size_t room = chunk_room(record);

	if (room > sizeof(c->bytes) - c->n)
		return false;
	memset(c->bytes + c->n, 0, room);
	seam_xray_record_write(&c->format, record, c->bytes + c->n, room);
	c->n += room;
	c->n_records += record->state >= SEAM_XRAY_AT_ENTRY &&
			record->state != SEAM_XRAY_AT_ARGUMENT &&
			(record->state != SEAM_XRAY_AT_TYPED ||
			 record->marker.event_type != SEAM_XRAY_LOST ||
			 record->data.size != sizeof(uint64_t));
	return true;
}

/* The preamble; the rest is zeroes. */
static inline void chunk_begin(struct chunk *c, int32_t pid, int32_t tid,
			       uint64_t wall_us, uint16_t cpu, uint64_t tsc)
{
	memset(c->bytes, 0, sizeof(c->bytes));
	c->n = 0;
	c->n_records = 0;
	seam_xray_format_init(&c->format, SEAM_XRAY_FDR_VERSION, SEAM_LITTLE);
	chunk_put(c, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_BUFFER, .buffer.thread_id = tid });
	chunk_put(c, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_WALL,
		.wall = { (int64_t)(wall_us / 1000000),
			  (int32_t)(wall_us % 1000000) } });
	chunk_put(c, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_PID, .pid.pid = pid });
	chunk_put(c, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CPU, .cpu = { cpu, tsc } });
}

static inline bool chunk_call(struct chunk *c, enum seam_xray_kind action,
			      uint32_t function, uint32_t delta)
{
	return chunk_put(c, &(struct seam_xray_record) {
		.state = action == SEAM_XRAY_EXIT ||
			 action == SEAM_XRAY_TAIL_EXIT ?
			 SEAM_XRAY_AT_EXIT : SEAM_XRAY_AT_ENTRY,
		.action = (uint8_t)action, .function = function,
		.function_record.tsc_delta = delta });
}

static inline uint32_t chunk_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*seed >> 33);
}

static inline bool chunk_random_event(struct chunk *c, uint64_t *seed,
				      enum seam_xray_state state)
{
	static uint8_t payload[SEAM_XRAY_MAX_PAYLOAD];
	size_t n = chunk_random(seed) % 8 ? chunk_random(seed) % 40 :
		   chunk_random(seed) % (SEAM_XRAY_MAX_PAYLOAD + 1);

	for (size_t i = 0; i < n; i++)
		payload[i] = (uint8_t)chunk_random(seed);
	return chunk_put(c, &(struct seam_xray_record) {
		.state = state, .data = { payload, n },
		.marker = { .tsc_delta = (int32_t)(chunk_random(seed) % 1000),
			    .event_type = state == SEAM_XRAY_AT_TYPED ?
					  (uint16_t)chunk_random(seed) : 0 } });
}

/* One record of any kind, with arguments after some entries. */
static inline bool chunk_random_record(struct chunk *c, uint64_t *seed)
{
	uint32_t kind = chunk_random(seed) % 32;
	bool is_there;

	switch (kind) {
	case 0:
		return chunk_put(c, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_CPU,
			.cpu = { (uint16_t)chunk_random(seed),
				 chunk_random(seed) } });
	case 1:
		return chunk_put(c, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_WRAP,
			.wrap.absolute_tsc = chunk_random(seed) });
	case 2:
		return chunk_random_event(c, seed, SEAM_XRAY_AT_CUSTOM);
	case 3:
		return chunk_random_event(c, seed, SEAM_XRAY_AT_TYPED);
	case 4:
		is_there = chunk_call(c, SEAM_XRAY_ENTRY_ARGS,
				      1 + chunk_random(seed) % 9, 5);
		for (uint32_t i = chunk_random(seed) % 7; is_there && i--;)
			is_there = chunk_put(c, &(struct seam_xray_record) {
				.state = SEAM_XRAY_AT_ARGUMENT,
				.argument.argument = chunk_random(seed) });
		return is_there;
	default:
		return chunk_call(c, (enum seam_xray_kind)(kind % 3),
				  1 + chunk_random(seed) %
				      SEAM_XRAY_MAX_FUNCTION,
				  chunk_random(seed));
	}
}

/*
 * A block's body, as seam_xray_chunk_read() wrote it, back to a chunk with the
 * preamble of @chunk.  False: it is no valid body.
 */
static inline bool chunk_of_body(struct chunk *again, const uint8_t *chunk,
				 const uint8_t *body, size_t size)
{
	struct seam_xray_reader reader;
	struct seam_xray_record record;
	int r;

	memset(again, 0, sizeof(*again));
	seam_xray_format_init(&again->format, SEAM_XRAY_FDR_VERSION,
			      SEAM_LITTLE);
	again->n = SEAM_XRAY_PREAMBLE_BYTES - SEAM_XRAY_METADATA_BYTES;
	memcpy(again->bytes, chunk, again->n);
	seam_xray_reader_init(&reader, &again->format,
			      (struct seam_bytes) { body, size }, 0, size,
			      false);
	reader.state = SEAM_XRAY_AT_PID;
	while ((r = seam_xray_next(&reader, &record)) > 0)
		if (!chunk_put(again, &record))
			return false;
	return r == 0;
}

#endif /* SEAM_TEST_CHUNK_MADE_H */
