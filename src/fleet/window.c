/* SPDX-License-Identifier: MIT */
/* window.c - when windows end; see window.h */
#include "fleet/window.h"

#include "base/clock.h"

#define DAY_NS (86400 * SEAM_NS_PER_S)

int64_t seam_window_offset(void)
{
	return (int64_t)(seam_clock_now(CLOCK_REALTIME) - seam_clock_ns());
}

/* UTC of @ns; 0 where that is before 1970. */
static uint64_t utc_of(uint64_t ns, int64_t offset_ns)
{
	int64_t utc = (int64_t)ns + offset_ns;

	return utc < 0 ? 0 : (uint64_t)utc;
}

void seam_window_begin(struct seam_window *w, uint64_t length_ns,
		       uint64_t now_ns, int64_t offset_ns)
{
	uint64_t left_ns = length_ns - utc_of(now_ns, offset_ns) % length_ns;

	/* not a short one: a few samples would cost a batch */
	if (left_ns < length_ns / 2)
		left_ns += length_ns;
	*w = (struct seam_window) { length_ns, now_ns, now_ns + left_ns };
}

bool seam_window_is_due(const struct seam_window *w, uint64_t now_ns)
{
	return now_ns >= w->due_ns;
}

struct seam_window_utc seam_window_cut(struct seam_window *w, uint64_t now_ns,
				       int64_t offset_ns)
{
	struct seam_window_utc utc = {
		utc_of(w->from_ns, offset_ns), utc_of(now_ns, offset_ns),
	};
	uint64_t midnight_ns = (utc.from_ns / DAY_NS + 1) * DAY_NS;

	if (utc.to_ns > midnight_ns)
		utc.to_ns = midnight_ns;
	seam_window_begin(w, w->length_ns, now_ns, offset_ns);
	return utc;
}
