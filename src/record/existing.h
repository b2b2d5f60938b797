/* SPDX-License-Identifier: MIT */
/*
 * existing.h - records of processes that ran before the recording
 *
 * Their names, mappings and namespaces are synthesized as records (synth.h),
 * which are appended to the file and processed like the side-band, so that the
 * files of these processes are copied like those of a command.  A helper
 * thread reads /proc, one process at a time.  The rings are drained meanwhile,
 * but without FINISHED_ROUND, because these records are older.
 */
#ifndef SEAM_EXISTING_H
#define SEAM_EXISTING_H

#include "record/session.h"

/* Bytes of records of all processes; beyond it, processes are left out. */
#define SEAM_EXISTING_MAX_BYTES (UINT64_C(256) << 20)

/*
 * Append the records of the kernel, and of those processes to be sampled that
 * run already.  0, or -errno of a write, of memory or of the helper; what was
 * left out is reported to the user.  A drain that fails ends the work; see
 * seam_rounds_failure().
 */
int seam_existing_write(struct seam_session *s, struct seam_err *err);

#endif /* SEAM_EXISTING_H */
