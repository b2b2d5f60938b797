/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - a process without rights, for what reads files of strangers
 *
 * libelf, libdw, capstone, libyaml and the demangler parse what the author of
 * a program wrote, and have had their share of defects.  So they run in a child that can do
 * nothing with what it may be made to do: it has no descriptor but a socket
 * to its parent, cannot open, connect, execute, fork or signal
 * (seccomp, no_new_privs), has no more memory than --max-memory allows once
 * again and a minute of CPU time a question, and is user 65534 where its
 * parent is root.  What it needs read, the parent opens for it
 * (file_broker.h).  If it dies, the file that it read has no names, and the
 * parent says so.
 *
 * A container may refuse seccomp or another right; what is left of the list
 * is in force then, and seam_sandbox_missing() says what is not.  Where no
 * process can be started, nothing is read: names are not worth the risk.
 */
#ifndef SEAM_SANDBOX_H
#define SEAM_SANDBOX_H

#include <sys/types.h>

#include "symbol/sandbox/ipc.h"

struct seam_sandbox {
	pid_t pid;			/* 0: none runs */
	struct seam_ipc ipc;
	unsigned int refused;		/* of enum seam_sandbox_part */
	uint64_t begin_s;		/* its CPU time as an answer began */
	bool is_slow;			/* and was not waited for */
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

/* CPU seconds that the child may take for one answer: 60. */
extern unsigned int seam_sandbox_cpu_s;

/*
 * End the child and wait for it.  In @why, if that is not NULL, how it ended
 * when it had ended by itself: "was killed by signal 11 (Segmentation
 * fault)".
 */
void seam_sandbox_end(struct seam_sandbox *sandbox, char *why, size_t room);

/* What protection is not in force, as a list of words; NULL: all is. */
const char *seam_sandbox_missing(const struct seam_sandbox *sandbox);

/* In the child: give the rights up.  What was refused. */
unsigned int seam_sandbox_drop_privileges(uint64_t memory_bytes);

#endif /* SEAM_SANDBOX_H */
