/* SPDX-License-Identifier: MIT */
/*
 * existing.h - the processes that ran before the recording began
 *
 * Their names, mappings and namespaces become records (synth.h), which are
 * appended to the file and shown to whatever sees the side-band, so that all
 * that is kept for a program that was launched is kept for these.  A helper
 * thread reads /proc, one process at a time; the rings are drained meanwhile,
 * without ends of rounds, because these records are older than what is in
 * them.
 */
#ifndef SEAM_EXISTING_H
#define SEAM_EXISTING_H

#include "record/session.h"

/* Of all processes together; later ones are counted. */
#define SEAM_EXISTING_MAX_BYTES (UINT64_C(256) << 20)

/*
 * Write what comes before the first event: the kernel, and the processes that
 * are recorded and run already.  0 or -errno of a write, of memory or of a
 * helper; what was left out is told.
 */
int seam_existing_write(struct seam_session *s, struct seam_err *err);

/* Show a side-band record, of these or of the kernel's, to what keeps files. */
void seam_session_track_files(struct seam_session *s,
			      const struct seam_perf_sideband *record);

#endif /* SEAM_EXISTING_H */
