/* SPDX-License-Identifier: MIT */
/*
 * trace_json.h - an XRay log for chrome://tracing and ui.perfetto.dev
 *
 * Each call is a begin and an end event, arguments are the begin event's
 * args, custom and typed events are instants of their thread.  Times are
 * microseconds with three decimals.  Repaired calls have both events too.
 *
 * Source: Trace Event Format (Google, 2016), "JSON Object Format".
 */
#ifndef SEAM_TRACE_JSON_H
#define SEAM_TRACE_JSON_H

#include "model/xray/call_names.h"

/*
 * Write the calls of @trace that begin in its range, to their end, and the
 * events in it.  Unreadable parts are added to @problems.
 * 0, -ENOMEM, or the error of writing.  Cost: about 40 ns per record.
 */
int seam_trace_json(FILE *out, const struct seam_trace *trace,
		    const struct seam_xray_map *names,
		    struct seam_xray_problems *problems,
		    struct seam_err *err);

#endif /* SEAM_TRACE_JSON_H */
