/* SPDX-License-Identifier: MIT */
/*
 * link_client.h - the program's end of the link
 *
 * Used once, at load; later only producer/claim.h, which needs no descriptor.
 * Only the wakeup's descriptor stays open, close-on-exec.
 */
#ifndef SEAM_RING_LINK_CLIENT_H
#define SEAM_RING_LINK_CLIENT_H

#include "ring/link/link.h"
#include "ring/producer/claim.h"

struct seam_link_client {
	int wakeup_fd;			/* -1: not connected */
	struct seam_ring_wakeup wakeup;
	/* in the order of the services; head NULL: the recorder lacks it */
	struct seam_ring_memory memories[SEAM_LINK_MAX_SERVICES];
	uint32_t parameters[SEAM_LINK_MAX_SERVICES];	/* of WELCOME */
};

/*
 * Connect to the recorder at @address, and get rings for @services, names
 * with a space between them, all within @timeout_ms.  Returns 0; -EPERM when
 * another user listens there, -ENOPROTOOPT when the recorder has none of
 * @services, -ECONNREFUSED when it refused for another reason or none listens,
 * -EXDEV when it is of another pid namespace, -ETIMEDOUT, or the failure's
 * errno.  After a failure the struct is valid and holds nothing.
 */
int seam_link_client_connect(struct seam_link_client *c, const char *address,
			     const char *services, int timeout_ms);

/*
 * Send @text, a line for the recorder's user, over a connection of its own.
 * Returns as seam_link_client_connect().
 */
int seam_link_client_note(const char *address, const char *text);

/*
 * Claim a ring of service @i for thread @tid, the caller, ready to write.  As
 * seam_ring_memory_claim(); safe in a signal handler and in a forked child.
 */
int seam_link_client_claim(struct seam_link_client *c, uint32_t i, uint32_t tid,
			   struct seam_ring_claim *claim);

/* Close the wakeup, and unmap the rings. */
void seam_link_client_fini(struct seam_link_client *c);

#endif /* SEAM_RING_LINK_CLIENT_H */
