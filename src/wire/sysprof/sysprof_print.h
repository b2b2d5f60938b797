/* SPDX-License-Identifier: MIT */
/* sysprof_print.h - every item of a sysprof stream, in its order */
#ifndef SEAM_SYSPROF_PRINT_H
#define SEAM_SYSPROF_PRINT_H

#include "wire/line.h"
#include "wire/sysprof/sysprof.h"

/*
 * Print the items of @bytes to @out, a line each, frames leaf first, as they
 * are in the stream.  0, or the error that ended the stream, of which
 * everything before has been printed.
 */
int seam_sysprof_print(FILE *out, struct seam_bytes bytes,
		       enum seam_line_form form, struct seam_err *err);

#endif /* SEAM_SYSPROF_PRINT_H */
