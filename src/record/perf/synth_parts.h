/* SPDX-License-Identifier: MIT */
/*
 * synth_parts.h - what synthesized records are put together from
 *
 * For synth.c and synth_groups.c alone.
 */
#ifndef SEAM_SYNTH_PARTS_H
#define SEAM_SYNTH_PARTS_H

#include "record/perf/synth.h"

/* The trailer of our sample_type; see SAMPLE_TYPE in sources.c. */
struct seam_synth_trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* Of a thread, at time 0. */
struct seam_synth_trailer seam_synth_stamp(const struct seam_synth *synth,
					   int pid, int tid);

/*
 * One record: @fixed, a header and what follows, whose size is set here; the
 * name if there is one; the trailer.
 */
void seam_synth_put(struct seam_synth *synth, void *fixed, size_t fixed_size,
		    const char *name, const struct seam_synth_trailer *trailer);

#endif /* SEAM_SYNTH_PARTS_H */
