/* SPDX-License-Identifier: MIT */
/*
 * dump_symbols.h - names for the callchains of 'seam dump --json --symbols'
 *
 * A dump shows records as they are, one after the other; what an address
 * means takes the whole recording.  So the recording is loaded as for a
 * report, and its samples, which stand in the order of their records, are
 * walked along with the dump.
 */
#ifndef SEAM_DUMP_SYMBOLS_H
#define SEAM_DUMP_SYMBOLS_H

#include "model/profile/profile.h"
#include "wire/perf/perf_print.h"

struct seam_dump_symbols {
	const struct seam_profile *profile;	/* with all unknown callers */
	size_t next;				/* sample to compare with */
};

/* As seam_perf_namer.chain; @context is a struct seam_dump_symbols. */
void seam_dump_symbols_chain(void *context, struct seam_json *j,
			     const struct seam_perf_sample *sample);

#endif /* SEAM_DUMP_SYMBOLS_H */
