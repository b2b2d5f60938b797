/* SPDX-License-Identifier: MIT */
/* stream_events.c - write the stream's records; see stream_events.h */
#include "traced/sysprof/stream_events.h"

#include "wire/sysprof/sysprof.h"

/* After the host's stack, in the place of an address. */
enum { HOST_END = 0 };

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
	seam_sysprof_out_byte(out, is_event ? SEAM_SYSPROF_EVENT_CFUNC :
					      SEAM_SYSPROF_SYMTAB_CFUNC);
	seam_sysprof_out_uleb(out, addr);
	seam_sysprof_out_string(out, name, n);
}

void seam_sysprof_stream_end_symbols(struct seam_sysprof_stream *stream)
{
	seam_sysprof_out_byte(&stream->out, SEAM_SYSPROF_FINAL);
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
	seam_sysprof_out_byte(&stream->out, SEAM_SYSPROF_EVENT_LFUNC);
	seam_sysprof_out_uleb(&stream->out, id);
	seam_sysprof_out_string(&stream->out, symbol->chunk, symbol->n_chunk);
	seam_sysprof_out_uleb(&stream->out, symbol->line);
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
		seam_sysprof_out_byte(out, SEAM_SYSPROF_EVENT_TRACE);
		seam_sysprof_out_uleb(out, number);
		seam_sysprof_out_uleb(out, start);
		seam_sysprof_out_uleb(out, line);
		stream->traces[number] = id;
	}
	return start;
}

static void announce(struct seam_sysprof_stream *stream,
		     const struct seam_guest_sample *sample, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (seam_guest_frame_kind(sample->frames[i]) ==
		    SEAM_GUEST_FRAME_GUEST)
			announce_function(stream, sample->frames[i].id);
}

/* ---- samples ---- */

static void put_frame(struct seam_sysprof_out *out,
		      const struct seam_guest_sample *sample, size_t i)
{
	const struct seam_guest_origin *origin = &sample->origins[i];

	switch (seam_guest_frame_kind(sample->frames[i])) {
	case SEAM_GUEST_FRAME_GUEST:
		seam_sysprof_out_byte(out, SEAM_SYSPROF_LFUNC);
		seam_sysprof_out_uleb(out, sample->frames[i].id);
		seam_sysprof_out_uleb(out, origin->first_line);
		break;
	case SEAM_GUEST_FRAME_C:
		seam_sysprof_out_byte(out, SEAM_SYSPROF_CFUNC);
		seam_sysprof_out_uleb(out, origin->address);
		break;
	case SEAM_GUEST_FRAME_BUILTIN:
		seam_sysprof_out_byte(out, SEAM_SYSPROF_FFUNC);
		seam_sysprof_out_uleb(out, origin->address);
		break;
	default:	/* traces below others, and marks: not of this format */
		break;
	}
}

static void put_sample(struct seam_sysprof_out *out, enum seam_vmstate state,
		       const struct seam_guest_sample *sample, size_t n,
		       const struct seam_sysprof_host *host, size_t n_host)
{
	seam_sysprof_out_byte(out, (uint8_t)state);
	if (seam_vmstate_has_stack(state)) {
		for (size_t i = 0; i < n; i++)
			put_frame(out, sample, i);
		seam_sysprof_out_byte(out, SEAM_SYSPROF_FRAMES_END);
	}
	for (size_t i = 0; i < n_host; i++)
		seam_sysprof_out_uleb(out, host->pcs[i]);
	seam_sysprof_out_byte(out, HOST_END);
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
		seam_sysprof_out_byte(out, SEAM_VMSTATE_TRACE);
		seam_sysprof_out_uleb(out, sample->trace);
		seam_sysprof_out_uleb(out, start);
		seam_sysprof_out_uleb(out, line);
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
		if (seam_vmstate_has_stack(state))
			announce(stream, sample, n);
		for (; n_ticks && !stream->out.is_halted; n_ticks--)
			put_sample(&stream->out, state, sample, n, host,
				   n_host);
	}
	seam_sysprof_out_end_record(&stream->out);
}

void seam_sysprof_stream_missed(struct seam_sysprof_stream *stream,
				uint64_t n)
{
	for (; n && !stream->out.is_halted; n--) {
		seam_sysprof_out_byte(&stream->out, SEAM_VMSTATE_INTERP);
		seam_sysprof_out_byte(&stream->out, HOST_END);
	}
}

enum seam_vmstate
seam_sysprof_state_of(const struct seam_guest_sample *sample)
{
	return sample->head.vmstate < SEAM_N_VMSTATES ?
	       (enum seam_vmstate)sample->head.vmstate : SEAM_VMSTATE_CFUNC;
}

void seam_sysprof_stream_end(struct seam_sysprof_stream *stream)
{
	seam_sysprof_out_byte(&stream->out, SEAM_SYSPROF_EPILOGUE);
	seam_sysprof_out_flush(&stream->out);
}
