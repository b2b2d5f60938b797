/* SPDX-License-Identifier: MIT */
/*
 * tracepoint.h - tracepoints of the kernel, and their formats
 *
 * The layout of a tracepoint's sample is in a format file of tracefs.  The
 * formats of the recorded events are copied into the recording, so that it can
 * be read on any machine.
 */
#ifndef SEAM_TRACEPOINT_H
#define SEAM_TRACEPOINT_H

#include "record/events/event.h"

/*
 * Append each tracepoint that matches "system:name[:modifiers]", in the order
 * of their names: a pattern stands for several events, so this takes the
 * list.  -ENOENT: none matches; -EACCES, -ENODEV: tracefs cannot be read, and
 * the message says how to change that.
 */
int seam_tracepoint_add(struct seam_event_list *list, const char *text,
			struct seam_err *err);

/*
 * Make the feature HEADER_TRACING_DATA of perf.data, for the tracepoints among
 * @events.  The caller frees *@data; *@size is 0 when there is no tracepoint.
 * -errno: a format cannot be read, and *@data is NULL.
 * Source: trace-event-info.c in tools/perf/util of Linux 6.1, version 0.6 of
 * trace-cmd's format.
 */
int seam_tracepoint_data(const struct seam_event *events, size_t n,
			 uint8_t **data, size_t *size, struct seam_err *err);

#endif /* SEAM_TRACEPOINT_H */
