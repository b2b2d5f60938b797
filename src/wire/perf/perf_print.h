/* SPDX-License-Identifier: MIT */
/*
 * perf_print.h - every record of a perf.data file, a line each
 *
 * For people who write such files and for scripts that check them: nothing
 * is interpreted, joined or left out.  Fields have the names of the ABI,
 * except those that could be taken for the record's own type or offset:
 * bpf_type, auxtrace_type, update_type, and the aux_offset of AUXTRACE.
 */
#pragma once

#include "wire/line.h"
#include "wire/perf/perf_data.h"

/*
 * Writes a sample's callchain with names, as elements of the array that @j has
 * open.  Called for each SAMPLE record in turn; @j is NULL for one without a
 * callchain, @sample as well for one that is damaged or of no known event.
 */
struct seam_perf_namer {
	void (*chain)(void *context, struct seam_json *j,
		      const struct seam_perf_sample *sample);
	void *context;
};

/*
 * Records of @bytes in [@begin, @end) to @out.  As JSON:
 *
 *	{"offset":N,"type":"MMAP2","misc":N,...,"sample_id":{"time":N,...}}
 *
 * A record of unknown type has its bytes as "data".  One whose payload does
 * not have its type's layout has "damaged":true beside them and counts in
 * *@n_damaged.  With @namer (NULL: none) a callchain in JSON is what it
 * writes, else numbers.  Returns 0, or as seam_perf_stream_next() when the
 * walk ended before @end.
 */
int seam_perf_print(FILE *out, const struct seam_perf_data *data,
		    struct seam_bytes bytes, uint64_t begin, uint64_t end,
		    enum seam_line_form form,
		    const struct seam_perf_namer *namer, uint64_t *n_damaged,
		    struct seam_err *err);
