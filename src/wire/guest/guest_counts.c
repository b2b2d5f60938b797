/* SPDX-License-Identifier: MIT */
/* guest_counts.c - add up, and name; see guest_counts.h */
#include "wire/guest/guest_counts.h"

void seam_guest_counts_merge(struct seam_guest_counts *counts,
			     const struct seam_guest_counts *from)
{
	for (size_t i = 0; i < SEAM_GUEST_N_ENDS; i++)
		counts->n_guest[i] += from->n_guest[i];
	for (size_t i = 0; i < SEAM_STACK_N_ENDS; i++)
		counts->n_host[i] += from->n_host[i];
	counts->n_complete += from->n_complete;
	counts->n_ticks += from->n_ticks;
	counts->n_bad += from->n_bad;
}

uint64_t seam_guest_counts_total(const struct seam_guest_counts *counts)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SEAM_GUEST_N_ENDS; i++)
		n += counts->n_guest[i];
	return n;
}

const char *seam_guest_end_key(enum seam_guest_end end)
{
	static const char *const keys[SEAM_GUEST_N_ENDS] = {
		[SEAM_GUEST_COMPLETE] = "complete",
		[SEAM_GUEST_ABSENT] = "absent",
		[SEAM_GUEST_CUT] = "cut",
		[SEAM_GUEST_NOT_FOUND] = "not_found",
		[SEAM_GUEST_INVALID] = "invalid",
		[SEAM_GUEST_UNSETTLED] = "unsettled",
		[SEAM_GUEST_UNREADABLE] = "unreadable",
		[SEAM_GUEST_NO_PROGRESS] = "no_progress",
		[SEAM_GUEST_HOST_ENDED] = "host_ended",
	};

	return end < SEAM_GUEST_N_ENDS ? keys[end] : NULL;
}

const char *seam_guest_end_text(enum seam_guest_end end)
{
	static const char *const texts[SEAM_GUEST_N_ENDS] = {
		[SEAM_GUEST_COMPLETE] = "complete",
		[SEAM_GUEST_ABSENT] = "no VM on the stack",
		[SEAM_GUEST_CUT] = "too deep: frames in the middle left out",
		[SEAM_GUEST_NOT_FOUND] = "a VM's frame without its state",
		[SEAM_GUEST_INVALID] = "a VM's state that contradicts itself",
		[SEAM_GUEST_UNSETTLED] = "the VM was changing its frames",
		[SEAM_GUEST_UNREADABLE] = "memory that could not be read",
		[SEAM_GUEST_NO_PROGRESS] = "a chain of frames without end",
		[SEAM_GUEST_HOST_ENDED] = "the host's stack ended before",
	};

	return end < SEAM_GUEST_N_ENDS ? texts[end] : NULL;
}
