/* SPDX-License-Identifier: MIT */
/*
 * announce_functions.h - send the ids of functions to the recorder
 *
 * Records of wire/xray/xray_functions.h, in a ring of the process.  A forked
 * child has what its parent announced; when a child has something to announce
 * itself, it claims a ring and announces everything.
 *
 * A process waits 10 ms in all for a recorder that is slow, or stopped; and as
 * much again at its end.
 *
 * Not in a handler.  Threads: one at a time, with the lock of start.c.
 */
#pragma once

#include "traced/fdr/sleds/images.h"

/*
 * Announce images and functions that are new, registered names, and functions
 * that triggers match.  0; -ENOSPC where the recorder has no ring for this
 * process; -ENOBUFS where the ring is full: the rest is announced the next
 * time.
 */
int seam_fdr_announce_new(void);

/* At the end: announce the rest, if there is a rest, with another wait. */
void seam_fdr_announce_rest(void);

/* Whether a rest is left for the next time.  From any context. */
bool seam_fdr_announce_is_behind(void);

/*
 * In a forked child, or after a link: there is no ring, nothing is announced.
 */
void seam_fdr_announce_begin_anew(void);

/* The head of the ring, which is claimed.  NULL: the recorder has no ring. */
struct seam_ring_control *seam_fdr_announce_control(void);
