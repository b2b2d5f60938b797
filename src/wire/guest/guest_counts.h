/* SPDX-License-Identifier: MIT */
/*
 * guest_counts.h - how many guest records were complete, and why others not
 *
 * Threads: one; counts of several are added up.
 */
#ifndef SEAM_GUEST_COUNTS_H
#define SEAM_GUEST_COUNTS_H

#include "wire/guest/guest_record.h"

/* Zeroed is valid and empty. */
struct seam_guest_counts {
	uint64_t n_guest[SEAM_GUEST_N_ENDS];	/* by guest_end */
	uint64_t n_host[SEAM_STACK_N_ENDS];	/* by host_end */
	/* both complete; without a VM on the stack, the host's alone */
	uint64_t n_complete;
	uint64_t n_ticks;	/* that all of them represent */
	uint64_t n_bad;		/* records that break the format; not above */
};

/* Whether no frame is missing, of guest or host. */
static inline bool seam_guest_is_whole(const struct seam_guest_head *head)
{
	return (head->guest_end == SEAM_GUEST_COMPLETE ||
		head->guest_end == SEAM_GUEST_ABSENT) &&
	       head->host_end == SEAM_STACK_COMPLETE;
}

/* Count a record, which was checked. */
static inline void seam_guest_counts_add(struct seam_guest_counts *counts,
					 const struct seam_guest_head *head)
{
	counts->n_guest[head->guest_end]++;
	counts->n_host[head->host_end]++;
	counts->n_complete += seam_guest_is_whole(head);
	counts->n_ticks += head->n_ticks;
}

/* Add the counts of @from. */
void seam_guest_counts_merge(struct seam_guest_counts *counts,
			     const struct seam_guest_counts *from);

/* How many records were counted, those that break the format left out. */
uint64_t seam_guest_counts_total(const struct seam_guest_counts *counts);

/* A name for JSON, and for people: "unsettled", "the VM was changing...". */
const char *seam_guest_end_key(enum seam_guest_end end);
const char *seam_guest_end_text(enum seam_guest_end end);

#endif /* SEAM_GUEST_COUNTS_H */
