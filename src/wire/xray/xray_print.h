/* SPDX-License-Identifier: MIT */
/* xray_print.h - every record of an XRay log, in the order of the file */
#pragma once

#include "wire/line.h"
#include "wire/xray/xray_index.h"

/* Names of functions and of types of events; NULL: it has none. */
struct seam_xray_namer {
	const char *(*function)(void *context, uint32_t id);
	const char *(*event)(void *context, uint16_t type);
	void *context;
};

/*
 * Print the records of @file to @out, a line each.  Names are those of the
 * specification; @namer, where not NULL, adds those of functions and events.
 * Bytes that could not be read are a line of their own and add to *@n_damaged.
 * Errors as seam_xray_index_build().
 */
int seam_xray_print(FILE *out, struct seam_bytes file, enum seam_line_form form,
		    const struct seam_xray_namer *namer, uint64_t *n_damaged,
		    struct seam_err *err);
