/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h - recordings that keep the newest samples only
 *
 * With --overwrite the rings of samples run backward and are never drained:
 * the kernel overwrites the oldest records.  The side-band is drained as usual,
 * into the recording's own file.  A snapshot is a bundle of its own: a copy of
 * that file, and after it the contents of the rings, oldest first, those of
 * programs that overwrite included.  So it can be read without any other
 * bundle.  The recording's own bundle gets what the rings hold at the end.
 *
 * AUX buffers in snapshot mode (-S) are added likewise; without --overwrite
 * the snapshot has all samples so far beside them.
 *
 * The rings are paused while they are copied.  Records that the kernel would
 * have written in those microseconds are lost, and counted as n_paused.
 *
 * FINISHED_ROUND is not written: samples come later in the file than younger
 * side-band records, so readers must sort all of it.
 */
#ifndef SEAM_SNAPSHOT_H
#define SEAM_SNAPSHOT_H

#include "base/err.h"

#include <stddef.h>

struct seam_data_file;
struct seam_session;

/* Append the contents of rings that overwrite to @file.  0 or -errno. */
int seam_snapshot_append(struct seam_session *s, struct seam_data_file *file,
			 struct seam_err *err);

/*
 * Make snapshot number @n, NAME.1.seam beside NAME.seam for 1.  An existing
 * bundle of that name, of an older recording, becomes NAME.1.seam.old.  After
 * a failure there is no bundle, and the recording goes on.
 */
int seam_snapshot_make(struct seam_session *s, unsigned int n,
		       struct seam_err *err);

/* "NAME.3.seam" for "NAME.seam" and 3, into @buf. */
void seam_snapshot_name(char *buf, size_t cap, const char *name,
			unsigned int n);

#endif /* SEAM_SNAPSHOT_H */
