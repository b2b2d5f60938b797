/* SPDX-License-Identifier: MIT */
/*
 * time_range.h - a part of a recording's time, as users name it
 *
 * One grammar for every command and every kind of recording: "A,B" counts
 * from the start, in seconds ("1.5,2"), with a unit ("300ms,1s"; ns us ms s
 * m), or in percent ("10%,20%"); either may be empty.  After an @ it is a time
 * on the recording's clock ("@57.25,@57.3"), as reports of single calls print
 * it.  The range is [A, B).
 */
#pragma once

#include "base/base.h"
#include "base/err.h"

struct seam_time_range {
	uint64_t from_ns;	/* first time in it */
	uint64_t to_ns;		/* first time after it */
};

#define SEAM_ALL_TIME ((struct seam_time_range) { 0, UINT64_MAX })

/*
 * Parse @text as a range of a recording whose first and last time are @start_ns
 * and @end_ns.  0, or -EINVAL with the reason.
 */
int seam_time_range_parse(struct seam_time_range *range, const char *text,
			  uint64_t start_ns, uint64_t end_ns,
			  struct seam_err *err);

static inline bool seam_time_range_has(const struct seam_time_range *range,
				       uint64_t ns)
{
	return ns >= range->from_ns && ns < range->to_ns;
}

static inline bool seam_time_range_is_all(const struct seam_time_range *range)
{
	return range->from_ns == 0 && range->to_ns == UINT64_MAX;
}

/* How much of [@begin_ns, @end_ns) lies in it. */
static inline uint64_t seam_time_range_clip(const struct seam_time_range *range,
					    uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t a = begin_ns > range->from_ns ? begin_ns : range->from_ns;
	uint64_t b = end_ns < range->to_ns ? end_ns : range->to_ns;

	return b > a ? b - a : 0;
}
