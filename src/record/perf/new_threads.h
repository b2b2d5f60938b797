/* SPDX-License-Identifier: MIT */
/*
 * new_threads.h - threads that start during a per-thread recording
 *
 * The kernel does not inherit events with a ring for each thread.  The
 * side-band, which it does inherit, has a FORK record of each new thread, whose
 * events are opened then.  The time for which it had run is measured.
 * A thread that ended before its events were opened is counted, and so is one
 * whose events could not be opened.
 */
#pragma once

#include "base/array.h"
#include "record/perf/data_file.h"

/* A FORK or EXIT record. */
struct seam_thread_change {
	int tid;
	bool is_exit;
	uint64_t time_ns;
};

/* The caller sets the first two members.  Counts go into file->losses. */
struct seam_new_threads {
	struct seam_sources *sources;	/* borrowed */
	struct seam_data_file *file;	/* borrowed */

	SEAM_ARRAY(struct seam_thread_change) changes;	/* of this round */
};

/* Take a record of the side-band. */
void seam_new_threads_read(struct seam_new_threads *threads,
			   const struct seam_perf_sideband *record);

/*
 * After the round that has drained the rings of ended threads: open the events
 * of threads that started, and close those of threads that ended.  0, or
 * -errno of a write to the file.
 */
int seam_new_threads_update(struct seam_new_threads *threads,
			    struct seam_err *err);

void seam_new_threads_fini(struct seam_new_threads *threads);
