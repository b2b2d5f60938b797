/* SPDX-License-Identifier: MIT */
/*
 * guest_walk.h - a sample that is being taken, as adapters of this library see
 * it
 *
 * seam_guest_take() walks the host's stack; for a frame in a VM's code the
 * adapter's bridge finds the caller, and may add an activation.  Then each
 * adapter's walk turns its activations into segments, in the order of the
 * callchain.  The functions that it calls are in seam/guest.h.
 */
#ifndef SEAM_GUEST_WALK_H
#define SEAM_GUEST_WALK_H

#include "seam/guest.h"
#include "traced/guest/guest_memory.h"
#include "traced/guest/guest_sample.h"

enum { SEAM_GUEST_MAX_VMS = 8 };

struct seam_guest_walk {
	struct seam_guest_sample *sample;
	/* Of the host's walk: while bridge runs, it reads the own stack. */
	const struct seam_unwind_memory *stack;
	size_t n_activations;
	/* Of which VM each is. */
	uint8_t owner[SEAM_GUEST_MAX_SEGMENTS];
	struct seam_guest_memory memory;
};

/* Note why the guest's stack is not complete, unless a reason is noted. */
void seam_guest_note_end(struct seam_guest_walk *walk,
			 enum seam_guest_end end);

#endif /* SEAM_GUEST_WALK_H */
