/* SPDX-License-Identifier: MIT */
/*
 * apart.h - a thread that this process can leave behind when it exits
 *
 * open(), read() and close() of a file whose server does not answer (FUSE, NFS)
 * may hang in the kernel where no signal ends them, and a process cannot be
 * reaped before each of its threads has returned.  A function that runs apart
 * runs in a process of its own, which shares memory and descriptors with this
 * one as a thread does (clone(2): CLONE_VM, CLONE_FILES).  When the function
 * hangs, this process exits without it.
 *
 * A thread of this process lends its thread-local storage and a part of its
 * stack, so locks, malloc() and errno work, and waits for the end.
 *
 * A descriptor of such a file is closed apart too.  A process that runs apart
 * and may still hold some goes on until seam_apart_owner_fd() is readable: then
 * the exit of this process has closed none.  In the same way it finds out that
 * this process was killed; a lock that this process held is never released.
 *
 * Threads: any.
 */
#ifndef SEAM_APART_H
#define SEAM_APART_H

#include <pthread.h>

#include "base/base.h"

/*
 * Start @run(@context) with all signals blocked and not real-time.  @thread
 * ends when it has returned, and is to be joined or detached.  0 or -errno.
 */
int seam_apart_start(pthread_t *thread, void (*run)(void *context),
		     void *context);

/*
 * A descriptor for poll(), readable when the process that started it has ended.
 * Valid in @run; it stays open.
 */
int seam_apart_owner_fd(void);

/*
 * This process leaves one behind, which holds its descriptors: at the exit,
 * close standard input, output and error, whose readers wait for their end.
 */
void seam_apart_leave(void);

#endif /* SEAM_APART_H */
