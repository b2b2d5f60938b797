/* SPDX-License-Identifier: MIT */
/*
 * cyg_announce.h - send addresses of functions that were called
 *
 * Functions of -finstrument-functions are announced by the thread that calls
 * one first, which may be in a handler: by the address in its image, which is
 * found in a table of all loaded images.  What the ring has no room for at that
 * moment is sent at the end, or with what comes later from outside handlers.
 */
#ifndef SEAM_FDR_CYG_ANNOUNCE_H
#define SEAM_FDR_CYG_ANNOUNCE_H

#include "traced/fdr/sleds/images.h"

/*
 * Images have changed: announce those that are new, and what is still to be
 * sent.  With the locks of seam_fdr_images_with().  0 or as
 * seam_fdr_announce().
 */
int seam_fdr_cyg_announce(struct seam_fdr_images *images);

/* In a forked child: the next time announces all of it. */
void seam_fdr_cyg_announce_all_again(void);

#endif /* SEAM_FDR_CYG_ANNOUNCE_H */
