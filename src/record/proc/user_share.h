/* SPDX-License-Identifier: MIT */
/*
 * user_share.h - how much of a recording the mappings of one user may take
 *
 * A process can map files tens of thousands of times a second, each with a path
 * of 4 KiB: the records would fill the disk, and the tables of files, of a
 * recorder that another user runs.  Our own user has no limit.
 *
 * The user of a process is read when the process maps a file for the first time
 * after its start or exec; children have the user of their parent until then.
 *
 * Threads: one.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "wire/perf/perf_record.h"

enum {
	SEAM_SHARE_BYTES = 16 << 20,
	SEAM_SHARE_RATE = 1 << 20,	/* a compiler's 7,000 mappings */
	SEAM_SHARE_FILES = 2048,
	SEAM_SHARE_USERS = 64,		/* more of them have one together */
	SEAM_SHARE_PROCESSES = 4096,	/* whose user is remembered */
};

/* Zeroed is valid. */
struct seam_user_shares {
	struct seam_shared_process {
		int32_t pid;		/* 0: none */
		bool is_old;		/* read again */
		uid_t user;
	} processes[SEAM_SHARE_PROCESSES];
	struct seam_user_share {
		uint64_t used_bytes;	/* not given back by time yet */
		uint64_t ns;		/* when that was */
	} users[SEAM_SHARE_USERS];
};

/*
 * Whether @record of @size bytes is in the share of its user; records that are
 * no mappings always are, and say which processes begin.  @now_ns: of any
 * clock.
 */
bool seam_user_shares_take(struct seam_user_shares *shares,
			   const struct seam_perf_sideband *record,
			   size_t size, uint64_t now_ns);

/* The number of the user's share; SEAM_SHARE_USERS: our own, no limit. */
size_t seam_user_share_of(uid_t user);

/* Whether the user may have one more file of a table; counts it then. */
bool seam_user_share_take_file(uint16_t counts[SEAM_SHARE_USERS + 1],
			       uid_t user);
