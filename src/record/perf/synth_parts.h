/* SPDX-License-Identifier: MIT */
/*
 * synth_parts.h - assemble synthesized records
 *
 * For synth.c and synth_groups.c alone.
 */
#ifndef SEAM_SYNTH_PARTS_H
#define SEAM_SYNTH_PARTS_H

#include "record/perf/sources.h"
#include "record/perf/synth.h"

/* The sample_id of a record of a thread, at time 0. */
struct seam_perf_sample_id seam_synth_sample_id(const struct seam_synth *synth,
						int pid, int tid);

/* Append a record of @type, with the @fields of its table. */
void seam_synth_put(struct seam_synth *synth, uint32_t type, uint16_t misc,
		    const void *fields,
		    const struct seam_perf_sample_id *sample_id);

#endif /* SEAM_SYNTH_PARTS_H */
