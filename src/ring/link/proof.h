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
 * Identify thread @tid.  0; -ESRCH when it is certain that there is none any
 * more, a zombie without other threads included; any other error says that
 * it cannot be known now.
 * Source: proc(5), /proc/[pid]/stat field 22 and /proc/[pid]/status Tgid.
 */
int seam_thread_identify(uint32_t tid, struct seam_thread_identity *out);

/*
 * Whether thread @tid has mapped the file @device, @inode: 1, 0, or a
 * negative errno when it cannot be known: -ESRCH where the thread has ended,
 * or has no memory, as a zombie.  Reads all of /proc/TID/maps: the process's
 * own would be empty once its first thread has ended.
 */
int seam_thread_has_mapped(uint32_t tid, dev_t device, ino_t inode);

/* A thread that is to be found by the name it has for itself. */
struct seam_thread_claim {
	uint32_t own_tid; /* as gettid(2) tells it */
	int found;        /* 1; 0: nobody is; -errno: not to be known */
	uint32_t tid;     /* in our pid namespace, where found */
	struct seam_thread_identity id;
};

struct seam_thread_claims {
	struct seam_thread_claim *items;
	size_t n;
	dev_t device; /* the file that they have mapped */
	ino_t inode;
};

/*
 * Find @claims among the threads of pid namespaces below ours.  The caller
 * has set what is found as it stands without these: 0 or -errno.  Cost: a file
 * of /proc for each process, and for each thread that is in such a namespace.
 * Source: proc(5), /proc/[pid]/status NSpid (Linux 4.1).
 */
void seam_threads_find_below(struct seam_thread_claims *claims);

#endif /* SEAM_RING_PROOF_H */
