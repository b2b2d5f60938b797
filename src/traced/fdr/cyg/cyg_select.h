/* SPDX-License-Identifier: MIT */
/*
 * cyg_select.h - which functions of -finstrument-functions are recorded
 *
 * Names cannot be read where a function is met, so with GLOBs or triggers all
 * functions of an image that calls us are looked through when it is loaded.
 * Not in a handler: uses malloc.
 */
#ifndef SEAM_FDR_CYG_SELECT_H
#define SEAM_FDR_CYG_SELECT_H

#include "traced/fdr/options.h"
#include "traced/fdr/sleds/images.h"

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

#endif /* SEAM_FDR_CYG_SELECT_H */
