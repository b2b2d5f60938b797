/* SPDX-License-Identifier: MIT */
/*
 * guest_record.h - what a virtual machine did at a sample, and its symbols
 *
 * Two records travel as RAW data of perf samples: the guest record of event
 * seam:guest, one instant of one thread, and the symbol record of event
 * seam:guest_symtab, the name of one function.  doc/formats/guest.md describes
 * both; guest_encode.h writes them in a signal handler, guest_decode.h reads
 * them from files.
 *
 * A guest record belongs to the callchain of its sample.  It has segments,
 * innermost first: each is a run of the guest's frames that were active in one
 * activation of the VM, and the place of that activation in the callchain.
 * Frames carry ids; a symbol record gives an id its name.  An id is valid in
 * one table of one process: a number that the process changes at exec and
 * fork, so that neither order nor time of the records matters.
 *
 * All numbers here are on disk: values are appended, none is used again.
 */
#pragma once

#include "base/base.h"
#include "wire/stack_counts.h"
#include "wire/vmstate.h"

enum {
	SEAM_GUEST_VERSION = 1,
	SEAM_GUEST_MAX_BYTES = 32 << 10, /* of a record */
	SEAM_GUEST_MAX_SEGMENTS = 255,
	SEAM_GUEST_MAX_CHUNK = 1024,	/* bytes of a chunk's name */
	SEAM_GUEST_MAX_NAME = 200,	/* bytes of a function's own name */
	SEAM_GUEST_MAX_LINE = (1 << 28) - 1,
	SEAM_GUEST_NO_JOIN = 0xffff,
};

/* The two events, by the names that they have in a recording. */
#define SEAM_GUEST_EVENT "seam:guest"
#define SEAM_GUEST_SYMTAB_EVENT "seam:guest_symtab"

enum seam_guest_event {
	SEAM_GUEST_EVENT_NONE,		/* any other event */
	SEAM_GUEST_EVENT_SAMPLES,
	SEAM_GUEST_EVENT_SYMBOLS,
};

static inline enum seam_guest_event seam_guest_event_of(const char *name)
{
	if (!name)
		return SEAM_GUEST_EVENT_NONE;
	return strcmp(name, SEAM_GUEST_EVENT) == 0 ? SEAM_GUEST_EVENT_SAMPLES :
	       strcmp(name, SEAM_GUEST_SYMTAB_EVENT) == 0 ?
	       SEAM_GUEST_EVENT_SYMBOLS : SEAM_GUEST_EVENT_NONE;
}

enum seam_guest_kind {
	SEAM_GUEST_SAMPLE = 1,
	SEAM_GUEST_SYMBOL = 2,
};

enum seam_guest_adapter {
	SEAM_GUEST_LUAJIT = 1,
};

/* How a walk over the guest's frames ended. */
enum seam_guest_end {
	SEAM_GUEST_COMPLETE,	/* all frames of all activations */
	SEAM_GUEST_ABSENT,	/* no VM on this stack: nothing to walk */
	SEAM_GUEST_CUT,		/* too deep: frames in the middle left out */
	SEAM_GUEST_NOT_FOUND,	/* a VM's frame, but not its state */
	SEAM_GUEST_INVALID,	/* a state that contradicts itself */
	SEAM_GUEST_UNSETTLED,	/* the VM was changing the frames */
	SEAM_GUEST_UNREADABLE,	/* memory that could not be read */
	SEAM_GUEST_NO_PROGRESS,	/* a chain of frames that does not end */
	SEAM_GUEST_HOST_ENDED,	/* the host's stack ended before */
	SEAM_GUEST_N_ENDS,
};

/* Flags of a guest record. */
enum {
	/* by a timer, not the kernel's event: no kernel part at any tick */
	SEAM_GUEST_BY_TIMER = 1 << 0,
	/* the kernel part of the callchain was lost, or belongs to another */
	SEAM_GUEST_NO_KERNEL = 1 << 1,
	SEAM_GUEST_SAMPLE_FLAGS = (1 << 2) - 1,
};

/* Flags of a symbol record: only the first bytes of a text are there. */
enum {
	SEAM_GUEST_CHUNK_CUT = 1 << 0,
	SEAM_GUEST_NAME_CUT = 1 << 1,
	SEAM_GUEST_SYMBOL_FLAGS = (1 << 2) - 1,
};

/*
 * The start of a guest record.  Version and kind are not here: the codec
 * writes and checks them.
 */
struct seam_guest_head {
	uint8_t adapter;	/* enum seam_guest_adapter */
	uint8_t flags;
	uint32_t table;		/* in which the ids are valid; not 0 */
	uint8_t vmstate;	/* enum seam_vmstate of the innermost VM */
	uint8_t guest_end;	/* enum seam_guest_end, the first that is not */
				/* complete */
	uint8_t host_end;	/* enum seam_stack_end of the callchain */
	uint8_t n_segments;
	uint32_t n_ticks;	/* ticks that the sample stands for; not 0 */
	uint64_t vm;		/* identity of the VM, an address; 0: none */
};

/*
 * Frames of one activation.  They replace the @n_replaced frames from index
 * @join on of the callchain's user part; 0 is the first entry after
 * PERF_CONTEXT_USER.  0 replaced: they are inserted there, as callees of that
 * entry.  SEAM_GUEST_NO_JOIN, of the last segment only: the callchain ended
 * before that activation, these frames are its outermost.  Segments are in
 * the order of the callchain and do not overlap.  A segment without frames
 * replaces nothing.
 */
struct seam_guest_segment {
	uint16_t join;
	uint16_t n_replaced;
	uint16_t n_frames;
	uint16_t end;		/* enum seam_guest_end of these frames */
	uint64_t thread;	/* identity of the coroutine, an address */
};

enum seam_guest_frame_kind {
	SEAM_GUEST_FRAME_GUEST,	/* a function of the guest's language */
	SEAM_GUEST_FRAME_C,	/* a C function that the callchain lacks */
	SEAM_GUEST_FRAME_BUILTIN, /* built into the VM */
	SEAM_GUEST_FRAME_TRACE,	/* compiled code, callee of its function */
	SEAM_GUEST_FRAME_CUT,	/* in place of @id frames left out */
	SEAM_GUEST_N_FRAME_KINDS,
};

/* One frame, leaf first. */
struct seam_guest_frame {
	uint32_t id;		/* not 0; ids of all kinds are of one space */
	uint32_t place;		/* bits 28-31: kind; 0-27: line, 0: not known */
};

/* The name of an id. */
struct seam_guest_symbol {
	uint8_t adapter;
	uint8_t flags;
	uint32_t table;		/* as in the guest records; not 0 */
	uint32_t id;		/* not 0 */
	/* of a trace: the id of the function in which it starts; else 0 */
	uint32_t start;
	uint32_t line;		/* of the definition, or a trace's first; 0: */
				/* not known */
	uint32_t last_line;	/* 0: not known */
	/* the function's prototype or code; number of a builtin or trace */
	uint64_t address;
	uint16_t n_chunk;
	uint8_t n_name;
	uint8_t kind;		/* enum seam_guest_frame_kind, not CUT */
	/* neither has a NUL at its end */
	char chunk[SEAM_GUEST_MAX_CHUNK]; /* as the VM has it: "@app.lua" */
	char name[SEAM_GUEST_MAX_NAME];
};

static inline struct seam_guest_frame
seam_guest_frame_make(enum seam_guest_frame_kind kind, uint32_t id,
		      uint32_t line)
{
	if (line > SEAM_GUEST_MAX_LINE)
		line = 0;
	return (struct seam_guest_frame) { id, (uint32_t)kind << 28 | line };
}

static inline uint32_t seam_guest_frame_line(struct seam_guest_frame frame)
{
	return frame.place & SEAM_GUEST_MAX_LINE;
}

/* May be SEAM_GUEST_N_FRAME_KINDS or more in a record that was not checked. */
static inline uint32_t seam_guest_frame_kind(struct seam_guest_frame frame)
{
	return frame.place >> 28;
}

/*
 * Why ticks have no sample of their own: indices of n_skipped in the state of a
 * ring, which the sampler writes and the recorder adds.  Ticks whose records
 * did not fit are in the ring's own counts.
 */
enum seam_sampler_skip {
	SEAM_SAMPLER_MERGED,	/* the signal came late: in the next weight */
	SEAM_SAMPLER_THROTTLED,	/* samples took too much of the CPU time */
	SEAM_SAMPLER_NO_STACK,	/* the stack has too little room */
	SEAM_SAMPLER_ENDED,	/* left over at the end of a thread */
};
