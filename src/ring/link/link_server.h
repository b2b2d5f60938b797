/* SPDX-License-Identifier: MIT */
/*
 * link_server.h - the recorder's end of the link
 *
 *	seam_link_server_open(&s, &shape, err);
 *	setenv("SEAM_LINK", s.address, 1);	for the program to find
 *	poll s.epoll_fd and s.bell_fd with everything else; when ready, and
 *	now and then:
 *		seam_link_server_step(&s);
 *		for each s.targets[i]: its tenants, see owners.h
 *
 * A target is one connection that has said hello, and the memory that was
 * made for it.  It outlives the connection: forked children go on in the
 * memory, and what a killed program left is still to be read.  The caller
 * ends it with seam_link_server_forget().
 *
 * Rings have all their memory before anybody claims them.  From a quarter of
 * @most_bytes on one is kept ready for each target, and when all is taken
 * none: children go without, and whoever comes is refused.
 *
 * Threads: one.  No call blocks.
 */
#ifndef SEAM_RING_LINK_SERVER_H
#define SEAM_RING_LINK_SERVER_H

#include "ring/link/link.h"
#include "ring/link/owners.h"

enum {
	SEAM_LINK_MOST_TARGETS = 1024,
	SEAM_LINK_HELLO_MS = 1000,	/* to say hello in */
	SEAM_LINK_FREE_SLOTS = 4,	/* kept ready, unless told otherwise */
};

struct seam_link_target {
	int socket;			/* -1: the connection has ended */
	pid_t pid;			/* by the kernel's word */
	uid_t uid;
	bool has_met;			/* said hello and got its memory */
	bool said_bye;
	uint64_t since_ns;		/* connected; the one clock */
	uint64_t met_ns;		/* got its memory: nobody had it before */
	uint64_t over_ns;		/* the caller's; 0 at first */
	char name[SEAM_LINK_NAME_BYTES];	/* its own word; escape it */
	struct seam_link_bye bye;	/* where said_bye */
	int memory_fd;
	int bell_fd;			/* our end of its bell */
	struct seam_ring_memory memory;
	struct seam_owners tenants;
	uint32_t n_looks;		/* the caller's; 0 at first */
};

struct seam_link_server {
	int socket, epoll_fd;
	int bell_fd;			/* an epoll of all targets' bells */
	struct seam_ring_shape shape;
	uint32_t n_free_slots;		/* kept ready in each memory */
	uint64_t most_bytes;		/* that all rings may have */
	char address[SEAM_LINK_ADDRESS_BYTES];
	struct seam_link_target **targets;	/* in order of arrival */
	size_t n_targets;
	uint64_t n_refused;		/* not let in, or cut off */
	int spare_fd;			/* to let one in and refuse it with */
	uint64_t n_failed;		/* of the refused, for want of ours */
	struct seam_err why;		/* the first of these */
};

/*
 * Remove the sockets of recorders that were killed from the folder that
 * @address is in.  Cost: one look at the folder.
 */
void seam_link_remove_stale(const char *address);

/* Listen for targets that shall get rings of @shape. */
int seam_link_server_open(struct seam_link_server *s,
			  const struct seam_ring_shape *shape,
			  struct seam_err *err);

/* Valid on a zeroed struct and after a failed open. */
void seam_link_server_close(struct seam_link_server *s);

/*
 * Let in who waits, hear who speaks, keep rings ready, silence the bell: to
 * be called before the rings are drained, not after.  Returns the number
 * of targets that met us or left.
 */
size_t seam_link_server_step(struct seam_link_server *s);

/*
 * Whether the connection has ended and nobody has a ring of @target, the dead
 * excepted: those become ending tenants here.  A child that was forked and
 * has not claimed a ring is not seen.
 */
bool seam_link_target_is_over(struct seam_link_target *target);

/* Let go of target @i: those behind it move up. */
void seam_link_server_forget(struct seam_link_server *s, size_t i);

#endif /* SEAM_RING_LINK_SERVER_H */
