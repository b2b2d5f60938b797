/* SPDX-License-Identifier: MIT */
/*
 * set_owner.h - the identity of a program's record, written by the recorder
 *
 * A program can write any event id, process, thread and time into its
 * records.  The recorder overwrites them with those of the ring's event and
 * owner, and bounds the time.  It accepts samples only: a program must not
 * report mappings, names or exits, and its losses are taken from the ring's
 * counts.
 */
#ifndef SEAM_SET_OWNER_H
#define SEAM_SET_OWNER_H

#include "ring/layout.h"

struct seam_ring_identity {
	uint64_t sample_type;	/* with IDENTIFIER, TID and TIME */
	uint64_t id;		/* of the event */
	uint32_t pid, tid;
	uint64_t min_ns, max_ns;	/* of the time; inclusive */
};

/*
 * Write @identity into @record, a private copy of header->size bytes
 * (seam_ring_copy()).  False when it is no sample, or too short: drop it.
 */
bool seam_ring_set_owner(void *record, const struct seam_ring_header *header,
			 const struct seam_ring_identity *identity);

/* The time in a sample that seam_ring_set_owner() has accepted. */
uint64_t seam_ring_sample_time(const void *record, uint64_t sample_type);

#endif /* SEAM_SET_OWNER_H */
