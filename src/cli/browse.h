/* SPDX-License-Identifier: MIT */
/* browse.h - an open recording on the screen of screen/browser.h */
#ifndef SEAM_BROWSE_H
#define SEAM_BROWSE_H

#include "cli/reading.h"

/*
 * Until the user ends it.  0, or -errno where standard input and output are no
 * terminal that can be used.
 */
int seam_browse(const struct seam_opened *opened,
		const struct seam_reading *reading, struct seam_err *err);

#endif /* SEAM_BROWSE_H */
