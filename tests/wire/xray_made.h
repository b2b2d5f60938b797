/* SPDX-License-Identifier: MIT */
/*
 * xray_made.h - XRay logs of any version and byte order, made for tests
 *
 * Records are encoded by the same tables that read them; what the tables say
 * is checked against bytes written by hand in test_xray_fdr.c.
 */
#ifndef SEAM_TEST_XRAY_MADE_H
#define SEAM_TEST_XRAY_MADE_H

#include <assert.h>
#include <stdlib.h>

#include "wire/xray/xray_index.h"

struct made {
	struct seam_xray_format format;
	uint8_t *data;
	size_t size, cap;
	size_t extents_at;	/* of the open block; 0: none */
};

static inline void made_put(struct made *m, const void *data, size_t size)
{
	if (m->cap - m->size < size) {
		m->cap = 2 * (m->cap + size);
		m->data = realloc(m->data, m->cap);
		assert(m->data);
	}
	memcpy(m->data + m->size, data, size);
	m->size += size;
}

/* Another header: a new section. */
static inline void made_header(struct made *m, uint16_t version, uint16_t type,
			       enum seam_endian endian, uint64_t hz,
			       uint64_t buffer_size)
{
	struct seam_xray_header header = {
		.version = version, .log_type = type, .flags = 3,
		.cycle_frequency = hz, .buffer_size = buffer_size,
	};
	uint8_t buf[SEAM_XRAY_HEADER_BYTES];

	seam_xray_format_init(&m->format, version, endian);
	seam_wire_write(&seam_xray_header_record, &header, endian, buf,
			sizeof(buf));
	made_put(m, buf, sizeof(buf));
}

static inline void made_record(struct made *m,
			       const struct seam_xray_record *record)
{
	uint8_t buf[512];
	size_t size = seam_xray_record_write(&m->format, record, buf,
					     sizeof(buf));

	assert(size <= sizeof(buf));
	/* what writers leave behind the fields is not zero */
	made_put(m, buf, size);
}

static inline void made_extents(struct made *m, uint64_t size)
{
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_EXTENTS, .extents.size = size });
}

/* A block's preamble up to NewCPUId; made_end() sets its extents. */
static inline void made_block(struct made *m, int32_t pid, int32_t tid,
			      uint64_t wall_us, uint16_t cpu, uint64_t tsc)
{
	if (m->format.version > 1) {
		m->extents_at = m->size;
		made_extents(m, 0);
	}
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_BUFFER, .buffer.thread_id = tid });
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_WALL,
		.wall = { (int64_t)(wall_us / 1000000),
			  (int32_t)(wall_us % 1000000) } });
	if (m->format.version >= 3)
		made_record(m, &(struct seam_xray_record) {
			.state = SEAM_XRAY_AT_PID, .pid.pid = pid });
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_CPU, .cpu = { cpu, tsc } });
}

static inline void made_call(struct made *m, unsigned int action,
			     uint32_t function, uint32_t delta)
{
	made_record(m, &(struct seam_xray_record) {
		.state = action == SEAM_XRAY_EXIT ||
			 action == SEAM_XRAY_TAIL_EXIT ?
			 SEAM_XRAY_AT_EXIT : SEAM_XRAY_AT_ENTRY,
		.action = (uint8_t)action, .function = function,
		.function_record.tsc_delta = delta });
}

/* The mark of @n records that were lost. */
static inline void made_lost(struct made *m, uint64_t n, int32_t delta)
{
	uint8_t bytes[8];

	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(n >> 8 * i);
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_TYPED,
		.marker.event_type = SEAM_XRAY_LOST,
		.marker.tsc_delta = delta,
		.data = { bytes, sizeof(bytes) } });
}

static inline void made_end_with(struct made *m, uint64_t extents)
{
	uint8_t *at = m->data + m->extents_at;
	struct seam_xray_record record = {
		.state = SEAM_XRAY_AT_EXTENTS, .extents.size = extents };

	seam_xray_record_write(&m->format, &record, at,
			       SEAM_XRAY_METADATA_BYTES);
	m->extents_at = 0;
}

/* End a block: extents, or in version 1 EndOfBuffer and rubbish. */
static inline void made_end(struct made *m, size_t buffer_size, size_t begin)
{
	if (m->format.version > 1) {
		made_end_with(m, m->size - m->extents_at -
			      SEAM_XRAY_METADATA_BYTES);
		return;
	}
	made_record(m, &(struct seam_xray_record) {
		.state = SEAM_XRAY_AT_END_OF_BUFFER });
	while (m->size - begin < buffer_size)
		made_put(m, "\xa5", 1);
}

static inline void made_basic_call(struct made *m, uint8_t action,
				   int32_t function, uint64_t tsc,
				   uint32_t tid, uint32_t pid)
{
	uint8_t buf[SEAM_XRAY_BASIC_BYTES] = { 0 };
	bool big = m->format.endian == SEAM_BIG;

	buf[2] = 1;
	buf[3] = action;
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int at = big ? 3 - i : i;

		buf[4 + at] = (uint8_t)((uint32_t)function >> 8 * i);
		buf[16 + at] = (uint8_t)(tid >> 8 * i);
		buf[20 + at] = (uint8_t)(pid >> 8 * i);
	}
	for (unsigned int i = 0; i < 8; i++)
		buf[8 + (big ? 7 - i : i)] = (uint8_t)(tsc >> 8 * i);
	made_put(m, buf, sizeof(buf));
}

/* An exact copy on the heap, so that a sanitizer sees the first byte beyond. */
static inline struct seam_bytes made_bytes(const struct made *m, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	assert(copy);
	if (size)
		memcpy(copy, m->data, size);
	return (struct seam_bytes) { copy, size };
}

static inline void made_free(struct made *m)
{
	free(m->data);
	*m = (struct made) { 0 };
}

#endif /* SEAM_TEST_XRAY_MADE_H */
