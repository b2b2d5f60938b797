/* SPDX-License-Identifier: MIT */
/*
 * flight_bundle.h - the bundles of a program that keeps a flight recorder
 *
 * They are written by a recorder that the library starts for that moment
 * (recorder.h): the program announces its functions, and copies its areas into
 * a ring.  So no thread that records does anything for it.
 *
 * A forked child has a bundle of its own, NAME-PID.seam for NAME.seam.
 *
 * Not in a handler: uses malloc.  Threads: any; -EBUSY while another one
 * writes for more than 10 s.
 */
#ifndef SEAM_FDR_FLIGHT_BUNDLE_H
#define SEAM_FDR_FLIGHT_BUNDLE_H

/*
 * The bundle will be at @path, absolute; forget what was recorded before.  0;
 * -EBUSY while there is one; -EACCES or such where no folder can be made there.
 */
int seam_fdr_flight_begin(const char *path);

/* Its path; "": there is none. */
const char *seam_fdr_flight_path(void);

/*
 * Write the newest calls of all threads as a bundle at @folder.  0; -EINVAL:
 * @folder is NULL or the recording's own; or as seam_fdr_recorder_start().
 */
int seam_fdr_flight_snapshot(const char *folder);

/*
 * Write them to the bundle, unless this is a child that has none.
 * seam_fdr_flight_end() ends it.  0, also where there is no bundle, or the
 * first -errno.
 */
int seam_fdr_flight_write(void);
int seam_fdr_flight_end(void);

#endif /* SEAM_FDR_FLIGHT_BUNDLE_H */
