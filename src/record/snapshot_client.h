/* SPDX-License-Identifier: MIT */
/*
 * snapshot_client.h - request a snapshot from a running recorder
 *
 * A recorder is recognized by the file that it writes, NAME.seam/data, and by
 * SIGUSR2 in its mask of blocked signals.  No other process is sent the signal,
 * which would kill it.
 */
#ifndef SEAM_SNAPSHOT_CLIENT_H
#define SEAM_SNAPSHOT_CLIENT_H

#include "base/err.h"

#include <stddef.h>

/*
 * Request a snapshot from the recorder with process id @name, or of that
 * process if a recorder has started it, or from the one that writes the
 * recording @name, and wait for it; its path is copied to @path.
 * -ESRCH: no such recorder; -EINVAL: it makes no snapshots; -ETIMEDOUT: none
 * was made in 30 s.
 */
int seam_snapshot_request(const char *name, char *path, size_t cap,
			  struct seam_err *err);

#endif /* SEAM_SNAPSHOT_CLIENT_H */
