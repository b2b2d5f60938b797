/* SPDX-License-Identifier: MIT */
/*
 * auxtrace.h - write AUX data to the file
 *
 * AUX records in a ring describe what its AUX buffer holds; the bytes go into
 * the file as PERF_RECORD_AUXTRACE, and an index of these records is a feature
 * of the file.  Normal mode drains the buffer as rings are drained (drain.h).
 * In snapshot mode (-S) the hardware overwrites the oldest bytes, and the
 * newest are copied into each snapshot and, at the end, into the recording's
 * own file.
 *
 * Source: auxtrace_mmap__read() in tools/perf/util/auxtrace.c of Linux 6.1.
 */
#pragma once

#include "record/perf/data_file.h"

/* Count the losses in an AUX record. */
void seam_auxtrace_count(struct seam_counts *losses,
			 const struct seam_perf_aux *record);

/*
 * Normal mode: append the contents of the AUX buffer of @ring, number @idx of
 * the rings, and free its space.  Up to 7 bytes stay until there are 8, unless
 * this @is_last.  Returns the bytes or -errno.
 */
ssize_t seam_auxtrace_drain(struct seam_data_file *file,
			    struct seam_source_ring *ring, uint32_t idx,
			    bool is_last, struct seam_err *err);

/*
 * Snapshot mode: append the newest bytes of the AUX buffer, whose event is
 * stopped: @max_bytes at most (0: all).  Returns as above.
 */
ssize_t seam_auxtrace_snapshot(struct seam_data_file *file,
			       struct seam_source_ring *ring, uint32_t idx,
			       uint64_t max_bytes, struct seam_err *err);

/*
 * Snapshot mode: append all buffers.  Their events stay stopped, because the
 * kernel updates the head of a buffer when its event stops.  0 or -errno.
 */
int seam_auxtrace_snapshot_all(struct seam_sources *sources,
			       struct seam_data_file *file,
			       struct seam_err *err);

/*
 * Append AUXTRACE_INFO and TIME_CONV, which perf's decoders need, to the
 * records at the head of the file.  Nothing without AUX buffers.
 */
void seam_auxtrace_describe(const struct seam_sources *sources,
			    struct seam_synth *synth);
