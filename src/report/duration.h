/* SPDX-License-Identifier: MIT */
/*
 * duration.h - a length of time in three digits and a unit
 *
 * "70 ns", "1.50 us", "24.6 ms", "3.20 s", "1.20 ks": narrow enough for a
 * column, and never 0.000000.
 */
#ifndef SEAM_DURATION_H
#define SEAM_DURATION_H

#include "base/base.h"

enum { SEAM_DURATION = 24 };

/* @ns in @buf, which it returns.  @in_ticks: a bare number, "1.50 M". */
const char *seam_duration(char buf[SEAM_DURATION], uint64_t ns, bool in_ticks);

#endif /* SEAM_DURATION_H */
