/* SPDX-License-Identifier: MIT */
/*
 * stream_events.h - a sysprof stream, as it is recorded: symbols, then samples
 *
 * Version 3 of symbol tables ("ljs"), version 2 of streams ("ljp");
 * doc/formats/sysprof.md has both.  C symbols are in the table at the start
 * where they are known by then.  A Lua function or a trace becomes an event
 * before the first sample that has it.
 *
 * A Lua function's sym-addr is its id, which is never used for another one,
 * where an address is used again after garbage collection.
 *
 * Bytes are collected in a buffer.  A full one goes to the writer, in the
 * handler that filled it, as in the original.  Failure is sticky: after it,
 * what is put is dropped.
 *
 * seam_sysprof_stream_sample() and what it calls run in a signal handler.
 * Threads: one at a time; see profiler.h.
 */
#pragma once

#include <seam/lmisclib.h>

#include "traced/guest/guest_sample.h"

/* ---- bytes ---- */

struct seam_sysprof_out {
	luam_Sysprof_writer writer;
	void *ctx;		/* the writer's */
	uint8_t *data;		/* NULL after the writer ended the stream */
	size_t size, used;	/* bytes */
	/*
	 * At the end of a record, so many bytes are written although there is
	 * room: what a crash leaves ends with a whole record.
	 */
	size_t enough;
	bool is_halted;		/* the writer failed, or ended the stream */
	int saved_errno;	/* at that moment */
};

/* Write what is in the buffer. */
void seam_sysprof_out_flush(struct seam_sysprof_out *out);

void seam_sysprof_out_bytes(struct seam_sysprof_out *out, const void *bytes,
			    size_t n);

/* ---- records ---- */

enum { SEAM_SYSPROF_MAX_TRACES = 65536 };	/* numbers have 16 bits */

struct seam_sysprof_stream {
	struct seam_sysprof_out out;
	/* Whether an id is in the stream. */
	bool has_function[SEAM_GUEST_MAX_SYMBOLS + 1];
	/* The id of the trace whose number it is in the stream; 0: none. */
	uint32_t traces[SEAM_SYSPROF_MAX_TRACES];
	struct seam_guest_symbol symbol;	/* in use by the handler */
};

/* The host's stack, leaf first. */
struct seam_sysprof_host {
	uint64_t pcs[SEAM_GUEST_MAX_HOST];
	size_t n;
};

/* Begin a stream on @out. */
void seam_sysprof_stream_begin(struct seam_sysprof_stream *stream,
			       const struct seam_sysprof_out *out);

/* A symbol of C: in the table, or as an event among samples. */
void seam_sysprof_stream_native(struct seam_sysprof_out *out, bool is_event,
				uint64_t addr, const char *name, size_t n);

/* The table is complete. */
void seam_sysprof_stream_end_symbols(struct seam_sysprof_stream *stream);

/* As many equal samples as the ticks that it stands for. */
void seam_sysprof_stream_sample(struct seam_sysprof_stream *stream,
				const struct seam_guest_sample *sample,
				const struct seam_sysprof_host *host,
				bool is_leaf_only, uint64_t n_ticks);

/*
 * Samples of which nothing is known: in state INTERP, which has no Lua stack,
 * with no frame of the host.
 */
void seam_sysprof_stream_missed(struct seam_sysprof_stream *stream,
				uint64_t n);

/* The state that a sample counts for; C where no VM is on the stack. */
static inline enum seam_vmstate
seam_sysprof_state_of(const struct seam_guest_sample *sample)
{
	return sample->head.vmstate < SEAM_N_VMSTATES ?
	       (enum seam_vmstate)sample->head.vmstate : SEAM_VMSTATE_CFUNC;
}

/* The end, and write all. */
void seam_sysprof_stream_end(struct seam_sysprof_stream *stream);
