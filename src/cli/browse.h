/* SPDX-License-Identifier: MIT */
/* browse.h - an open recording on the screen of screen/browser.h */
#pragma once

#include "cli/reading.h"

/*
 * Until the user ends it.  0, or -errno where standard input and output are no
 * terminal that can be used.
 */
int seam_browse(const struct seam_opened *opened,
		const struct seam_reading *reading, struct seam_err *err);
