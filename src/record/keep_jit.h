/* SPDX-License-Identifier: MIT */
/*
 * keep_jit.h - the dumps and maps of recorded JITs, copied into the bundle
 *
 * A runtime that maps jit-PID.dump tells of its dump; one that runs code in
 * memory without a file may have written perf-PID.map.  Both are looked for
 * through the process's own root folder, which is held from when the process
 * is first seen, and judged as symbol/jit_find.h says.  Maps are followed
 * while they are written (map_follow.h).  Dumps are copied when the recording
 * ends, because runtimes write to the end: jit/jit-PID.dump, with the PID that
 * the recording has; jit/jit-PID-PID.dump where the process streamed another
 * into jit/jit-PID.dump.
 *
 * Nothing here fails a recording.
 */
#ifndef SEAM_KEEP_JIT_H
#define SEAM_KEEP_JIT_H

#include "base/array.h"
#include "record/bundle.h"
#include "record/map_follow.h"
#include "symbol/jit_find.h"

struct seam_keep_runtime {
	struct seam_jit_owner owner;	/* of owner.pid; its root is held */
	char *marker;			/* path of the dump; NULL: none seen */
};

/* Zeroed is valid and empty. */
struct seam_keep_jit {
	SEAM_ARRAY(struct seam_keep_runtime) runtimes;
	/* The caller's; NULL: maps are not followed, but copied at the end. */
	const struct seam_bundle *bundle;
	struct seam_map_follow *maps;	/* begun with the first runtime */
	struct seam_map_follow_result map_result;
	bool is_snapshot;		/* maps go on after _finish() */
	uint64_t n_copied;
	uint64_t n_refused;		/* there, but not to be believed */
	uint64_t n_failed;		/* could not be written */
	uint64_t n_too_many;		/* runtimes beyond the most */
	struct seam_err why;		/* the first of these */
};

/* Process @pid mapped @path with PROT_EXEC. */
void seam_keep_jit_see(struct seam_keep_jit *jit, int32_t pid,
		       const char *path);

/* Copy what there is. */
void seam_keep_jit_finish(struct seam_keep_jit *jit,
			  const struct seam_bundle *bundle);

void seam_keep_jit_fini(struct seam_keep_jit *jit);

#endif /* SEAM_KEEP_JIT_H */
