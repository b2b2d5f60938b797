/* SPDX-License-Identifier: MIT */
/*
 * window.h - the times of a continuous recording's pieces
 *
 * A window is a piece of CLOCK_MONOTONIC: windows follow each other without a
 * gap or an overlap, whatever happens to the time of day.  Its UTC is computed
 * when it ends, by the offset of then.  Windows end at multiples of their
 * length in UTC, or as soon after as the caller looks; after a step of the
 * clock the next one is longer or shorter once, by half its length at most.
 *
 * A window belongs to the UTC day in which it begins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct seam_window {
	uint64_t length_ns;
	uint64_t from_ns, due_ns;	/* CLOCK_MONOTONIC */
};

/* UTC nanoseconds: [from, to), of one day. */
struct seam_window_utc {
	uint64_t from_ns, to_ns;
};

/* UTC minus CLOCK_MONOTONIC, now. */
int64_t seam_window_offset(void);

/* The first window, from @now_ns on; @offset_ns is UTC minus that clock. */
void seam_window_begin(struct seam_window *window, uint64_t length_ns,
		       uint64_t now_ns, int64_t offset_ns);

/* Does the window end at @now_ns? */
bool seam_window_is_due(const struct seam_window *window, uint64_t now_ns);

/* It ends at @now_ns, and the next one begins. */
struct seam_window_utc seam_window_cut(struct seam_window *window,
				       uint64_t now_ns, int64_t offset_ns);
