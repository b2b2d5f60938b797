/* SPDX-License-Identifier: MIT */
/*
 * tracepoint.h - points of the kernel that tell of themselves
 *
 * What a tracepoint's sample holds is told by a format file of tracefs.
 * Those of the events recorded go into the recording, so that it can be read
 * on any machine.
 */
#ifndef SEAM_TRACEPOINT_H
#define SEAM_TRACEPOINT_H

#include "record/events/event_list.h"

/*
 * Append "system:name[:modifiers]", or each tracepoint that matches, in the
 * order of their names.  -ENOENT: none; -EACCES, -ENODEV: tracefs cannot be
 * read, and how that is changed.
 */
int seam_tracepoint_add(struct seam_event_list *list, const char *text,
			struct seam_err *err);

/*
 * What perf.data calls TRACING_DATA, for the tracepoints among @events.
 * *@data is freed by the caller; *@size is 0 when there is none.  -errno: a
 * format cannot be read, and @data is NULL.
 * Source: trace_event-header_info.c in tools/perf/util of Linux 6.1, version 0.6
 * of trace-cmd's format.
 */
int seam_tracepoint_data(const struct seam_event *events, size_t n,
			 uint8_t **data, size_t *size, struct seam_err *err);

#endif /* SEAM_TRACEPOINT_H */
