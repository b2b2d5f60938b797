/* SPDX-License-Identifier: MIT */
/*
 * dump_symbols.h - names for the callchains of 'seam dump --json --symbols'
 *
 * The frames of a sample's copy of the stack follow the addresses of its
 * callchain, marked "unwound".
 *
 * The symbol of an address depends on the whole recording.  So the recording is
 * loaded first, with the record number of each sample (by_record).
 */
#pragma once

#include "model/profile/profile.h"
#include "wire/perf/perf_print.h"

struct seam_dump_symbols {
	const struct seam_profile *profile;	/* loaded by_record */
	uint32_t record;			/* number of the next one */
	size_t next;				/* sample of it, or after */
};

/* As seam_perf_namer.chain; @context is a struct seam_dump_symbols. */
void seam_dump_symbols_chain(void *context, struct seam_json *j,
			     const struct seam_perf_sample *sample);
