/* SPDX-License-Identifier: MIT */
/*
 * jit_find.h - find a process's dumps and maps, and check that they are trusted
 *
 * Runtimes leave jit-PID.dump and perf-PID.map under predictable names, mostly
 * in /tmp, where any user can write.  They decide which names a report shows
 * and what a privileged recorder reads.  So a file that was found by name must
 *
 *   - be a regular file, opened once, without following a link at its name
 *     and without blocking on a writer, and checked after it was opened;
 *   - belong to the user of the process, or to root;
 *   - not be writable for others (for the group: only if it is the group that
 *     has the user's own number);
 *   - not be older than the process: pids are used again, files stay;
 *   - not be larger than a cap.
 *
 * Every refusal has a text with the file and the reason.
 *
 * Files in or next to the recording are as trusted as it is, and those that the
 * user named are trusted: only kind and size are checked, and the owner of the
 * former.
 *
 * Threads: any.  Nothing here blocks on the target.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"
#include "base/file.h"

#include <sys/types.h>

/* A dump of a gigabyte is code of some 10^7 functions. */
#define SEAM_JIT_MAX_BYTES (UINT64_C(1) << 30)

enum seam_jit_kind {
	SEAM_JIT_DUMP,
	SEAM_JIT_MAP,
};

/*
 * Whether a file that a process mapped is the marker of a dump: its base name
 * is jit-PID.dump, or jit-TID-PID.dump (Bun).  PID, as the process sees itself,
 * goes to *@inner_pid.
 */
bool seam_jit_marker(const char *path, int32_t *inner_pid);

/* The process that a file must belong to. */
struct seam_jit_owner {
	int32_t pid;		/* as the recording numbers it */
	int32_t inner_pid;	/* as the process sees itself; 0: not known */
	uid_t uid;		/* (uid_t)-1: not known, then ours */
	uint64_t start_ns;	/* UTC; 0: not known, then no file is too old */
};

/*
 * Check @fd, a file that process @owner named @path, as opened for it.  It must
 * be its user's own, not even root's, and a dump must begin as one, with the
 * owner's inner pid.  Takes @fd, and gives it back if it can be trusted; else
 * -errno: -EINVAL (no regular file), -EPERM (owner or mode), -ESTALE (too old,
 * or of another process), -EFBIG.
 */
int seam_jit_check(const struct seam_jit_owner *owner, enum seam_jit_kind kind,
		   const char *path, int fd, uint64_t max_bytes,
		   struct seam_err *err);

/* Where to search, in this order; NULL and 0: not there. */
struct seam_jit_places {
	const char *const *paths;	/* --jit: files, or folders of files */
	size_t n_paths;
	const char *bundle;		/* a folder: in its jit/ */
	const char *recording;		/* a file: in its folder */
	bool no_recorded_path;		/* not where the runtime wrote it */
	/* In the bundle alone: the file of one that streamed a dump too. */
	bool is_second;
	uint64_t max_bytes;		/* 0: SEAM_JIT_MAX_BYTES */
};

/*
 * Find the dump or map of @owner.  @path is where the runtime had it: the
 * marker's path for a dump, NULL for a map, which is /tmp/perf-PID.map.
 *
 * Returns 0, @file open (files where their runtime may still write are read
 * into memory, others are mapped) and its path in @found; or -ENOENT when
 * there is none, or what the last refusal returned.  All refusals are in @err.
 */
int seam_jit_find(const struct seam_jit_places *places,
		  const struct seam_jit_owner *owner, enum seam_jit_kind kind,
		  const char *path, struct seam_file *file, char *found,
		  size_t found_cap, struct seam_err *err);

/*
 * The index of when the lines of the map at @path were written, which a
 * recorder writes next to it (wire/jit/perf_map.h).  @times is empty
 * where there is none, or where it is not of the owner of the map.
 */
void seam_jit_find_times(const char *path, struct seam_file *times);
