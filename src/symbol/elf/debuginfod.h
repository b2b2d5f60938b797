/* SPDX-License-Identifier: MIT */
/*
 * debuginfod.h - files by build id, from servers in $DEBUGINFOD_URLS
 *
 * Only used with --debuginfod.  The client library is loaded at
 * the first call, so that Seam runs where it is not installed.
 *
 * Threads: any.
 */
#ifndef SEAM_DEBUGINFOD_H
#define SEAM_DEBUGINFOD_H

#include "base/base.h"
#include "base/err.h"

/*
 * A descriptor of the debug file (@debug) or executable with build id @id;
 * the caller closes it.  -errno with the reason in @err.  Slow: a network.
 */
int seam_debuginfod_open(bool debug, const uint8_t *id, size_t id_size,
			 struct seam_err *err);

#endif /* SEAM_DEBUGINFOD_H */
