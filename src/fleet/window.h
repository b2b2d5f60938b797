/* SPDX-License-Identifier: MIT */
/*
 * window.h - the times of a continuous recording's pieces
 *
 * A window is a piece of CLOCK_MONOTONIC: windows follow each other without a
 * gap or an overlap, whatever happens to the time of day.  The whole window has
 * the UTC of the moment when it began; a step of the clock counts from the next
 * window on.  Windows end at multiples of their length in UTC, or as soon after
 * as the caller looks; after a step one is longer or shorter, by half its
 * length at most.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct seam_window {
	uint64_t length_ns;
	uint64_t from_ns, due_ns;	/* CLOCK_MONOTONIC */
	int64_t offset_ns;		/* UTC minus that */
};

/* UTC minus CLOCK_MONOTONIC, now. */
int64_t seam_window_offset(void);

/* A window from @now_ns on, with @offset_ns. */
struct seam_window seam_window_begin(uint64_t length_ns, uint64_t now_ns,
				     int64_t offset_ns);

/* Does the window end at @now_ns? */
bool seam_window_is_due(const struct seam_window *window, uint64_t now_ns);

/* UTC of @ns, a time of the window; 0 where that is before 1970. */
uint64_t seam_window_utc(const struct seam_window *window, uint64_t ns);
