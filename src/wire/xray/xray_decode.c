/* SPDX-License-Identifier: MIT */
/* xray_decode.c - the hot loop over function records; see xray_decode.h */
#include "wire/xray/xray_decode.h"

/* Any bit of these set: no function record, or an unknown action. */
#define NOT_PLAIN_LITTLE	UINT64_C(0x9)
#define NOT_PLAIN_BIG		UINT64_C(0xc0000000)

/* Events that are read one by one between two runs. */
#define SHORT_BATCH 16

/*
 * The word of a function record in the low half, its delta in the high one.
 */
static inline uint64_t load(const uint8_t *p, bool swap, bool big)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	if (swap)
		v = __builtin_bswap64(v);
	return big ? v >> 32 | v << 32 : v;
}

/*
 * Take function records from the front of [@p, @p + 8 * @n).  Returns how
 * many came before something else.  @swap and @big are constants in both
 * calls, so that each gets a loop of its own.
 */
static inline __attribute__((always_inline)) size_t
take_functions(const uint8_t *p, size_t n, uint64_t *tsc, uint16_t cpu,
	       struct seam_xray_event *out, bool swap, bool big)
{
	uint64_t stop = big ? NOT_PLAIN_BIG : NOT_PLAIN_LITTLE;
	uint64_t now = *tsc;
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t v = load(p + 8 * i, swap, big);

		if (v & stop)
			break;
		now += v >> 32;
		out[i] = (struct seam_xray_event) {
			.tsc = now,
			.function = big ? (uint32_t)v & SEAM_XRAY_MAX_FUNCTION :
					  (uint32_t)v >> 4,
			.cpu = cpu,
			.kind = big ? v >> 28 & 3 : v >> 1 & 3,
		};
	}
	*tsc = now;
	return i;
}

/* @n function records have been read, the last one of @kind. */
static void skip_functions(struct seam_xray_reader *r, size_t n,
			   unsigned int kind)
{
	r->state = kind == SEAM_XRAY_EXIT || kind == SEAM_XRAY_TAIL_EXIT ?
		   SEAM_XRAY_AT_EXIT : SEAM_XRAY_AT_ENTRY;
	seam_cursor_skip(&r->c, n * SEAM_XRAY_FUNCTION_BYTES);
}

static size_t take_run(struct seam_xray_reader *r,
		       struct seam_xray_event *out, size_t cap)
{
	const uint8_t *p = r->c.base + r->c.pos;
	size_t n = seam_cursor_left(&r->c) / SEAM_XRAY_FUNCTION_BYTES;

	if (n > cap)
		n = cap;
	if (!r->c.swap && r->format->endian == SEAM_LITTLE)
		n = take_functions(p, n, &r->tsc, r->cpu, out, false, false);
	else if (r->format->endian == SEAM_LITTLE)
		n = take_functions(p, n, &r->tsc, r->cpu, out, true, false);
	else
		n = take_functions(p, n, &r->tsc, r->cpu, out, r->c.swap,
				   true);
	if (n > 0)
		skip_functions(r, n, out[n - 1].kind);
	return n;
}

static void add_payload(struct seam_xray_batch *batch,
			struct seam_xray_event *event,
			const struct seam_xray_record *record)
{
	event->function = (uint32_t)batch->n_payloads;
	batch->payloads[batch->n_payloads++] = (struct seam_xray_payload) {
		.data = record->data, .type = record->marker.event_type,
	};
}

/* One record the long way, into at most one event. */
static void add_record(struct seam_xray_batch *batch,
		       const struct seam_xray_reader *r,
		       const struct seam_xray_record *record)
{
	struct seam_xray_event *event = &batch->events[batch->n];

	*event = (struct seam_xray_event) {
		.tsc = record->tsc, .cpu = r->cpu,
	};
	switch (record->state) {
	case SEAM_XRAY_AT_ENTRY:
	case SEAM_XRAY_AT_EXIT:
		event->kind = record->action;
		event->function = record->function;
		break;
	case SEAM_XRAY_AT_ARGUMENT:
		event->kind = SEAM_XRAY_ARGUMENT;
		event->tsc = record->argument.argument;
		break;
	case SEAM_XRAY_AT_CUSTOM:
		event->kind = SEAM_XRAY_CUSTOM;
		if (r->format->version == 4)
			event->cpu = record->marker.cpu_id;
		add_payload(batch, event, record);
		break;
	case SEAM_XRAY_AT_TYPED:
		event->kind = SEAM_XRAY_TYPED;
		add_payload(batch, event, record);
		break;
	default:
		return;
	}
	batch->n++;
}

/* A function record of any action is legal here. */
static bool in_body(const struct seam_xray_reader *r)
{
	return seam_xray_may_follow(r->format, r->state, SEAM_XRAY_AT_EXIT);
}

int seam_xray_decode(struct seam_xray_reader *r, struct seam_xray_batch *batch)
{
	batch->n = batch->n_payloads = 0;
	while (batch->n < r->max_batch &&
	       batch->n_payloads < SEAM_XRAY_PAYLOADS) {
		struct seam_xray_record record;
		int got;

		if (in_body(r))
			batch->n += take_run(r, batch->events + batch->n,
					     r->max_batch - batch->n);
		if (batch->n == r->max_batch)
			break;
		got = seam_xray_next(r, &record);
		if (got <= 0)
			return got;
		add_record(batch, r, &record);
	}
	return 0;
}

void seam_xray_short_batches(struct seam_xray_reader *r)
{
	if (!r->c.swap && r->format->endian == SEAM_LITTLE)
		r->max_batch = SHORT_BATCH;
}

bool seam_xray_run(struct seam_xray_reader *r, struct seam_xray_run *run)
{
	if (r->c.swap || r->format->endian != SEAM_LITTLE)
		return false;
	*run = (struct seam_xray_run) {
		.records = r->c.base + r->c.pos,
		.n = seam_cursor_left(&r->c) / SEAM_XRAY_FUNCTION_BYTES,
		.tsc = r->tsc,
	};
	return run->n > 0 && in_body(r);
}

void seam_xray_run_take(struct seam_xray_reader *r,
			const struct seam_xray_run *run, size_t n, uint64_t tsc)
{
	skip_functions(r, n, seam_xray_run_record(run, n - 1) >> 1 & 7);
	r->tsc = tsc;
}
