/* SPDX-License-Identifier: MIT */
/*
 * perf_map_watch.h - the perf maps of recorded runtimes, followed while they grow
 *
 * A perf map says what was at an address, and not when; a runtime that frees
 * code uses the address again.  So maps are copied into the recording while
 * they are written, jit/perf-PID.map with the PID that the recording has, and
 * an index beside each has the time of its lines (perf_map_copy.h).
 *
 * The files belong to others, and a file system of theirs may hold up whoever
 * touches it: a thread of its own does all of that, and one that does not come
 * back is left behind.  inotify wakes it; where that cannot be had, or the map
 * is not there yet, it looks every POLL_MS.
 *
 * Nothing here fails a recording.
 *
 * Threads: the recorder's one calls; the thread is this module's own.
 */
#ifndef SEAM_PERF_MAP_FOLLOW_H
#define SEAM_PERF_MAP_FOLLOW_H

#include "base/err.h"
#include "record/bundle/bundle.h"

enum {
	SEAM_PERF_MAP_WATCH_MAX = 256,		/* processes */
	SEAM_PERF_MAP_WATCH_POLL_MS = 100,
	SEAM_PERF_MAP_WATCH_END_MS = 5000,		/* for the last look */
};

/* Of all maps of a recording. */
#define SEAM_PERF_MAP_WATCH_MAX_BYTES (UINT64_C(1) << 30)

struct seam_perf_map_watch;

/* What became of it, when it has ended. */
struct seam_perf_map_watch_result {
	uint64_t n_copied;	/* maps */
	uint64_t n_bytes;	/* of them */
	uint64_t n_refused;	/* there, but not to be trusted */
	uint64_t n_failed;	/* could not be written */
	uint64_t n_cut;		/* had more bytes than are taken */
	bool is_stuck;		/* a file of theirs did not answer */
	struct seam_err why;	/* the first of these */
};

/*
 * Begin to follow maps into @bundle.  NULL where no thread can be had: then
 * they must be copied at the end.
 */
struct seam_perf_map_watch *seam_perf_map_watch_start(const struct seam_bundle *bundle);

/* Process @pid may have a map.  False: no more are followed. */
bool seam_perf_map_watch_add(struct seam_perf_map_watch *follow, int32_t pid);

/* Bytes copied so far. */
uint64_t seam_perf_map_watch_bytes(struct seam_perf_map_watch *follow);

/*
 * Put copies of all maps, as they are now, into @folder.  0 or -errno.
 */
int seam_perf_map_watch_copy(struct seam_perf_map_watch *follow, int folder,
			 struct seam_err *err);

/* Take what there is now, and end.  May be called again. */
void seam_perf_map_watch_stop(struct seam_perf_map_watch *follow,
			    struct seam_perf_map_watch_result *result);

/* NULL is fine. */
void seam_perf_map_watch_free(struct seam_perf_map_watch *follow);

#endif /* SEAM_PERF_MAP_FOLLOW_H */
