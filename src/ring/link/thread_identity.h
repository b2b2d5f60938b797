/* SPDX-License-Identifier: MIT */
/* thread_identity.h - the process of a thread, and what it has mapped */
#ifndef SEAM_THREAD_IDENTITY_H
#define SEAM_THREAD_IDENTITY_H

#include "base/base.h"

#include <sys/types.h>

struct seam_thread_identity {
	uint32_t pid;		/* of its process, in our pid namespace */
	uint64_t start_time;	/* clock ticks since boot */
};

/*
 * Identify thread @tid.  0; -ESRCH when it has certainly ended, a zombie
 * without other threads included; any other error when that is not known.
 * Source: proc(5), /proc/[pid]/stat field 22 and /proc/[pid]/status Tgid.
 */
int seam_thread_identify(uint32_t tid, struct seam_thread_identity *out);

/*
 * Whether thread @tid has mapped the file @device, @inode: 1, 0, or a
 * negative errno when it is not known: -ESRCH where the thread has ended, or
 * has no memory, as a zombie.  Reads all of /proc/TID/maps: that of the
 * process is empty once its first thread has ended.
 */
int seam_thread_has_mapped(uint32_t tid, dev_t device, ino_t inode);

/* A thread that is to be found by its id in its own pid namespace. */
struct seam_thread_claim {
	uint32_t index;		/* the caller's */
	uint32_t own_tid;	/* as gettid(2) returns it */
	int found;		/* 1; 0: there is none; -errno: not known */
	uint32_t tid;		/* in our pid namespace, where found */
	struct seam_thread_identity id;
};

struct seam_thread_claims {
	struct seam_thread_claim *items;
	size_t n;
	dev_t device;		/* of the file that they have mapped */
	ino_t inode;
};

/*
 * Find @claims among the threads of pid namespaces below ours.  The caller
 * has set @found as it is without these: 0 or -errno.  Cost: reads a file
 * of /proc for each process, and for each thread that is in such a namespace.
 * Source: proc(5), /proc/[pid]/status NSpid (Linux 4.1).
 */
void seam_threads_find_below(struct seam_thread_claims *claims);

#endif /* SEAM_THREAD_IDENTITY_H */
