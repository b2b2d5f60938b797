/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - a process without privileges, which parses untrusted files
 *
 * libelf, libdw, capstone, libyaml and the demangler parse untrusted input and
 * have a history of defects.  They run in a child process that can do little
 * harm: it has no descriptor but a socket to its parent; it cannot open,
 * connect, execute, fork or signal (seccomp, no_new_privs); it may use as much
 * memory as --max-memory allows the parent, and a minute of CPU time a
 * request; it is user 65534 where its parent is root.  The parent opens the
 * files that it requests (file_broker.h).  If it dies, the file that it read
 * has no names, and the parent reports that.
 *
 * A container may refuse one of these protections.  The others are in force
 * then, and seam_sandbox_missing() lists the refused ones.  Where no process
 * can be started, nothing is read.
 */
#ifndef SEAM_SANDBOX_H
#define SEAM_SANDBOX_H

#include <sys/types.h>

#include "symbol/sandbox/ipc.h"

struct seam_sandbox {
	pid_t pid;			/* 0: none runs */
	struct seam_ipc ipc;
	unsigned int refused;		/* of enum seam_sandbox_part */
	uint64_t begin_s;		/* its CPU time after a second of it */
	bool is_slow;			/* it exceeded its time */
};

enum seam_sandbox_part {
	SEAM_SANDBOX_SECCOMP = 1,
	SEAM_SANDBOX_USER = 2,
	SEAM_SANDBOX_LIMITS = 4,
};

/* In the child.  Returns when its parent has closed the ipc. */
typedef void seam_sandbox_work(struct seam_ipc *ipc, void *context);

/*
 * Start a child that gives up its rights and calls @work with @context, as
 * they are in memory now.  Not to be called while other threads run.  0, or
 * -errno with the reason.  Cost: a fork, 1 ms.
 */
int seam_sandbox_start(struct seam_sandbox *sandbox, seam_sandbox_work *work,
		       void *context, struct seam_err *err);

/* CPU seconds that the child may take for one reply: 60. */
extern unsigned int seam_sandbox_cpu_s;

/*
 * End the child and wait for it.  In @why, if that is not NULL, how it ended
 * when it had ended by itself: "was killed by signal 11 (Segmentation
 * fault)".
 */
void seam_sandbox_end(struct seam_sandbox *sandbox, char *why, size_t room);

/* Which protections are not in force, as a list; NULL: all are. */
const char *seam_sandbox_missing(const struct seam_sandbox *sandbox);

#endif /* SEAM_SANDBOX_H */
