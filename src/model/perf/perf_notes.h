/* SPDX-License-Identifier: MIT */
/*
 * perf_notes.h - losses and notes of a profile that was read from perf.data,
 * and hints how to record more
 */
#ifndef SEAM_PERF_NOTES_H
#define SEAM_PERF_NOTES_H

#include "model/perf/resolver.h"
#include "model/perf/sideband.h"

/* Add what @scan could not read. */
void seam_perf_note_damage(struct seam_profile *profile,
			   const struct seam_perf_scan *scan);

/*
 * Add the losses that the side-band and the header report.  Of the records,
 * @n_paused were lost while a snapshot was copied.
 */
void seam_perf_note_losses(const struct seam_sideband *sideband,
			   uint64_t n_paused);

/*
 * Add a note for each file that was looked for and not found: how many samples
 * have no name because of it.  Reasons are another file at its path, and a
 * recording of another machine without build ids; where the recording was made
 * on this machine (@is_here), also a file that is gone.  After all samples were
 * resolved.
 */
void seam_missing_note(const struct seam_resolver *resolver, bool is_here);

/*
 * Add notes on guest records: those that break the format, functions without
 * names, stacks that are not complete, and a recording without another clock
 * (not @has_clock).  After all samples were resolved.
 */
void seam_perf_note_guest(struct seam_profile *profile,
			  const struct seam_guest_symbols *symbols,
			  bool has_clock);

/*
 * Add a note if a sampled recording has no callchains (@has_chains: those of
 * some event have), or if many of them end before the function in which their
 * thread began.  @is_overwrite: a ring that overwrites has no copies of stacks,
 * so nothing but frame pointers would help.
 *
 * Estimator: a callchain by frame pointers counts as complete where its
 * outermost user frame is the code that starts threads and processes, by
 * its name (_start, clone3, start_thread, ...) or, without one, by its file
 * (the C library or its loader).  A function that a program calls by itself
 * on a stack of its own (a coroutine) counts as cut though it is complete.
 */
void seam_stack_hint(struct seam_profile *profile, bool has_chains,
		     bool is_overwrite);

#endif /* SEAM_PERF_NOTES_H */
