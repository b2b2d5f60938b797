/* SPDX-License-Identifier: MIT */
/* xray_decode.c - the hot loop over function records; see xray_decode.h */
#include "wire/xray/xray_decode.h"

#include <errno.h>

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

/* -- basic mode --------------------------------------------------------- */

/*
 * Basic ("naive") mode logs, versions 1 to 3
 *
 * Records of 32 bytes, each with its thread and an absolute TSC.  Threads
 * write whole buffers, so records of one thread come in runs, in order.  An
 * argument is a record of its own that follows the entry it belongs to.
 *
 * Source: LLVM 14's writer (version 3); versions 1 and 2 lack tail exits and
 * process ids.
 */

#define F(record, member, text)						\
	SEAM_FIELD(struct seam_xray_basic_##record, member, text)

#define SPEC "LLVM 14, basic mode version 3"

const struct seam_record seam_xray_basic_call_record = SEAM_RECORD(
	"Function", SPEC,
	F(call, record_type, "0"),
	F(call, cpu, "CPU, its low 8 bits"),
	F(call, action, "0 Entry, 1 Exit, 2 Tail_Exit (since 2), 3 Entry_Args"),
	F(call, function_id, "function"),
	F(call, tsc, "ticks"),
	F(call, thread_id, "thread"),
	F(call, process_id, "process; since version 3"));

const struct seam_record seam_xray_basic_argument_record = SEAM_RECORD(
	"CallArgument", SPEC,
	F(argument, record_type, "1"),
	F(argument, cpu, "not meaningful"),
	F(argument, action, "not meaningful"),
	F(argument, function_id, "the same as in the record before"),
	F(argument, thread_id, "thread"),
	F(argument, process_id, "process; since version 3"),
	F(argument, argument, "value"));

#undef F

int seam_xray_basic_read(struct seam_bytes file, size_t offset,
			 enum seam_endian endian,
			 struct seam_xray_basic_record *record)
{
	size_t left = offset < file.size ? file.size - offset : 0;
	struct seam_cursor c, peek;
	uint16_t type;

	if (left < SEAM_XRAY_BASIC_BYTES)
		return -ENODATA;
	c = seam_cursor_make(file.data + offset, SEAM_XRAY_BASIC_BYTES, endian);
	peek = c;
	type = seam_cursor_u16(&peek);
	*record = (struct seam_xray_basic_record) {
		.offset = offset, .is_argument = type == 1,
	};
	if (type > 1)
		return -EBADMSG;
	if (type == 1)
		return seam_wire_read(&c, &seam_xray_basic_argument_record,
				      &record->argument);
	seam_wire_read(&c, &seam_xray_basic_call_record, &record->call);
	return record->call.action > SEAM_XRAY_ENTRY_ARGS ||
	       record->call.function_id < 0 ? -EBADMSG : 0;
}

void seam_xray_basic_decode(struct seam_bytes file, size_t *offset, size_t end,
			    enum seam_endian endian,
			    struct seam_xray_batch *batch)
{
	batch->n = batch->n_payloads = 0;
	while (*offset < end && batch->n < SEAM_XRAY_BATCH) {
		struct seam_xray_basic_record record;
		struct seam_xray_event *event = &batch->events[batch->n];

		if (seam_xray_basic_read(file, *offset, endian, &record))
			break;
		*offset += SEAM_XRAY_BASIC_BYTES;
		batch->n++;
		if (record.is_argument)
			*event = (struct seam_xray_event) {
				.tsc = record.argument.argument,
				.kind = SEAM_XRAY_ARGUMENT,
			};
		else
			*event = (struct seam_xray_event) {
				.tsc = record.call.tsc,
				.function = (uint32_t)record.call.function_id,
				.cpu = record.call.cpu,
				.kind = record.call.action,
			};
	}
}
