/* SPDX-License-Identifier: MIT */
/*
 * program_ring.h - one ring of a program as an input of the drain
 *
 * It begins when the ring is first seen with an owner, and ends when that
 * owner has ended and the ring is empty.  owner->input points to it.
 */
#ifndef SEAM_PROGRAM_RING_H
#define SEAM_PROGRAM_RING_H

#include "record/services/services.h"

enum { SEAM_PROGRAM_RING_RECORD_BYTES = UINT16_MAX + 1 };

/* Ring @i of a program for a service, and its owner. */
struct seam_program_ring {
	const struct seam_link_target *target;
	struct seam_link_rings *rings;
	uint32_t i;
	struct seam_owner *owner;
	struct seam_service *service;
};

/* Copy what @ring holds, unless an earlier copy is still to be used. */
void seam_program_ring_copy(struct seam_services *s,
			    const struct seam_program_ring *ring, bool is_last);

/* Find the owner of @ring, and hand a new copy to preview(). */
void seam_program_ring_preview(struct seam_services *s,
			       const struct seam_program_ring *ring,
			       bool is_last);

/*
 * Hand the copy to the service, if the owner is known.  Ends the input of an
 * owner that has ended; with @is_last every input.
 */
void seam_program_ring_take(struct seam_services *s,
			    const struct seam_program_ring *ring, bool is_last);

/*
 * Hand what is in a free-running AUX buffer now to the service, for a snapshot.
 */
void seam_program_ring_snapshot_aux(struct seam_services *s,
				    const struct seam_program_ring *ring,
				    bool is_last);

/*
 * If the owner has skipped items for @cause since the last call: later copies
 * of its free-running AUX buffer begin at its present position.  The owner is
 * known.
 */
void seam_program_ring_skip_gap(const struct seam_program_ring *ring,
				unsigned int cause);

/* Whether process @pid is the owner. */
bool seam_program_ring_is_of(const struct seam_program_ring *ring,
			     uint32_t pid);

/* Ask the kernel for what the side-band may have lost: the owner, or its end. */
void seam_program_ring_check(struct seam_services *s,
			     const struct seam_program_ring *ring,
			     bool is_last);

/*
 * @n, or the most that @n_threads of a program, running at once, can have
 * counted since it connected.
 */
uint64_t seam_program_ring_limit(const struct seam_link_target *target,
				 uint64_t n, uint64_t n_threads);

#endif /* SEAM_PROGRAM_RING_H */
