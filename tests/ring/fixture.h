/* SPDX-License-Identifier: MIT */
/* fixture.h - a ring in memory, with both ends, for the tests */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "aux_writer.h"
#include "ring/aux.h"
#include "ring/consumer.h"
#include "ring/producer/producer.h"
#include "unit.h"

enum { PAGE = 4096, DATA = 4096, AREA = 4096 };

static struct fixture {
	uint8_t *memory;		/* exactly as large as it must be */
	uint8_t *area;
	struct seam_ring_control *control;
	struct seam_ring_state *state;
	struct seam_ring_producer out;
	struct seam_ring in;
	struct aux_writer aux_out;
	struct seam_ring_aux aux_in;
} f;

static inline int close_fixture(void **state)
{
	(void)state;
	seam_ring_aux_fini(&f.aux_in);
	seam_ring_fini(&f.in);
	free(f.area);
	free(f.memory);
	f.area = f.memory = NULL;
	return 0;
}

static inline void open_fixture(uint64_t start, bool free_running)
{
	close_fixture(NULL);
	f.memory = aligned_alloc(PAGE, PAGE + DATA);
	f.area = aligned_alloc(PAGE, AREA);
	memset(f.memory, 0, PAGE + DATA);
	memset(f.area, 0, AREA);
	f.control = (void *)f.memory;
	f.state = &f.control->program;
	atomic_store(&f.control->data_head, start);
	atomic_store(&f.control->data_tail, start);
	atomic_store(&f.control->aux_head, start);
	atomic_store(&f.control->aux_tail, start);
	seam_ring_producer_init(&f.out, f.memory, PAGE, DATA);
	seam_ring_attach(&f.in, f.memory, PAGE, DATA);
	aux_writer_init(&f.aux_out, &f.out, f.area, AREA, free_running);
	seam_ring_aux_attach(&f.aux_in, f.control, f.area, AREA);
}

/* A record of @size bytes in all whose payload is @fill. */
static inline int put_record(uint32_t type, size_t size, uint8_t fill)
{
	static uint8_t bytes[UINT16_MAX];

	memset(bytes, fill, size);
	return seam_ring_write(&f.out, type, 0, bytes, size - 8);
}

/* Take one record; its type, or 0 when there is none. */
static inline uint32_t take_record(uint8_t *record)
{
	struct seam_ring_header header;
	struct seam_ring_span span;

	seam_ring_peek(&f.in, &span);
	if (!seam_ring_copy(&span, 0, &header, record))
		return 0;
	span.end = span.end - seam_ring_span_bytes(&span) + header.size;
	seam_ring_advance(&f.in, &span);
	return header.type;
}

static inline uint64_t word_at(const uint8_t *record, size_t pos)
{
	uint64_t v;

	memcpy(&v, record + pos, sizeof(v));
	return v;
}

#endif /* FIXTURE_H */
