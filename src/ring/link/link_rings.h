/* SPDX-License-Identifier: MIT */
/*
 * link_rings.h - make the rings of programs, and keep some of them free
 *
 * Making a ring takes a millisecond, for its pages: 16 of 4 MiB take longer
 * than most programs of a build run.  So a step makes one for each target that
 * has none free, and of the others as many as a few milliseconds allow: rings
 * of programs and children that have ended meanwhile are free before more are
 * made, and a program that connects does not wait for those of others.
 *
 * Threads: one.  No call blocks.
 */
#ifndef SEAM_RING_LINK_RINGS_H
#define SEAM_RING_LINK_RINGS_H

#include "ring/link/link_server.h"

/*
 * Make rings of @service for @target, as its next.  0 or -errno: -EDQUOT where
 * all rings have max_bytes.
 */
int seam_link_rings_make(const struct seam_link_server *s,
			 struct seam_link_target *target, uint32_t service);

/*
 * Scan all rings for claims, and keep free ones for the next threads.  False:
 * more are to be made, in the next step.
 */
bool seam_link_rings_keep_free(const struct seam_link_server *s);

#endif /* SEAM_RING_LINK_RINGS_H */
