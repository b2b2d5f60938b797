/* SPDX-License-Identifier: MIT */
/*
 * guest_walk.h - a sample that is being taken, as adapters of this library see
 * it
 *
 * seam_guest_take() walks the host's stack; for a frame in a VM's code the
 * adapter's bridge leads on, and may add an activation.  Then each adapter's
 * walk turns its activations into segments, by the functions below, in the
 * order of the callchain.
 */
#ifndef SEAM_GUEST_WALK_H
#define SEAM_GUEST_WALK_H

#include "seam/guest.h"
#include "target/guest/guest_memory.h"
#include "target/guest/guest_sample.h"

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

/* The activations of the sample, as they were found: innermost first. */
static inline struct seam_guest_activation *
seam_guest_activation(struct seam_guest_walk *walk, size_t i)
{
	return &walk->sample->activations[i];
}

/*
 * Begin the segment of @activation, or, where that is NULL, of frames of
 * @thread for which the host's stack has no place.  False: no room.
 */
bool seam_guest_begin_segment(struct seam_guest_walk *walk,
			      const struct seam_guest_activation *activation,
			      uint64_t thread);

/* Add a frame to the segment that was begun last; false: no room. */
bool seam_guest_add_frame(struct seam_guest_walk *walk,
			  enum seam_guest_frame_kind kind, uint32_t id,
			  uint32_t line,
			  const struct seam_guest_origin *origin);

/* Frames of the sample's last segment end here, for this reason. */
void seam_guest_end_segment(struct seam_guest_walk *walk,
			    enum seam_guest_end end);

/* Note why the guest's stack is not complete, unless a reason is noted. */
void seam_guest_note_end(struct seam_guest_walk *walk,
			 enum seam_guest_end end);

#endif /* SEAM_GUEST_WALK_H */
