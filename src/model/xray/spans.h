/* SPDX-License-Identifier: MIT */
/* spans.h - the calls of a trace one by one, into the profile's columns */
#ifndef SEAM_SPANS_H
#define SEAM_SPANS_H

#include "model/profile/profile.h"
#include "model/xray/stream_calls.h"

/*
 * Append the calls of stream @stream as spans of @thread, in the order in
 * which they began.  @functions has the profile's function for each XRay id
 * below @n_functions; calls of others have SEAM_NONE.  0 or -ENOMEM.
 * Size: 28 bytes a call.
 */
int seam_spans_add(struct seam_spans *spans, const struct seam_trace *trace,
		   size_t stream, uint32_t thread, const uint32_t *functions,
		   size_t n_functions, struct seam_calls *calls,
		   struct seam_xray_problems *problems);

#endif /* SEAM_SPANS_H */
