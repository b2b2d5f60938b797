/* SPDX-License-Identifier: MIT */
/* window.c - when windows end; see window.h */
#include "fleet/window.h"

#include "base/clock.h"

int64_t seam_window_offset(void)
{
	return (int64_t)(seam_clock_now(CLOCK_REALTIME) - seam_clock_ns());
}

uint64_t seam_window_utc(const struct seam_window *w, uint64_t ns)
{
	int64_t utc = (int64_t)ns + w->offset_ns;

	return utc < 0 ? 0 : (uint64_t)utc;
}

struct seam_window seam_window_begin(uint64_t length_ns, uint64_t now_ns,
				     int64_t offset_ns)
{
	struct seam_window w = { length_ns, now_ns, now_ns, offset_ns };
	uint64_t left_ns = length_ns - seam_window_utc(&w, now_ns) % length_ns;

	/* not a short one: a few samples would cost a batch */
	if (left_ns < length_ns / 2)
		left_ns += length_ns;
	w.due_ns += left_ns;
	return w;
}

bool seam_window_is_due(const struct seam_window *w, uint64_t now_ns)
{
	return now_ns >= w->due_ns;
}
