/* SPDX-License-Identifier: MIT */
/*
 * fuzz_ring.c - any memory as a ring, read fast and read slowly
 *
 * The input is where the reader begins, a list of heads that come one after
 * the other, and the data.  Oracle: a second reader that knows only the
 * rules, byte by byte with a modulo, must find the same records; each look
 * ends; what is copied is what is there.  The memory is exactly as large as
 * it must be, so AddressSanitizer sees a step outside.
 */

#include "fuzz.h"
#include "base/cursor.h"
#include "ring/aux.h"
#include "ring/consumer.h"

enum { PAGE = 4096, DATA = 256, AREA = 128, MAX_HEADS = 16 };

static uint8_t slow_byte(const uint8_t *data, uint64_t pos, uint64_t size)
{
	return data[pos % size];
}

/* The size of the record at @pos by the rules; 0 when there is none. */
static uint64_t slow_record(const uint8_t *data, uint64_t pos, uint64_t left)
{
	uint64_t size;

	if (left < 8)
		return 0;
	size = slow_byte(data, pos + 6, DATA) |
	       (uint64_t)slow_byte(data, pos + 7, DATA) << 8;
	return size >= 8 && size % 8 == 0 && size <= left ? size : 0;
}

static void compare(const uint8_t *data, uint64_t pos, uint64_t left,
		    const struct seam_ring_span *span, bool is_private)
{
	static uint8_t record[UINT16_MAX];
	struct seam_ring_header header;
	size_t at = 0;
	uint64_t size;

	while ((size = slow_record(data, pos, left)) > 0) {
		must(seam_ring_copy(span, at, &header, record));
		must(header.size == size);
		for (uint64_t i = 0; i < size; i++)
			must(record[i] == slow_byte(data, pos + i, DATA));
		at += size;
		pos += size;
		left -= size;
	}
	must(!seam_ring_record(span, at, &header));
	if (is_private)
		must(at == seam_ring_span_bytes(span));
}

static void look_forward(struct seam_ring *ring, uint64_t head)
{
	struct seam_ring_span span;
	uint64_t tail = ring->tail, n = head - tail;
	uint64_t n_resyncs = ring->n_resyncs;

	must(tail % 8 == 0);
	if (n > DATA || n % 8) {
		must(seam_ring_peek(ring, &span) == 0);
		must(ring->n_resyncs == n_resyncs + 1);
		must(ring->tail == (head & ~UINT64_C(7)));
		return;
	}
	must(seam_ring_peek(ring, &span) == n);
	compare(ring->data, tail, n, &span, false);
	seam_ring_advance(ring, &span);
	must(ring->tail == head);
}

static void look_backward(struct seam_ring *ring,
			  struct seam_ring_snapshot *shot, uint64_t head)
{
	seam_ring_snapshot(ring, shot);
	compare(ring->data, head & ~UINT64_C(7), DATA, &shot->span, true);
}

static void look_at_area(struct seam_ring_aux *aux,
			 struct seam_ring_aux_snapshot *shot, uint64_t head)
{
	struct seam_ring_span span;
	/* the upper bits of a head count what its program took back */
	uint64_t pos = aux->tail;
	uint64_t n = (head - aux->tail) & SEAM_RING_AUX_POSITION;

	must(seam_ring_aux_peek(aux, &span) == (n <= AREA ? n : 0));
	must(seam_ring_span_bytes(&span) == (n <= AREA ? n : 0));
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < span.size[part]; i++)
			must(span.part[part][i] ==
			     slow_byte(aux->buffer, pos++, AREA));
	seam_ring_aux_advance(aux, &span);
	must(((aux->tail - head) & SEAM_RING_AUX_POSITION) == 0);
	for (int own = 0; own < 2; own++) {
		size_t bytes = own ? seam_ring_aux_snapshot_program(aux, shot) :
			       seam_ring_aux_snapshot(aux, shot);

		must(bytes <= AREA && bytes == shot->bytes);
		for (size_t i = 0; i < bytes; i++)
			must(shot->data[i] == slow_byte(aux->buffer,
							shot->offset + i,
							AREA));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct seam_cursor c = seam_cursor_make(input, size, SEAM_LITTLE);
	uint8_t *memory = aligned_alloc(8, PAGE + DATA);
	uint8_t *area = calloc(1, AREA);
	struct seam_ring_control *control = (void *)memory;
	struct seam_ring_aux_snapshot aux_shot;
	struct seam_ring_snapshot shot;
	struct seam_ring_aux aux;
	struct seam_ring ring;
	uint64_t heads[MAX_HEADS];
	size_t n = seam_cursor_u8(&c) % MAX_HEADS, left;

	memset(memory, 0, PAGE + DATA);
	control->data_tail = seam_cursor_u64(&c);
	control->aux_tail = control->data_tail;
	/* Most heads are near the one before, or little would be read. */
	for (size_t i = 0; i < n; i++)
		heads[i] = i % 4 == 3 ? seam_cursor_u64(&c) :
			   (i ? heads[i - 1] : control->data_tail) +
			   seam_cursor_u16(&c);
	left = c.error ? 0 : seam_cursor_left(&c);
	for (size_t i = 0; i < left && i < DATA; i++)
		memory[PAGE + i] = area[i % AREA] = input[c.pos + i];
	seam_ring_attach(&ring, memory, PAGE, DATA);
	seam_ring_aux_attach(&aux, control, area, AREA);
	seam_ring_snapshot_init(&shot, DATA, NULL);
	seam_ring_aux_snapshot_init(&aux_shot, &aux, NULL);
	for (size_t i = 0; i < n; i++) {
		control->data_head = control->aux_head = heads[i];
		control->program.head = control->program.aux_head =
			heads[n - 1 - i];
		look_forward(&ring, heads[i]);
		look_backward(&ring, &shot, heads[i]);
		look_at_area(&aux, &aux_shot, heads[i]);
	}
	seam_ring_snapshot_fini(&shot);
	seam_ring_aux_snapshot_fini(&aux_shot);
	free(area);
	free(memory);
	return 0;
}
