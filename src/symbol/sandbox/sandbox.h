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
 * files that it requests (elf_file.h).  If it dies, the file that it read
 * has no names, and the parent reports that.
 *
 * A container may refuse one of these protections.  The others are in force
 * then, and seam_sandbox_missing() lists the refused ones.  Where no process
 * can be started, nothing is read.
 */
#pragma once

#include <sys/types.h>

#include "base/array.h"
#include "base/cursor.h"
#include "base/err.h"

/* ---- messages ---- */

/*
 * A message is a kind, a run of bytes and perhaps a descriptor.  Both ends are
 * the same program on the same machine, so numbers are sent in memory order.
 * The other end may have been taken over by a file that it parsed, so messages
 * are read with a cursor, and their size has a limit.
 *
 * Threads: one at a time for one end.  Zeroed, with a stream socket in fd, it
 * is ready.
 */
struct seam_ipc {
	int fd;
	SEAM_ARRAY(uint8_t) out;	/* the message being made */
	SEAM_ARRAY(uint8_t) in;		/* the message received last */
	bool is_broken;			/* memory ran out while it was made */
	/*
	 * The process at the other end, whose time for a message is limited;
	 * SO_RCVTIMEO is a second.  0: wait without a limit.
	 */
	pid_t peer;
	unsigned int n_seconds;		/* that this message took */
	uint64_t second_ns;		/* when the last of them ended */
	uint64_t begin_s;		/* the peer's CPU time after a second */
	bool is_slow;			/* it exceeded its time */
};

struct seam_message {
	uint32_t kind;
	int fd;				/* the caller's to close; -1: none */
	struct seam_cursor body;	/* valid until the next is received */
};

/* Append to the message that is being made. */
void seam_ipc_put(struct seam_ipc *ipc, const void *data, size_t size);
void seam_ipc_put_u32(struct seam_ipc *ipc, uint32_t v);
void seam_ipc_put_u64(struct seam_ipc *ipc, uint64_t v);
/* With its NUL; NULL is sent as "". */
void seam_ipc_put_text(struct seam_ipc *ipc, const char *text);

/*
 * Send what was put, with a copy of descriptor @fd unless it is -1.  0;
 * -EPIPE when the other end has closed; -ENOMEM when a put had failed.
 */
int seam_ipc_send(struct seam_ipc *ipc, uint32_t kind, int fd);

/* Wait for the next message.  0; -EPIPE; -ETIMEDOUT; -EBADMSG; -ENOMEM. */
int seam_ipc_receive(struct seam_ipc *ipc, struct seam_message *message);

/* An error as the rest of a message, and back: the code, or 0. */
void seam_ipc_put_err(struct seam_ipc *ipc, const struct seam_err *err);
int seam_ipc_take_err(struct seam_cursor *body, struct seam_err *err);

/* ---- the process ---- */

struct seam_sandbox {
	pid_t pid;			/* 0: none runs */
	struct seam_ipc ipc;
	unsigned int refused;		/* of enum seam_sandbox_part */
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
