/* SPDX-License-Identifier: MIT */
/*
 * stream_threads.h - map streams of a trace to threads of a profile
 *
 * A thread that the profile has already, from another input, is found by its
 * pid and tid, and by the time where a number was used twice.  Others are
 * added: streams of equal ids are one thread, but a forked child that writes
 * its parent's ids is another one.
 */
#ifndef SEAM_STREAM_THREADS_H
#define SEAM_STREAM_THREADS_H

#include "base/pair_map.h"
#include "model/profile/profile.h"
#include "model/xray/trace.h"

struct seam_stream_threads {
	struct seam_profile *profile;
	uint32_t *known;		/* threads of other inputs, sorted by
					 * tid and start */
	size_t n_known;
	struct seam_pair_map processes;	/* by pid, and by is_fork */
	struct seam_pair_map threads;	/* added: by process and tid */
};

/* 0 or -ENOMEM; to be freed in either case.  @profile outlives @threads. */
int seam_stream_threads_init(struct seam_stream_threads *threads,
			     struct seam_profile *profile);
void seam_stream_threads_fini(struct seam_stream_threads *threads);

/* The thread of @stream, whose first record is at @ns; SEAM_NONE: no memory. */
uint32_t seam_stream_thread(struct seam_stream_threads *threads,
			    const struct seam_trace_stream *stream,
			    uint64_t ns);

#endif /* SEAM_STREAM_THREADS_H */
