/* SPDX-License-Identifier: MIT */
/* saved.c - see saved.h; seam_fdr_begin_thread() is in thread_area.c */
#include "traced/fdr/record/saved.h"

#include "traced/fdr/record/thread_area.h"
#include "wire/xray/xray_functions.h"

#include <errno.h>

uint64_t seam_fdr_make_room(void *area)
{
	int error = errno;
	bool done = seam_fdr_n_in_source == 0 &&
		    seam_fdr_source->make_room(area);

	errno = error;
	return done;
}

uint64_t seam_fdr_wake(void *of)
{
	const struct seam_fdr_area *area = of;

	return seam_ring_wakeup_send(area->wakeup);
}

uint64_t seam_fdr_send_trigger(void *trigger)
{
	struct seam_fdr_area *area = &seam_fdr_self.state->area;
	uint8_t payload[64];

	return seam_fdr_source->send &&
	       seam_fdr_source->send(area, payload,
				     seam_xray_write_trigger(payload,
							     sizeof(payload),
							     trigger));
}
