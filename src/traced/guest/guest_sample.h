/* SPDX-License-Identifier: MIT */
/*
 * guest_sample.h - one instant of a thread: host stack and guest stack
 *
 *	seam_self_init();		once (unwind/in_process)
 *	seam_guest_init();		once: find VMs, calibrate, prove
 *	seam_self_thread_begin();	in each thread
 *	...
 *	in a handler:
 *	seam_guest_take(context, sample);
 *	for (size_t i = 0; i < sample->n_fresh; i++)
 *		if (seam_guest_describe(sample->fresh[i], &symbol) == 0)
 *			announce(&symbol);
 *	...
 *	outside handlers, when images were loaded or unloaded:
 *	seam_self_refresh();
 *	seam_guest_refresh();
 *
 * The sample is in memory of the caller's, mapped beforehand: it is too large
 * for a handler's stack.
 *
 * Functions that were seen have ids, from 1 on, never used again in this
 * process; a forked child inherits those of its parent.  A function is named
 * when its id is made, while it is on a stack: it may be collected later.
 *
 * x86-64 only.
 */
#pragma once

#include <ucontext.h>

#include "unwind/walk/walk.h"
#include "wire/guest/guest_record.h"

enum {
	SEAM_GUEST_MAX_HOST = 512,
	SEAM_GUEST_MAX_FRAMES = 2048,
	SEAM_GUEST_MAX_SYMBOLS = 65536,
	SEAM_GUEST_MAX_REFUSAL = 256,	/* bytes of a text */
	SEAM_GUEST_SCRATCH_WORDS = 8192,
	SEAM_GUEST_NOTES = 5,
};

_Static_assert(24 + 16 * SEAM_GUEST_MAX_SEGMENTS + 8 * SEAM_GUEST_MAX_FRAMES <=
	       SEAM_GUEST_MAX_BYTES - 8, "each sample fits a record");

/* One run of the machine, between two parts of the host's stack. */
struct seam_guest_activation {
	uint64_t vm;		/* identity of the machine: an address */
	uint64_t thread;	/* of its thread, or coroutine */
	uint64_t notes[SEAM_GUEST_NOTES];	/* from bridge to walk */
	uint16_t host;		/* index of its frame in the host's stack */
	uint8_t kind;		/* the adapter's */
};

/* What a frame is, beyond its record. */
struct seam_guest_origin {
	uint64_t address;	/* of prototype or C function; number of a */
				/* builtin or trace */
	uint32_t first_line;	/* of its definition; 0: none */
	bool is_on_host;	/* a C function that is in the host's stack */
};

/*
 * Zeroed, then filled by seam_guest_take().  Threads: one, and one handler:
 * a handler that interrupts needs another.
 */
struct seam_guest_sample {
	struct seam_unwind_stack stack;	/* .frames is .host */
	struct seam_unwind_frame host[SEAM_GUEST_MAX_HOST];
	/*
	 * Filled: adapter, vmstate, guest_end, host_end, n_segments, vm.
	 * Left to the caller: flags, table, n_ticks.
	 */
	struct seam_guest_head head;
	struct seam_guest_segment segments[SEAM_GUEST_MAX_SEGMENTS];
	/*
	 * Of all segments, one after the other; C functions that are in the
	 * host's stack are not among them unless .with_c is set.
	 */
	struct seam_guest_frame frames[SEAM_GUEST_MAX_FRAMES];
	struct seam_guest_origin origins[SEAM_GUEST_MAX_FRAMES];
	size_t n_frames;
	/* In vmstate TRACE: the trace's number, else 0. */
	uint32_t trace;
	/* Ids that nobody has announced, or that have a better name now. */
	uint32_t fresh[SEAM_GUEST_MAX_FRAMES + 1];
	size_t n_fresh;
	/* The caller's, not changed: whether frames of C functions stay. */
	bool with_c;
	/* What is known while the sample is taken; see guest_adapter.h. */
	struct seam_guest_activation activations[SEAM_GUEST_MAX_SEGMENTS];
	struct seam_guest_symbol text;	/* of a function that gets an id */
	uint64_t scratch[SEAM_GUEST_SCRATCH_WORDS];	/* the adapter's */
};

/*
 * Walk the host's stack from @context, as the kernel passed it to the handler
 * that runs, and the guest's frames of every VM on it.  Signal-safe: no lock,
 * no allocation, errno as it was, bounded work, and no content of memory or
 * registers makes it fault.  Where no VM is known it is seam_self_walk().
 */
void seam_guest_take(const ucontext_t *context,
		     struct seam_guest_sample *sample);

/*
 * The name of a function.  0; -ENOENT; -EAGAIN while the thread that saw it
 * first still writes it down.  .table is left to the caller.  Signal-safe.
 */
int seam_guest_describe(uint32_t id, struct seam_guest_symbol *symbol);

/* Ids are 1 to this number; grows. */
uint32_t seam_guest_n_symbols(void);

/*
 * Put the id into .fresh again when it is next seen: it could not be
 * announced.  The second: all ids, as in a forked child.  Signal-safe.
 */
void seam_guest_announce_again(uint32_t id);
void seam_guest_announce_all_again(void);

/*
 * Prepare, find the VMs in this process, calibrate and prove an adapter for
 * each.  0: at least one is in use.  -ENOENT: there is none.  -ENOTSUP: there
 * are, and all were refused: see seam_guest_refusal().  -ENOMEM.  Not in a
 * handler; not in two threads at once; before other threads run the VM, or
 * while they do: states of its own are used.
 *
 * Cost: some milliseconds for each VM; later calls only look at what was
 * loaded since.  A VM whose experiments run out of memory is refused;
 * lua_newstate() of LuaJIT 2.1 itself may crash then.
 */
int seam_guest_init(void);

/* The same again; cheap where nothing was loaded or unloaded. */
int seam_guest_refresh(void);

/* Why a VM was refused, the last one; "" where none was. */
const char *seam_guest_refusal(void);
