/* SPDX-License-Identifier: MIT */
/*
 * program_ring.h - one ring of a program as an input of the drain
 *
 * It begins when the ring is first seen with a claim, and ends when the owner
 * has ended and the ring is empty.  owner->input points to it.
 */
#ifndef SEAM_PROGRAM_RING_H
#define SEAM_PROGRAM_RING_H

#include "record/services/services.h"

enum { SEAM_PROGRAM_RING_RECORD_BYTES = UINT16_MAX + 1 };

struct seam_program_ring {
	const struct seam_link_target *target;
	struct seam_link_rings *rings;
	uint32_t i;			/* which of these */
	struct seam_owner *owner;
	struct seam_service_stream stream;
	struct seam_tree_process *process;	/* the owner's; NULL: unknown */
	SEAM_ARRAY(uint8_t) records;	/* copied and not used, whole */
	bool has_begun;			/* for the service */
	bool is_previewed;		/* these records were */
	bool is_complete;		/* nothing will follow the copy */
	uint32_t n_unknown;		/* rounds before it began */
	uint64_t n_copied;		/* records that the program began */
	uint64_t n_reported;		/* losses written so far */
	uint64_t n_gaps;		/* items skipped before aux.first */
};

/* Ring @i of @rings; NULL: it has no owner, or there is no memory. */
struct seam_program_ring *
seam_program_ring_get(struct seam_services *s, struct seam_link_target *target,
		      struct seam_link_rings *rings, uint32_t i);

/* Copy what @ring holds, unless an earlier copy is still to be used. */
void seam_program_ring_copy(struct seam_services *s,
			    struct seam_program_ring *ring);

/* Find the owner of @ring, and hand a new copy to preview(). */
void seam_program_ring_preview(struct seam_services *s,
			       struct seam_program_ring *ring);

/*
 * Hand the copy to the service, if the owner is known.  Ends the input of an
 * owner that has ended; in the last round each.
 */
void seam_program_ring_take(struct seam_services *s,
			    struct seam_program_ring *ring);

/*
 * Hand what is in a free-running AUX buffer now to the service, for a snapshot.
 */
void seam_program_ring_snapshot_aux(struct seam_services *s,
				    struct seam_program_ring *ring);

/*
 * If the owner has skipped items for @cause since the last call: later copies
 * of its free-running AUX buffer begin at its present position.
 */
void seam_program_ring_skip_gap(struct seam_program_ring *ring,
				unsigned int cause);

/* Ask the kernel for what the side-band may have lost: the owner, or its end. */
void seam_program_ring_check(struct seam_services *s,
			     struct seam_program_ring *ring);

/*
 * @n, or the most that @n_threads of a program, running at once, can have
 * counted since it connected.
 */
uint64_t seam_program_ring_limit(const struct seam_link_target *target,
				 uint64_t n, uint64_t n_threads);

#endif /* SEAM_PROGRAM_RING_H */
