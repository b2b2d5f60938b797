/* SPDX-License-Identifier: MIT */
/* trace_made.h - a trace of one log in memory, for tests */
#ifndef SEAM_TEST_TRACE_MADE_H
#define SEAM_TEST_TRACE_MADE_H

#include "model/xray/trace.h"

/* As seam_trace_open(), of a copy of @bytes. */
static inline int trace_from_bytes(struct seam_trace *trace,
				   struct seam_bytes bytes,
				   struct seam_err *err)
{
	uint8_t *copy = malloc(bytes.size + 1);
	struct seam_file file = { .bytes = { copy, bytes.size } };
	int r;

	seam_trace_init(trace);
	if (!copy)
		return seam_err_no_memory(err);
	if (bytes.size)
		memcpy(copy, bytes.data, bytes.size);
	r = seam_trace_add_file(trace, "", &file, err);
	if (!r)
		r = seam_trace_arrange(trace, err);
	if (r)
		seam_trace_close(trace);
	return r;
}

#endif /* SEAM_TEST_TRACE_MADE_H */
