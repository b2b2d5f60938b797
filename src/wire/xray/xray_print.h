/* SPDX-License-Identifier: MIT */
/* xray_print.h - every record of an XRay log, in the order of the file */
#ifndef SEAM_XRAY_PRINT_H
#define SEAM_XRAY_PRINT_H

#include "wire/line.h"
#include "wire/xray/xray_index.h"

/*
 * Print the records of @file to @out, a line each.  Names are those of the
 * specification.  Bytes that could not be read are a line of their own and
 * add to *@n_damaged.  Errors as seam_xray_index_build().
 */
int seam_xray_print(FILE *out, struct seam_bytes file, enum seam_line_form form,
		    uint64_t *n_damaged, struct seam_err *err);

#endif /* SEAM_XRAY_PRINT_H */
