/* SPDX-License-Identifier: MIT */
/* stream_events.c - write the stream's records; see stream_events.h */
#include "traced/sysprof/stream_events.h"

#include <errno.h>

#include "wire/sysprof/sysprof.h"
#include "wire/wire.h"

/* After the host's stack, in the place of an address. */
enum { HOST_END = 0 };

/* ---- bytes ---- */

void seam_sysprof_out_flush(struct seam_sysprof_out *out)
{
	const void *data = out->data;
	size_t n = out->used;

	if (out->is_halted || n == 0)
		return;
	out->used = 0;
	errno = 0;
	if (out->writer(&data, n, out->ctx) < n || !data) {
		/* a writer that fails without an errno still is an error */
		out->saved_errno = errno ?: EIO;
		out->is_halted = true;
	}
	out->data = (uint8_t *)(uintptr_t)data;
}

void seam_sysprof_out_bytes(struct seam_sysprof_out *out, const void *bytes,
			    size_t n)
{
	const uint8_t *from = bytes;

	while (n && !out->is_halted) {
		size_t room = out->size - out->used;
		size_t part = n < room ? n : room;

		memcpy(out->data + out->used, from, part);
		out->used += part;
		from += part;
		n -= part;
		if (out->used == out->size)
			seam_sysprof_out_flush(out);
	}
}

static void put_byte(struct seam_sysprof_out *out, uint8_t byte)
{
	seam_sysprof_out_bytes(out, &byte, 1);
}

/* ULEB128 of minimal length. */
static void put_uleb(struct seam_sysprof_out *out, uint64_t value)
{
	uint8_t bytes[SEAM_ULEB_BYTES];

	seam_sysprof_out_bytes(out, bytes, seam_wire_put_uleb(bytes, value));
}

/* A length as ULEB128, and the bytes. */
static void put_string(struct seam_sysprof_out *out, const void *bytes,
		       size_t n)
{
	put_uleb(out, n);
	seam_sysprof_out_bytes(out, bytes, n);
}

/* ---- records ---- */

static void put_prologue(struct seam_sysprof_out *out, char kind,
			 uint8_t version)
{
	const uint8_t bytes[] = { 'l', 'j', (uint8_t)kind, version, 0, 0, 0 };

	seam_sysprof_out_bytes(out, bytes, sizeof(bytes));
}

void seam_sysprof_stream_begin(struct seam_sysprof_stream *stream,
			       const struct seam_sysprof_out *out)
{
	memset(stream, 0, sizeof(*stream));
	stream->out = *out;
	put_prologue(&stream->out, 's', SEAM_SYSPROF_SYMTAB_VERSION);
}

void seam_sysprof_stream_native(struct seam_sysprof_out *out, bool is_event,
				uint64_t addr, const char *name, size_t n)
{
	put_byte(out, is_event ? SEAM_SYSPROF_EVENT_CFUNC :
				 SEAM_SYSPROF_SYMTAB_CFUNC);
	put_uleb(out, addr);
	put_string(out, name, n);
}

void seam_sysprof_stream_end_symbols(struct seam_sysprof_stream *stream)
{
	put_byte(&stream->out, SEAM_SYSPROF_FINAL);
	put_prologue(&stream->out, 'p', SEAM_SYSPROF_VERSION);
}

/* ---- what samples refer to ---- */

/* Without a name yet, the next sample tries again. */
static void announce_function(struct seam_sysprof_stream *stream, uint32_t id)
{
	const struct seam_guest_symbol *symbol = &stream->symbol;

	if (id > SEAM_GUEST_MAX_SYMBOLS || stream->has_function[id] ||
	    seam_guest_describe(id, &stream->symbol))
		return;
	put_byte(&stream->out, SEAM_SYSPROF_EVENT_LFUNC);
	put_uleb(&stream->out, id);
	put_string(&stream->out, symbol->chunk, symbol->n_chunk);
	put_uleb(&stream->out, symbol->line);
	stream->has_function[id] = true;
}

/* The trace that runs, as a frame's index; n_frames: not known. */
static size_t find_trace(const struct seam_guest_sample *sample)
{
	size_t i = 0;

	while (i < sample->n_frames &&
	       (seam_guest_frame_kind(sample->frames[i]) !=
			SEAM_GUEST_FRAME_TRACE ||
		sample->origins[i].address != sample->trace))
		i++;
	return i;
}

/* Announce the trace @id with its number; the function in which it starts. */
static uint32_t announce_trace(struct seam_sysprof_stream *stream,
			       uint32_t number, uint32_t id)
{
	struct seam_sysprof_out *out = &stream->out;
	uint32_t start, line;

	if (seam_guest_describe(id, &stream->symbol))
		return 0;
	start = stream->symbol.start;
	line = stream->symbol.line;
	announce_function(stream, start);
	if (number < SEAM_SYSPROF_MAX_TRACES && stream->traces[number] != id) {
		put_byte(out, SEAM_SYSPROF_EVENT_TRACE);
		put_uleb(out, number);
		put_uleb(out, start);
		put_uleb(out, line);
		stream->traces[number] = id;
	}
	return start;
}

/* ---- samples ---- */

static void put_frame(struct seam_sysprof_out *out,
		      const struct seam_guest_sample *sample, size_t i)
{
	const struct seam_guest_origin *origin = &sample->origins[i];

	switch (seam_guest_frame_kind(sample->frames[i])) {
	case SEAM_GUEST_FRAME_GUEST:
		put_byte(out, SEAM_SYSPROF_LFUNC);
		put_uleb(out, sample->frames[i].id);
		put_uleb(out, origin->first_line);
		break;
	case SEAM_GUEST_FRAME_C:
		put_byte(out, SEAM_SYSPROF_CFUNC);
		put_uleb(out, origin->address);
		break;
	case SEAM_GUEST_FRAME_BUILTIN:
		put_byte(out, SEAM_SYSPROF_FFUNC);
		put_uleb(out, origin->address);
		break;
	default:	/* traces below others, and marks: not of this format */
		break;
	}
}

static void put_sample(struct seam_sysprof_out *out, enum seam_vmstate state,
		       const struct seam_guest_sample *sample, size_t n,
		       const struct seam_sysprof_host *host, size_t n_host)
{
	put_byte(out, (uint8_t)state);
	if (seam_vmstate_has_stack(state)) {
		for (size_t i = 0; i < n; i++)
			put_frame(out, sample, i);
		put_byte(out, SEAM_SYSPROF_FRAMES_END);
	}
	for (size_t i = 0; i < n_host; i++)
		put_uleb(out, host->pcs[i]);
	put_byte(out, HOST_END);
}

static void put_trace(struct seam_sysprof_stream *stream,
		      const struct seam_guest_sample *sample, uint64_t n_ticks)
{
	struct seam_sysprof_out *out = &stream->out;
	size_t i = find_trace(sample);
	uint32_t start = 0, line = 0;

	if (i < sample->n_frames)
		start = announce_trace(stream, sample->trace,
				       sample->frames[i].id);
	if (start && !seam_guest_describe(start, &stream->symbol))
		line = stream->symbol.line;
	for (; n_ticks && !out->is_halted; n_ticks--) {
		put_byte(out, SEAM_VMSTATE_TRACE);
		put_uleb(out, sample->trace);
		put_uleb(out, start);
		put_uleb(out, line);
	}
}

void seam_sysprof_stream_sample(struct seam_sysprof_stream *stream,
				const struct seam_guest_sample *sample,
				const struct seam_sysprof_host *host,
				bool is_leaf_only, uint64_t n_ticks)
{
	enum seam_vmstate state = seam_sysprof_state_of(sample);
	size_t n = sample->n_frames, n_host = host->n;

	if (is_leaf_only) {
		n = n > 1 ? 1 : n;
		n_host = n_host > 1 ? 1 : n_host;
	}
	if (state == SEAM_VMSTATE_TRACE) {
		put_trace(stream, sample, n_ticks);
	} else {
		for (size_t i = 0; seam_vmstate_has_stack(state) && i < n; i++)
			if (seam_guest_frame_kind(sample->frames[i]) ==
			    SEAM_GUEST_FRAME_GUEST)
				announce_function(stream,
						  sample->frames[i].id);
		for (; n_ticks && !stream->out.is_halted; n_ticks--)
			put_sample(&stream->out, state, sample, n, host,
				   n_host);
	}
	if (stream->out.used >= stream->out.enough)
		seam_sysprof_out_flush(&stream->out);
}

void seam_sysprof_stream_missed(struct seam_sysprof_stream *stream,
				uint64_t n)
{
	for (; n && !stream->out.is_halted; n--) {
		put_byte(&stream->out, SEAM_VMSTATE_INTERP);
		put_byte(&stream->out, HOST_END);
	}
}

void seam_sysprof_stream_end(struct seam_sysprof_stream *stream)
{
	put_byte(&stream->out, SEAM_SYSPROF_EPILOGUE);
	seam_sysprof_out_flush(&stream->out);
}
