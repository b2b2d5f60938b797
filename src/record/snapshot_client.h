/* SPDX-License-Identifier: MIT */
/*
 * snapshot_client.h - ask a recorder that runs for a snapshot
 *
 * A recorder is known by the file it writes, NAME.seam/data, and by its
 * blocking SIGUSR2, which would end any other process; only such a one gets
 * the signal.
 */
#ifndef SEAM_SNAPSHOT_CLIENT_H
#define SEAM_SNAPSHOT_CLIENT_H

#include "base/err.h"

#include <stddef.h>

/*
 * Ask the recorder with process id @who, or the one that writes the
 * recording @who, and wait for the snapshot; its path comes into @path.
 * -ESRCH: no such recorder; -EINVAL: it makes none; -ETIMEDOUT:
 * nothing came in 30 s.
 */
int seam_snapshot_request(const char *who, char *path, size_t cap,
		      struct seam_err *err);

#endif /* SEAM_SNAPSHOT_CLIENT_H */
