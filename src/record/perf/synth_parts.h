/* SPDX-License-Identifier: MIT */
/*
 * synth_parts.h - assemble synthesized records
 *
 * For synth.c and synth_groups.c alone.
 */
#ifndef SEAM_SYNTH_PARTS_H
#define SEAM_SYNTH_PARTS_H

#include "record/perf/synth.h"

/* The sample_id of our sample_type; see SAMPLE_TYPE in sources.c. */
struct seam_synth_sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* Of a thread, at time 0. */
struct seam_synth_sample_id seam_synth_sample_id(
	const struct seam_synth *synth, int pid, int tid);

/*
 * Append a record: @fixed, which begins with the header, whose size is set
 * here; @name, if not NULL; @sample_id.
 */
void seam_synth_put(struct seam_synth *synth, void *fixed, size_t fixed_size,
		    const char *name,
		    const struct seam_synth_sample_id *sample_id);

#endif /* SEAM_SYNTH_PARTS_H */
