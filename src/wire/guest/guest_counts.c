/* SPDX-License-Identifier: MIT */
/* guest_counts.c - add up, and name; see guest_counts.h */
#include "wire/guest/guest_counts.h"

/* For JSON, and for people. */
static const char *const ends[SEAM_GUEST_N_ENDS][2] = {
	[SEAM_GUEST_COMPLETE] = { "complete", "complete" },
	[SEAM_GUEST_ABSENT] = { "absent", "no VM on the stack" },
	[SEAM_GUEST_CUT] = {
		"cut", "too deep: frames in the middle left out" },
	[SEAM_GUEST_NOT_FOUND] = {
		"not_found", "a VM's frame without its state" },
	[SEAM_GUEST_INVALID] = {
		"invalid", "a VM's state that contradicts itself" },
	[SEAM_GUEST_UNSETTLED] = {
		"unsettled", "the VM was changing its frames" },
	[SEAM_GUEST_UNREADABLE] = {
		"unreadable", "memory that could not be read" },
	[SEAM_GUEST_NO_PROGRESS] = {
		"no_progress", "a chain of frames without end" },
	[SEAM_GUEST_HOST_ENDED] = {
		"host_ended", "the host's stack ended before" },
};

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
	return end < SEAM_GUEST_N_ENDS ? ends[end][0] : NULL;
}

const char *seam_guest_end_text(enum seam_guest_end end)
{
	return end < SEAM_GUEST_N_ENDS ? ends[end][1] : NULL;
}
