/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h - recordings that keep the newest samples only
 *
 * With --overwrite the rings of samples run backward and are never drained:
 * the kernel writes the newest over the oldest.  The side-band is drained as
 * ever, into the recording's own file.  A snapshot is a bundle of its own:
 * that file as it is by then, and behind it what the rings hold, oldest
 * first.  So it needs no other to be read.  The recording's own bundle gets
 * what the rings hold at the end.
 *
 * AUX areas that run free (-S) are in a snapshot likewise; without
 * --overwrite it has all samples until then beside them.
 *
 * The rings are paused while they are copied.  What would have come in those
 * microseconds is lost, counted and told (n_paused in record.h).
 *
 * No FINISHED_ROUND is written: samples come later in the file than younger
 * names, so that readers must sort all of it.
 */
#ifndef SEAM_SNAPSHOT_H
#define SEAM_SNAPSHOT_H

#include "record/session.h"

/* Append what the rings hold to the recording's own file.  0 or -errno. */
int seam_snapshot_append(struct seam_session *s, struct seam_err *err);

/*
 * Make the next snapshot: NAME.1.seam beside NAME.seam, then NAME.2.seam.
 * One of that name, of an older recording, becomes NAME.1.seam.old.  A
 * failure leaves no bundle, and the recording goes on.
 */
int seam_snapshot_snapshot(struct seam_session *s, struct seam_err *err);

/* "NAME.3.seam" for "NAME.seam" and 3, into @buf. */
void seam_snapshot_name(char *buf, size_t cap, const char *name, unsigned int n);

#endif /* SEAM_SNAPSHOT_H */
