/* SPDX-License-Identifier: MIT */
/*
 * made_up_guest.h - guest samples without a VM, for tests of the stream
 *
 * In the place of traced/guest: the host's stack is real, the guest's is what
 * the test set.
 */
#ifndef MADE_UP_GUEST_H
#define MADE_UP_GUEST_H

#include <seam/lmisclib.h>

#include "traced/guest/guest_sample.h"

/* A function; its id is its index and 1. */
struct made_up_function {
	const char *chunk;
	uint32_t line;
	uint32_t start;		/* of a trace, the id of its function */
	uint64_t address;
	uint8_t kind;		/* enum seam_guest_frame_kind */
};

struct made_up_guest {
	const struct made_up_function *functions;
	size_t n_functions;
	uint8_t vmstate;
	uint32_t trace;
	uint32_t ids[64];	/* of the frames, leaf first */
	size_t n_ids;
	int refusal;		/* of seam_guest_init() */
	const char *refusal_text;
	uint64_t n_taken;
	void (*on_take)(void);	/* in the handler; may be NULL */
};

extern struct made_up_guest made_up_guest;

/* Fill in @sample as in a handler, but for the host's stack. */
void made_up_frames(struct seam_guest_sample *sample);

#endif /* MADE_UP_GUEST_H */
