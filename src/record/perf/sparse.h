/* SPDX-License-Identifier: MIT */
/*
 * sparse.h - fewer samples of a program that its sampler samples
 *
 * Once libseam-sampler samples the threads of the command, the recorder's
 * samples of these threads are superseded, at the same cost.  So the recorder
 * samples the command at a tenth of the rate: enough for threads that the
 * sampler leaves out, whose samples then weigh ten times as much, and to notice
 * that the sampler has stopped.  The full rate is restored then, for good.
 *
 * The kernel changes the rate of an event in one thread, not in those that
 * inherited the event.  So each event of CPU time that has a frequency is
 * disabled, and two sources of it are opened in its place:
 *
 *	sparse	at a tenth of the frequency, until an exec (remove_on_exec)
 *	later	at the full frequency, from an exec on (enable_on_exec)
 *
 * Children inherit both: every program that the command executes is sampled at
 * the full rate from its start.  A process or thread that started before both
 * were open does not have them.  Where a FORK record tells of one, or the
 * kernel is older than 5.13 (remove_on_exec), nothing is replaced.
 *
 * Threads: one, the recorder's.
 */
#pragma once

#include "record/perf/data_file.h"
#include "record/perf/sources.h"

struct seam_sparse {
	struct seam_sources *sources;	/* borrowed; NULL: not used */
	struct seam_data_file *file;	/* borrowed */
	enum {
		SEAM_SPARSE_NOT_YET,
		SEAM_SPARSE_OPEN,
		SEAM_SPARSE_BEGUN,
		SEAM_SPARSE_ENDED,
	} state;
	bool is_late;		/* other tasks have the events already */
	size_t first;		/* its sources are the last in the list */
	uint64_t first_id, last_id;	/* of those with the low frequency */
	unsigned int n_alone;	/* of their samples; see sparse.c */
};

/* A record of the side-band. */
void seam_sparse_see(struct seam_sparse *sparse,
		     const struct seam_perf_sideband *record);

/* A sample of the source with @id; @is_superseded: the sampler has one too. */
void seam_sparse_sample(struct seam_sparse *sparse, uint64_t id,
			bool is_superseded);

/*
 * After a round in which the sampler sampled the command: open the sources.
 * True: read the side-band once more, then call seam_sparse_begin().
 */
bool seam_sparse_open(struct seam_sparse *sparse);

/* Replace the sources of the command, or give up. */
void seam_sparse_begin(struct seam_sparse *sparse);

/* After a round: restore the full rate if the sampler has stopped. */
void seam_sparse_check(struct seam_sparse *sparse);
