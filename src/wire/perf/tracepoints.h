/* SPDX-License-Identifier: MIT */
/*
 * tracepoints.h - the fields of tracepoint samples, as the recording explains
 *
 * The kernel describes the layout of each tracepoint in a text; a recording
 * holds the texts of those it has (the TRACING_DATA feature), so that RAW
 * bytes can be read on another machine, years later.  Only the fields are
 * read: where they lie, how large they are, what they hold.
 *
 * Source: tools/perf/util/trace-event-header_info.c, Linux 6.1, for the layout of
 * TRACING_DATA; trace-cmd.dat.v6(5); Documentation/trace/events.rst for the
 * texts.
 */
#ifndef SEAM_TRACEPOINTS_H
#define SEAM_TRACEPOINTS_H

#include "base/err.h"
#include "base/json.h"

struct seam_tracepoints;

/*
 * Read the formats in @blob.  NULL when there are none or memory ran out.
 * What is damaged ends the reading; the formats before it are known.
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
 * Write the fields of the RAW bytes of tracepoint @id: members of the object
 * that @j has open, or with @j NULL " name=value" to @out.  The fields that
 * all tracepoints share (common_*) are left out.  False when the format is
 * not known; fields that do not fit into @raw are left out too.
 */
bool seam_tracepoints_fields(const struct seam_tracepoints *tracepoints,
			     uint64_t id, struct seam_bytes raw,
			     struct seam_json *j, FILE *out);

#endif /* SEAM_TRACEPOINTS_H */
