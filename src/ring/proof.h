/* SPDX-License-Identifier: MIT */
/* proof.h - who a thread is, and what its process has mapped, by /proc */
#ifndef SEAM_RING_PROOF_H
#define SEAM_RING_PROOF_H

#include "base/base.h"

#include <sys/types.h>

struct seam_thread_identity {
	uint32_t pid;		/* of its process, in our pid namespace */
	uint64_t start_time;	/* clock ticks since boot */
};

/*
 * Identify thread @tid.  0, or -ENOENT when there is none.
 * Source: proc(5), /proc/[pid]/stat field 22 and /proc/[pid]/status Tgid.
 */
int seam_thread_identify(uint32_t tid, struct seam_thread_identity *out);

/*
 * Whether thread @tid has mapped the file @device, @inode: 1, 0, or a
 * negative errno when it cannot be known.  Reads all of /proc/TID/maps, which
 * is empty once that thread has ended and waits to be reaped: -ENOENT then.
 */
int seam_thread_has_mapped(uint32_t tid, dev_t device, ino_t inode);

#endif /* SEAM_RING_PROOF_H */
