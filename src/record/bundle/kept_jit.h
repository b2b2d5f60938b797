/* SPDX-License-Identifier: MIT */
/*
 * kept_jit.h - copies of the dumps and maps that recorded JITs write
 *
 * A runtime that writes jit-PID.dump maps it, and the side-band has that
 * mapping.  A runtime that runs code in anonymous memory may write
 * perf-PID.map.  Both files are opened inside the root folder of the process,
 * which is held from its first such mapping on, with the rights of its user
 * (target_file.h), and validated as symbol/jit/jit_find.h says.
 *
 * A process copies maps while they are written (perf_map_watch.h).  Dumps are
 * copied when the recording ends, because runtimes write to the end: to
 * jit/jit-PID.dump, with the PID of the recording, or jit/jit-PID-PID.dump if
 * the process has streamed another dump, which has that name.
 *
 * Nothing here fails a recording.
 */
#ifndef SEAM_KEPT_JIT_H
#define SEAM_KEPT_JIT_H

#include "base/array.h"
#include "record/bundle/bundle.h"
#include "record/bundle/kept_counts.h"
#include "record/bundle/perf_map_watch.h"
#include "record/proc/helper.h"
#include "record/proc/target_file.h"

enum {
	/* each holds two descriptors */
	SEAM_KEPT_JIT_MAX_RUNTIMES = SEAM_PERF_MAP_WATCH_MAX,
};

/* Of one dump, and of all of jit/. */
#define SEAM_KEPT_JIT_MAX_FILE_BYTES (UINT64_C(512) << 20)
#define SEAM_KEPT_JIT_MAX_BYTES (UINT64_C(2) << 30)

struct seam_kept_jit_runtime {
	int32_t pid;
	uid_t user;		/* of the process */
	int32_t marker_pid;	/* PID in the name of its dump; 0: no dump */
	struct seam_target target;	/* opened by the helper */
	int code;		/* -errno: it could not be opened */
	char *marker;		/* path of the mapped dump; NULL: no dump */
};

/* Zeroed is valid and empty. */
struct seam_kept_jit {
	SEAM_ARRAY(struct seam_kept_jit_runtime) runtimes;
	uint64_t n_too_many;	/* processes beyond the maximum */
	int32_t left_out_pid;	/* the last of these */
	const struct seam_bundle *bundle;	/* the caller's */
	struct seam_perf_map_watch *maps;	/* from the first runtime on */
	int folder;		/* jit/ of the bundle to copy to; or -1 */
};

/* Whether a process that maps @path executable may have a JIT. */
bool seam_kept_jit_is_runtime(const char *path);

/* Process @pid has mapped such a @path: open the process, in @helper. */
void seam_kept_jit_add(struct seam_kept_jit *jit, struct seam_helper *helper,
		       int32_t pid, const char *path);

/*
 * Copy to a bundle: begin(), copy() for each runtime, end().  begin() sets
 * @counts.  copy() queues a job for the dump of runtime @i, of at most @budget
 * bytes; or counts the error, and returns -errno; -ENOENT: it has no dump.
 * end() ends the watch; for a snapshot it copies the maps so far.
 */
void seam_kept_jit_begin(struct seam_kept_jit *jit,
			 const struct seam_bundle *bundle,
			 struct seam_kept_counts *counts);
int seam_kept_jit_copy(struct seam_kept_jit *jit, struct seam_helper *helper,
		       size_t i, uint64_t budget,
		       struct seam_kept_counts *counts);
void seam_kept_jit_end(struct seam_kept_jit *jit,
		       const struct seam_bundle *bundle, bool is_snapshot,
		       struct seam_kept_counts *counts);

void seam_kept_jit_fini(struct seam_kept_jit *jit);

#endif /* SEAM_KEPT_JIT_H */
