/* SPDX-License-Identifier: MIT */
/*
 * aux_buffers.h - AUX areas in a recording: told of, snapshotted, judged
 *
 * Draining them is a part of each round; see drain.h.  With snapshots (-S)
 * the areas run free, and what they hold is copied into each snapshot, and at
 * the end into the recording's own file; see snapshot.h.  What writes an area
 * is stopped while it is copied, as the kernel demands: only then is its head
 * true.
 */
#ifndef SEAM_AUX_BUFFERS_H
#define SEAM_AUX_BUFFERS_H

#include "record/perf/synth.h"
#include "record/session.h"

/* Whether anything of the recording writes an area. */
bool seam_aux_buffers_are_there(const struct seam_session *s);

/*
 * What perf's decoders must know, as AUXTRACE_INFO and TIME_CONV, to the
 * records at the head of the file.
 */
void seam_aux_buffers_describe(const struct seam_session *s,
			 struct seam_synth *synth);

/*
 * Append what the free-running areas hold to the file of @s.  What writes
 * them is stopped behind that.  0 or -errno of the write.
 */
int seam_aux_buffers_append(struct seam_session *s, struct seam_err *err);

#endif /* SEAM_AUX_BUFFERS_H */
