/* SPDX-License-Identifier: MIT */
/*
 * perf_map_watch.h - a process that copies perf maps while they are written
 *
 * A perf map has the functions at addresses, but no times; a runtime that frees
 * code uses the address again.  So maps are copied into the recording as they
 * grow, to jit/perf-PID.map with the PID of the recording, and an index beside
 * each has the times of its lines (perf_map_copy.h).
 *
 * A file system of another user may block whatever reads it, so all of it is
 * done apart (record/proc/apart.h), and the recording does not wait for a
 * process that is blocked.  inotify wakes the process; without inotify, or
 * while there is no map yet, it polls, at least every
 * SEAM_PERF_MAP_WATCH_POLL_MS.
 *
 * Nothing here fails a recording.
 *
 * Threads: all calls from one, the recorder's.
 */
#ifndef SEAM_PERF_MAP_WATCH_H
#define SEAM_PERF_MAP_WATCH_H

#include "record/bundle/bundle.h"
#include "record/bundle/kept_counts.h"

enum {
	SEAM_PERF_MAP_WATCH_MAX = 512,		/* processes */
	SEAM_PERF_MAP_WATCH_POLL_MS = 100,
	SEAM_PERF_MAP_WATCH_STOP_MS = 5000,	/* for the last reads */
};

/* Of all maps of a recording. */
#define SEAM_PERF_MAP_WATCH_MAX_BYTES (UINT64_C(1) << 30)

struct seam_perf_map_watch;

/* Start to copy maps into @bundle.  NULL: it could not be started. */
struct seam_perf_map_watch *seam_perf_map_watch_start(
	const struct seam_bundle *bundle);

/* Process @pid may write a map.  False: too many processes. */
bool seam_perf_map_watch_add(struct seam_perf_map_watch *watch, int32_t pid);

/* Bytes copied so far; of NULL 0. */
uint64_t seam_perf_map_watch_bytes(struct seam_perf_map_watch *watch);

/* Put copies of all maps, as they are now, into @folder.  0 or -errno. */
int seam_perf_map_watch_copy(struct seam_perf_map_watch *watch, int folder,
			     struct seam_err *err);

/*
 * Copy what there is now, end the process, and add the result to @counts.  May
 * be called again.
 */
void seam_perf_map_watch_stop(struct seam_perf_map_watch *watch,
			      struct seam_kept_counts *counts);

/* NULL is ok. */
void seam_perf_map_watch_free(struct seam_perf_map_watch *watch);

#endif /* SEAM_PERF_MAP_WATCH_H */
