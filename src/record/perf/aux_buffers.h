/* SPDX-License-Identifier: MIT */
/*
 * aux_buffers.h - describe and copy the AUX buffers of a recording
 *
 * Draining them is a part of each round; see drain.h.  In snapshot mode (-S)
 * the hardware overwrites the oldest bytes, and the newest are copied into each
 * snapshot, and at the end into the recording's own file; see snapshot.h.  The
 * kernel updates the head of a buffer when its event stops, so all such events
 * are stopped during the copy.
 */
#ifndef SEAM_AUX_BUFFERS_H
#define SEAM_AUX_BUFFERS_H

#include "record/perf/data_file.h"

/*
 * Append AUXTRACE_INFO and TIME_CONV, which perf's decoders need, to the
 * records at the head of the file.  Nothing without AUX buffers.
 */
void seam_aux_buffers_describe(const struct seam_sources *sources,
			       struct seam_synth *synth);

/*
 * Snapshot mode: append the contents of the buffers to @file; their events
 * stay stopped.  0 or -errno of the write.
 */
int seam_aux_buffers_append(struct seam_sources *sources,
			    struct seam_data_file *file, struct seam_err *err);

#endif /* SEAM_AUX_BUFFERS_H */
