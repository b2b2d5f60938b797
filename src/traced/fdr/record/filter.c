/* SPDX-License-Identifier: MIT */
/*
 * filter.c - see filter.h
 *
 * A handler between two steps adds calls above n, and removes them again.  So n
 * is raised before the new place is filled, and a value that was read is used
 * only after n was stored.  All accesses are relaxed: there is one thread.
 */
#include "traced/fdr/record/filter.h"

static uint32_t load(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static uint64_t frame_of(const struct seam_fdr_filter *f, uint32_t i)
{
	return atomic_load_explicit(&f->open[i], memory_order_relaxed);
}

bool seam_fdr_depth_enter(struct seam_fdr_filter *f, uint64_t frame,
			  bool is_inlined, uint32_t max_depth)
{
	uint32_t n = load(&f->n_open);

	while (n > 0 && frame_of(f, n - 1) <= frame - is_inlined)
		n--;
	if (n >= max_depth) {
		store(&f->n_open, n);
		return false;
	}
	/* again where a handler took a place that was not filled for gone */
	do {
		store(&f->n_open, n + 1);
		atomic_store_explicit(&f->open[n], frame, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
	} while (load(&f->n_open) != n + 1);
	return true;
}

bool seam_fdr_depth_leave(struct seam_fdr_filter *f, uint64_t frame)
{
	uint32_t n = load(&f->n_open);
	bool found = false;

	/* most often */
	if (n > 0 && frame_of(f, n - 1) == frame) {
		store(&f->n_open, n - 1);
		return true;
	}
	while (n > 0 && !found && frame_of(f, n - 1) <= frame)
		found = frame_of(f, --n) == frame;
	store(&f->n_open, n);
	return found;
}

/* The place of a timed call; n: not found. */
static uint32_t find(const struct seam_fdr_filter *f, uint32_t n,
		     uint64_t frame, uint32_t function)
{
	for (uint32_t i = n; i > 0; i--)
		if (f->timed[i - 1].frame == frame &&
		    f->timed[i - 1].function == function)
			return i - 1;
	return n;
}

static uint32_t oldest(const struct seam_fdr_filter *f)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < SEAM_FDR_MAX_TIMED; i++)
		if (f->timed[i].tsc < f->timed[first].tsc)
			first = i;
	return first;
}

void seam_fdr_timed_enter(struct seam_fdr_filter *f, uint64_t frame,
			  uint32_t function, uint64_t tsc)
{
	uint32_t n = load(&f->n_timed);
	/* a call that is found was left without an exit */
	uint32_t i = find(f, n, frame, function);

	if (i == SEAM_FDR_MAX_TIMED)
		i = oldest(f);
	else if (i == n)
		store(&f->n_timed, n + 1);
	f->timed[i] = (struct seam_fdr_timed) {
		.frame = frame, .tsc = tsc, .function = function,
	};
}

uint64_t seam_fdr_timed_leave(struct seam_fdr_filter *f, uint64_t frame,
			      uint32_t function)
{
	uint32_t n = load(&f->n_timed), i = find(f, n, frame, function);
	uint64_t tsc;

	if (i == n)
		return 0;
	tsc = f->timed[i].tsc;
	if (i != n - 1)
		f->timed[i] = f->timed[n - 1];
	store(&f->n_timed, n - 1);
	return tsc;
}
