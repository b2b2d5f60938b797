/* SPDX-License-Identifier: MIT */
/* guest_counts.c - add up; see guest_counts.h */
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
