/* SPDX-License-Identifier: MIT */
/*
 * kept_jit.h - the dumps and maps of recorded JITs, copied into the bundle
 *
 * A runtime that maps jit-PID.dump tells of its dump; one that runs code in
 * memory without a file may have written perf-PID.map.  Both are looked for
 * through the process's own root folder, which is held from when the process
 * is first seen, with its user's rights (target_file.h), and checked as
 * symbol/jit/jit_find.h says.  Maps are followed while they are written
 * (perf_map_watch.h).  Dumps are copied when the recording ends, because runtimes
 * write to the end: jit/jit-PID.dump, with the PID that the recording has;
 * jit/jit-PID-PID.dump where the process streamed another into
 * jit/jit-PID.dump.
 *
 * Nothing here fails a recording.
 */
#ifndef SEAM_KEPT_JIT_H
#define SEAM_KEPT_JIT_H

#include "base/array.h"
#include "record/bundle/bundle.h"
#include "record/bundle/perf_map_watch.h"
#include "record/proc/helper.h"
#include "record/proc/target_file.h"

enum {
	/* Each holds two descriptors; of more JITs the first are kept. */
	SEAM_KEPT_JIT_MAX_RUNTIMES = 512,
};

/* Of a process's dump and map each, and of all that is copied to jit/. */
#define SEAM_KEPT_JIT_MAX_FILE_BYTES (UINT64_C(512) << 20)
#define SEAM_KEPT_JIT_MAX_BYTES (UINT64_C(2) << 30)

struct seam_kept_jit_runtime {
	int32_t pid;
	int32_t marker_pid;	/* its number by the dump's name; 0: none */
	struct seam_target target;	/* is held once the helper has it */
	bool is_stuck;
	char *marker;		/* path of the dump; NULL: none seen */
};

/* What became of the dumps and maps of one bundle. */
struct seam_kept_jit_counts {
	uint64_t n_copied;
	uint64_t n_bytes;
	uint64_t n_refused;	/* there, but not to be trusted */
	uint64_t n_leased;	/* under another process's write lease */
	uint64_t n_too_large;
	uint64_t n_stuck;	/* could not be read in time */
	uint64_t n_failed;	/* could not be written */
	uint64_t n_interrupted;
	uint64_t n_too_many;	/* runtimes beyond the most */
	struct seam_err why;	/* the first that was refused or failed */
};

/* Zeroed is valid and empty. */
struct seam_kept_jit {
	SEAM_ARRAY(struct seam_kept_jit_runtime) runtimes;
	uint64_t n_too_many;
	/* The caller's; NULL: maps are not followed, but copied at the end. */
	const struct seam_bundle *bundle;
	struct seam_perf_map_watch *maps;	/* begun with the first runtime */
	struct seam_perf_map_watch_result map_result;
	int folder;		/* of the bundle that is being written; or -1 */
};

/* Whether a process that maps @path with PROT_EXEC may be a JIT. */
bool seam_kept_jit_is_runtime(const char *path);

/* Process @pid did so: have @helper hold it. */
void seam_kept_jit_add(struct seam_kept_jit *jit, struct seam_helper *helper,
		       int32_t pid, const char *path);

/*
 * Copy what there is of runtime @i, at most @budget bytes, between a begin and
 * an end, which takes the maps.  Of a snapshot, these go on to be followed.
 * 0: the helper does it; else it is counted already.
 */
void seam_kept_jit_begin(struct seam_kept_jit *jit,
			 const struct seam_bundle *bundle,
			 struct seam_kept_jit_counts *counts);
int seam_kept_jit_copy(struct seam_kept_jit *jit, struct seam_helper *helper,
		       size_t i, uint64_t budget,
		       struct seam_kept_jit_counts *counts);
void seam_kept_jit_end(struct seam_kept_jit *jit,
		       const struct seam_bundle *bundle, bool is_snapshot,
		       struct seam_kept_jit_counts *counts);

/* Of the maps that were followed so far. */
uint64_t seam_kept_jit_map_bytes(const struct seam_kept_jit *jit);

void seam_kept_jit_fini(struct seam_kept_jit *jit);

#endif /* SEAM_KEPT_JIT_H */
