/* SPDX-License-Identifier: MIT */
/* xray_dump.h - every record of an XRay log, in the order of the file */
#ifndef SEAM_XRAY_DUMP_H
#define SEAM_XRAY_DUMP_H

#include "wire/xray/xray_index.h"

/*
 * Write the records of @file to @out, a line each: as text, or @json, an
 * object each.  Names are the spec's.  What could not be read is a line of
 * its own and adds to *@n_damaged.  Errors as seam_xray_index_build().
 */
int seam_xray_dump(FILE *out, struct seam_bytes file, bool json,
		   uint64_t *n_damaged, struct seam_err *err);

#endif /* SEAM_XRAY_DUMP_H */
