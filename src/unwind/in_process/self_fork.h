/* SPDX-License-Identifier: MIT */
/*
 * self_fork.h - no fork while this library has the dynamic loader's lock
 *
 * dl_iterate_phdr() takes a lock of the loader, which fork() copies as it is:
 * a child of another thread could never load a library.  So the owner is in
 * the loader for microseconds only, and a handler of pthread_atfork() waits for
 * that, about a second at most: then the owner is stopped, and the child has to
 * take its chance.  A fork of the owner's thread itself does not wait.
 */
#ifndef SEAM_SELF_FORK_H
#define SEAM_SELF_FORK_H

/* Once, before the others.  0, or a negative errno. */
int seam_self_fork_init(void);

/* Around the owner's calls of dl_iterate_phdr(); waits while another forks. */
void seam_self_loader_enter(void);
void seam_self_loader_leave(void);

#endif /* SEAM_SELF_FORK_H */
