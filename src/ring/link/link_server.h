/* SPDX-License-Identifier: MIT */
/*
 * link_server.h - the recorder's end of the link
 *
 * Poll epoll_fd; when ready, at intervals, and at once while is_behind:
 * seam_link_server_step(), then the owners of each targets[i]->rings[k].
 *
 * A target is one connection, and the rings that were made after its HELLO,
 * which stay for the threads and the forked children of the program until
 * seam_link_server_forget().
 *
 * Rings have all their pages before a thread claims them.  In each target
 * n_free rings of a service are kept free, n_first of them when it connects and
 * the others soon, and up to four times as many where threads found none.  Once
 * all rings have a quarter of max_bytes, a quarter of n_free are kept; from
 * half of max_bytes on one; and none once they have max_bytes: then further
 * children get no ring, and programs that connect are refused.
 *
 * Threads: one.  No call blocks.
 */
#pragma once

#include "ring/link/link.h"
#include "ring/link/owners.h"

enum {
	SEAM_LINK_MAX_TARGETS = 1024,
	SEAM_LINK_HELLO_MS = 1000,	/* from the connection to HELLO */
};

/* What HELLO can name, and what rings a program gets for it. */
struct seam_link_service {
	const char *name;
	struct seam_ring_geometry geometry;
	uint32_t n_free;	/* rings kept free in each program */
	uint32_t n_first;	/* of these, before WELCOME; 0: all */
	uint32_t parameter;	/* for WELCOME */
};

/* The rings of one service in one target. */
struct seam_link_rings {
	uint32_t service;	/* index in the server's */
	struct seam_owners owners;
	uint64_t n_without_ring;	/* the caller's; 0 at first */
	uint64_t n_unclaimed;	/* threads that had found no ring before */
	uint32_t n_more;	/* rings to keep free for such threads */
};

struct seam_link_target {
	int socket;			/* -1: its message was read */
	pid_t pid;			/* by SO_PEERCRED */
	uid_t uid;
	uint64_t connected_ns;		/* CLOCK_MONOTONIC */
	uint64_t rings_ns;		/* no process had the rings before */
	int wakeup_fd;			/* our end */
	struct seam_link_rings rings[SEAM_LINK_MAX_SERVICES];
	uint32_t n_rings;		/* 0: no HELLO so far */
	void *process;			/* the caller's; NULL at first */
	bool is_over;			/* set by the caller: no more rings */
};

struct seam_link_server {
	int socket, epoll_fd;
	int wakeup_fd;		/* an epoll of all targets', in epoll_fd */
	struct seam_link_service services[SEAM_LINK_MAX_SERVICES];
	uint32_t n_services;
	uint64_t max_bytes;		/* of all rings */
	bool is_behind;			/* rings are to be made: step again */
	char address[SEAM_LINK_ADDRESS_BYTES];
	struct seam_link_target **targets;	/* in order of connection */
	size_t n_targets;
	uint64_t n_refused;		/* connections refused or cut off */
	int spare_fd;			/* to accept and refuse with */
	uint64_t n_failed;		/* refused for an error of ours */
	struct seam_err why;		/* the first of these */
	uint64_t n_notes;
	char note[SEAM_LINK_NOTE_BYTES];	/* the last; not trusted */
};

/* Listen for targets; offer @n @services, at most SEAM_LINK_MAX_SERVICES. */
int seam_link_server_open(struct seam_link_server *s,
			  const struct seam_link_service *services, size_t n,
			  struct seam_err *err);

/* Valid on a zeroed struct and after a failed open. */
void seam_link_server_close(struct seam_link_server *s);

/*
 * Accept connections, read messages, scan for claims, keep rings free, drain
 * wakeups.  To be called before the rings are drained, not after.
 */
void seam_link_server_step(struct seam_link_server *s);

/* Free target @i: later ones move up. */
void seam_link_server_forget(struct seam_link_server *s, size_t i);
