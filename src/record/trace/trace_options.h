/* SPDX-License-Identifier: MIT */
/*
 * trace_options.h - what to record, for the programs: SEAM_TRACE
 *
 * seam-fdr(3) has the variable's form; traced/fdr/options.h reads it.
 */
#ifndef SEAM_TRACE_OPTIONS_H
#define SEAM_TRACE_OPTIONS_H

#include <stdio.h>

#include "base/base.h"

/*
 * Write "KEY=LIST;" of @n lists to @out, joined by commas; nothing if there is
 * none.  A list has commas between its items.
 */
void seam_trace_options_list(FILE *out, const char *key,
			     const char *const *lists, size_t n);

/* Write "trigger=TEXT,...;" of @n triggers; nothing if there is none. */
void seam_trace_options_triggers(FILE *out, const char *const *texts, size_t n);

/* Write "KEY=VALUE;" with @unit, "" or "ns", after the value; nothing for 0. */
void seam_trace_options_number(FILE *out, const char *key, uint64_t value,
			       const char *unit);

#endif /* SEAM_TRACE_OPTIONS_H */
