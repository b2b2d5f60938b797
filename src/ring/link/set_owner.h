/* SPDX-License-Identifier: MIT */
/*
 * set_owner.h - whose a record is, written by the recorder
 *
 * Records that a traced program wrote say who they are from, but the program
 * could say anything.  The recorder writes the owner of the ring over it,
 * and takes only kinds of records that speak of nobody else: a program has
 * no business to report another's mappings, names or deaths.
 */
#ifndef SEAM_SET_OWNER_H
#define SEAM_SET_OWNER_H

#include "ring/layout.h"

/* Where the records of one event have {u32 pid, u32 tid}. */
struct seam_ring_stamp {
	uint32_t pid, tid;
	uint16_t sample_at;	/* from a SAMPLE's start; 0: it has none */
	uint16_t trailer_bytes;	/* of other records; 0: none */
	uint16_t trailer_at;	/* from the trailer's start */
};

/*
 * Stamp @record, a private copy of header->size bytes (seam_ring_copy()).
 * False when it is not a record that a program may write: drop it.
 */
bool seam_ring_stamp(void *record, const struct seam_ring_header *header,
		     const struct seam_ring_stamp *stamp);

#endif /* SEAM_SET_OWNER_H */
