/* SPDX-License-Identifier: MIT */
/*
 * tracepoints.h - the fields of tracepoint samples, by formats in the recording
 *
 * The kernel describes the layout of each tracepoint in a text.  A recording
 * holds the texts of its tracepoints (the TRACING_DATA feature), so that RAW
 * data can be read on another machine.  Only the fields are read: their
 * offsets, sizes and types.
 *
 * Source: tools/perf/util/trace-event-info.c, Linux 6.1, for the layout of
 * TRACING_DATA; trace-cmd.dat.v6(5); Documentation/trace/events.rst for the
 * texts.
 */
#pragma once

#include "base/err.h"
#include "wire/line.h"

struct seam_tracepoints;

/*
 * Read the formats in @blob.  NULL when there are none or memory ran out.
 * Damage ends the reading; the formats before it are known.
 */
struct seam_tracepoints *seam_tracepoints_new(struct seam_bytes blob);
void seam_tracepoints_free(struct seam_tracepoints *tracepoints);

/*
 * The name of tracepoint @id as "system:event" in @buf, or NULL when its
 * format is not known.
 */
const char *seam_tracepoints_name(const struct seam_tracepoints *tracepoints,
				  uint64_t id, char *buf, size_t cap);

/*
 * Write the fields of the RAW bytes of tracepoint @id to @line, without those
 * that all tracepoints share (common_*) and those that are not within @raw.
 * False when the format is not known.
 */
bool seam_tracepoints_fields(const struct seam_tracepoints *tracepoints,
			     uint64_t id, struct seam_bytes raw,
			     struct seam_line *line);
