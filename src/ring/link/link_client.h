/* SPDX-License-Identifier: MIT */
/*
 * link_client.h - the program's end of the link
 *
 * Called once, at load; later only what memory.h names is used, which needs
 * no descriptor.  The bell stays open, close-on-exec, and so does the socket
 * until seam_link_client_part(): the end of the connection tells the recorder
 * at once that the program has ended or become another.  Without it the
 * recorder finds that out by looking.
 */
#ifndef SEAM_RING_LINK_CLIENT_H
#define SEAM_RING_LINK_CLIENT_H

#include "ring/link/link.h"

struct seam_link_client {
	int socket;			/* -1: not met */
	int bell_fd;
	struct seam_ring_bell bell;
	struct seam_ring_memory memory;
};

/*
 * Meet the recorder at @address within @timeout_ms in all.  Returns 0;
 * -EPERM when somebody else listens there, -ECONNREFUSED when it refused or
 * nobody listens, -EXDEV when it is of another pid namespace, -ETIMEDOUT, or
 * what failed.  After a failure the struct is valid and holds nothing.
 */
int seam_link_client_meet(struct seam_link_client *c, const char *address,
			  const char *name, int timeout_ms);

/* Close the socket: for programs whose descriptors are not ours to hold. */
void seam_link_client_part(struct seam_link_client *c);

/*
 * In the middle of things, for instance in a thread of a forked child: a
 * ring in the memory, ready to write.  As seam_ring_memory_claim().
 */
int seam_link_client_claim(struct seam_link_client *c, uint32_t tid,
			   struct seam_ring_claim *claim);

/* Say good-bye with the counts, and let go of everything. */
void seam_link_client_fini(struct seam_link_client *c);

#endif /* SEAM_RING_LINK_CLIENT_H */
