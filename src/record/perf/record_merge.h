/* SPDX-License-Identifier: MIT */
/*
 * record_merge.h - the records of several rings in the order of time
 *
 * For readers of records that must not see an exec of one CPU before a
 * sample of another that is older.  Records of one ring stay in their order.
 *
 * Rings are read one after the other while others are written to.  So a
 * merge has a time, taken before the first ring is read: a later
 * record stays in its ring for the next round, because records before
 * it may have been missed in the rings that were read first.
 *
 * Threads: one.
 */
#ifndef SEAM_RECORD_MERGE_H
#define SEAM_RECORD_MERGE_H

#include "base/array.h"
#include "ring/consumer.h"

struct seam_merge_ring {
	struct seam_ring_span span;
	struct seam_ring_header header;	/* of the record at pos */
	size_t pos;			/* records before it were returned */
	uint64_t time;			/* of the record at pos */
	uint32_t id;			/* the caller's */
	bool is_cut;			/* the next record is too late */
};

/* Zeroed is valid and empty. */
struct seam_record_merge {
	size_t sample_time_pos;		/* in a sample, from its header on */
	size_t time_from_end;		/* in other records, to their end */
	uint64_t until;			/* the last time of a record */
	SEAM_ARRAY(struct seam_merge_ring) rings;
	SEAM_ARRAY(void *) heap;	/* of those rings, by time */
	bool is_begun;			/* a record was returned */
};

/* Begin with no ring. */
void seam_record_merge_begin(struct seam_record_merge *merge, uint64_t until);

/* Add the records in @span, of ring @id.  False: out of memory. */
bool seam_record_merge_add(struct seam_record_merge *merge,
			   const struct seam_ring_span *span, uint32_t id);

/*
 * The ring of the next record, which is at *@pos of its span and has
 * *@header; NULL: that was the last one.
 */
struct seam_merge_ring *
seam_record_merge_next(struct seam_record_merge *merge, size_t *pos,
		       struct seam_ring_header *header);

void seam_record_merge_fini(struct seam_record_merge *merge);

#endif /* SEAM_RECORD_MERGE_H */
