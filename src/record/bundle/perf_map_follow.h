/* SPDX-License-Identifier: MIT */
/*
 * perf_map_follow.h - the perf maps of recorded runtimes, followed while they grow
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
	SEAM_MAP_FOLLOW_MAX = 256,		/* processes */
	SEAM_MAP_FOLLOW_POLL_MS = 100,
	SEAM_MAP_FOLLOW_END_MS = 5000,		/* for the last look */
};

/* Of all maps of a recording. */
#define SEAM_MAP_FOLLOW_MAX_BYTES (UINT64_C(1) << 30)

struct seam_map_follow;

/* What became of it, when it has ended. */
struct seam_map_follow_result {
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
struct seam_map_follow *seam_map_follow_start(const struct seam_bundle *bundle);

/* Process @pid may have a map.  False: no more are followed. */
bool seam_map_follow_add(struct seam_map_follow *follow, int32_t pid);

/* Whether the map of @pid is copied, as far as it is known by now. */
bool seam_map_follow_has(struct seam_map_follow *follow, int32_t pid);

/* Bytes copied so far. */
uint64_t seam_map_follow_bytes(struct seam_map_follow *follow);

/*
 * Put copies of all maps, as they are now, into @folder.  0 or -errno.
 */
int seam_map_follow_copy(struct seam_map_follow *follow, int folder,
			 struct seam_err *err);

/* Take what there is now, and end.  May be called again. */
void seam_map_follow_finish(struct seam_map_follow *follow,
			    struct seam_map_follow_result *result);

/* NULL is fine. */
void seam_map_follow_free(struct seam_map_follow *follow);

#endif /* SEAM_PERF_MAP_FOLLOW_H */
