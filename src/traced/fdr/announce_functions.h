/* SPDX-License-Identifier: MIT */
/*
 * announce_functions.h - send the ids of functions to the recorder
 *
 * Records of wire/xray/xray_functions.h, in a ring of the process.  A forked
 * child has what its parent announced; it needs a ring when it has something to
 * announce itself, and then it announces everything.
 *
 * Not in a handler.  Threads: one at a time.
 */
#ifndef SEAM_FDR_ANNOUNCE_FUNCTIONS_H
#define SEAM_FDR_ANNOUNCE_FUNCTIONS_H

#include "traced/fdr/sleds/images.h"

/*
 * Announce the lists of all images that were not yet, or not wholly.  0;
 * -ENOSPC where the recorder has no ring for this process; -ENOBUFS where the
 * ring is full: what was not announced has no names, and is left for the next
 * time.
 *
 * A process waits 10 ms in all for a recorder that is slow, or stopped; and as
 * much again at its end.
 */
int seam_fdr_announce(struct seam_fdr_images *images);

/* Trigger @trigger is for @n more functions, also 0.  Returns as above. */
int seam_fdr_announce_match(uint32_t trigger, uint32_t n);

/*
 * A name, as seam_xray_write_named(): of a type of events, or of a function in
 * no image.  Returns as above.
 */
int seam_fdr_announce_named(enum seam_xray_announcement_kind kind,
			    uint32_t number, const char *name);

/*
 * Whether this is a child whose parent announced, and that has not: then what
 * it announces is all that the recorder takes for it, so everything is to be
 * announced again: from then on, if this returns 0, else as above.
 */
bool seam_fdr_announce_is_child(void);
int seam_fdr_announce_again(struct seam_fdr_images *images);

/*
 * For functions that are found later (cyg_announce.c): their image, which
 * seam_fdr_announce() does not announce, and has no ids in a row; and one
 * function, from any context: -EAGAIN where there is no room now.
 */
int seam_fdr_announce_image(const struct seam_fdr_image *image,
			    uint32_t number);
int seam_fdr_announce_at_once(const struct seam_xray_addresses *addresses);

/* In a forked child, or after a link: there is no ring, and nothing known. */
void seam_fdr_announce_begin_anew(void);

/*
 * Whether something was left for the next time; seam_fdr_announce_at_once()
 * notes it itself.  From any context.
 */
void seam_fdr_announce_set_behind(bool is_behind);
bool seam_fdr_announce_is_behind(void);

/* The process ends: it may wait again. */
void seam_fdr_announce_begin_end(void);

/* Claim the ring, if that was not done yet, for what is read from it. */
int seam_fdr_announce_claim(void);
struct seam_ring_control *seam_fdr_announce_control(void);

#endif /* SEAM_FDR_ANNOUNCE_FUNCTIONS_H */
