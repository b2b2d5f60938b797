/* SPDX-License-Identifier: MIT */
/*
 * trace_clock.h - times by the ties of a recording
 *
 * CLOCK_MONOTONIC is corrected by NTP while it runs, by up to 500 ppm, so one
 * frequency puts calls of a long recording beside the samples of another time:
 * in the middle of an hour in which the correction changed by 100 ppm, 90 ms
 * from their own.  The manifest of a bundle has ties, read all along.  Between
 * those that are enough for all others, time is linear.
 */
#ifndef SEAM_TRACE_CLOCK_H
#define SEAM_TRACE_CLOCK_H

#include "base/array.h"
#include "base/tsc.h"
#include "model/xray/ticks.h"

enum { SEAM_TRACE_CLOCK_NS = 10000 };	/* how far a tie may be from it */

struct seam_trace_clock {
	/* the frequency of the logs, and one tie for all times */
	struct seam_ticks ticks;
	/* by the recording's ties, ascending; empty: it has none */
	SEAM_ARRAY(struct seam_ticks) pieces;
	bool is_tied;			/* its ns are CLOCK_MONOTONIC */
};

/*
 * Have @clock go by @n ascending ties, from @first_tsc on.  It stays as it is
 * if there are less than 2, or their frequency is another one.  0 or -ENOMEM.
 */
int seam_trace_clock_tie(struct seam_trace_clock *clock,
			 const struct seam_tsc_tie *ties, size_t n,
			 uint64_t first_tsc);

/* How @clock goes at @tsc, and *@n_ticks from that origin on. */
const struct seam_ticks *
seam_trace_clock_at(const struct seam_trace_clock *clock, uint64_t tsc,
		    uint64_t *n_ticks);

static inline uint64_t
seam_trace_clock_time(const struct seam_trace_clock *clock, uint64_t tsc)
{
	uint64_t n_ticks;

	return seam_ticks_time(seam_trace_clock_at(clock, tsc, &n_ticks), tsc);
}

/* All its times become later by @ns, modulo 2^64. */
void seam_trace_clock_move(struct seam_trace_clock *clock, uint64_t ns);

#endif /* SEAM_TRACE_CLOCK_H */
