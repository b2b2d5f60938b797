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

#include "traced/fdr/options.h"
#include "traced/fdr/sleds/images.h"

/*
 * Images have changed: announce those that are new, and what is still to be
 * sent.  With the locks of seam_fdr_images_with().  0 or as
 * seam_fdr_announce().
 */
int seam_fdr_cyg_announce(struct seam_fdr_images *images);

/* In a forked child: the next time announces all of it. */
void seam_fdr_cyg_announce_all_again(void);

/*
 * ---- which functions of -finstrument-functions are recorded ----
 *
 * Names cannot be read where a function is met, so with GLOBs or triggers all
 * functions of an image that calls us are looked through when it is loaded.
 * Not in a handler: uses malloc.
 */

/* Forget what was selected, for other options. */
void seam_fdr_cyg_select_none(const struct seam_fdr_options *options);

/*
 * Select in images that are new; @on_trigger as with seam_fdr_select().  With
 * the locks of seam_fdr_images_with().  0, or the first failure: functions of
 * that image are not recorded.
 */
int seam_fdr_cyg_select(const struct seam_fdr_options *options,
			const struct seam_fdr_images *images,
			void (*on_trigger)(unsigned int trigger, uint32_t id));

#endif /* SEAM_FDR_CYG_ANNOUNCE_H */
