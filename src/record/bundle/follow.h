/* SPDX-License-Identifier: MIT */
/*
 * follow.h - the dumps and maps of JITs, copied while they are written
 *
 * From the first mapping of a jit-PID.dump, or of anonymous code, on, the dump
 * and /tmp/perf-PID.map are looked for inside the root of the process, checked
 * (symbol/jit/jit_find.h), and appended to copies in the recording
 * (growing_copy.h): jit/perf-PID.map and jit/jit-PID.dump, with the PID of the
 * recording.  A process that streams another dump has that name for it; then,
 * and until the end, the file is jit/jit-PID-PID.dump.
 *
 * From the copy of a dump, the recorder takes code for the stacks that it
 * unwinds, some SEAM_FOLLOW_DUMP_NS after it was written.
 *
 * The follower is one long job of a helper (record/proc/helper.h), woken by
 * inotify, or else each SEAM_FOLLOW_POLL_MS.  A file that does not answer for
 * SEAM_FOLLOW_STUCK_MS is given up, and another helper follows the others.
 *
 * Nothing here fails a recording.  Limits: doc/design/files.md.
 *
 * Threads: one, the recorder's.
 */
#pragma once

#include "record/bundle/bundle.h"
#include "wire/perf/perf_record.h"

enum {
	SEAM_FOLLOW_MAX = 1024,		/* files */
	SEAM_FOLLOW_POLL_MS = 100,
	SEAM_FOLLOW_STUCK_MS = 5000,
	SEAM_FOLLOW_READ = 256 << 10,	/* bytes of a dump at once */
};

/* Of all copies. */
#define SEAM_FOLLOW_MAX_BYTES (UINT64_C(2) << 30)

/* Between two reads of a dump. */
#define SEAM_FOLLOW_DUMP_NS UINT64_C(20000000)

struct seam_kept_counts;
struct seam_kept_destination;

/* Zeroed but for the caller's fields, it is valid and empty. */
struct seam_follow {
	/* The caller's, before the first record. */
	const struct seam_bundle *bundle;
	uint64_t max_bytes;	/* of all copies; 0: SEAM_FOLLOW_MAX_BYTES */
	/* Take whole records of the dump of @pid; NULL: nobody wants them. */
	void (*on_code)(void *context, uint32_t pid, struct seam_bytes group);
	void *context;

	struct seam_follower *follower;	/* from the first file on */
	bool has_failed;	/* to start one */
	uint64_t n_too_many;	/* processes whose files are not followed */
	int32_t left_out_pid;	/* the last of these */
};

/* Process a record of the side-band.  Never blocks. */
void seam_follow_sideband(struct seam_follow *follow,
			  const struct seam_perf_sideband *record);

/* Hand on what is new in one of the dumps.  Once a round; never blocks. */
void seam_follow_step(struct seam_follow *follow);

/* Bytes copied so far. */
uint64_t seam_follow_bytes(const struct seam_follow *follow);

/*
 * Put all files into the bundle @to, and set @counts.  Into a snapshot's the
 * copies of the recording so far; else what was written until now is appended
 * to these, and the follower ends.
 */
void seam_follow_copy(struct seam_follow *follow,
		      const struct seam_kept_destination *to,
		      struct seam_kept_counts *counts);

void seam_follow_fini(struct seam_follow *follow);
