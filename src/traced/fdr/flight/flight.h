/* SPDX-License-Identifier: MIT */
/*
 * flight.h - the newest calls of each thread, in the program's memory, and
 * their bundles
 *
 * For a program that keeps a flight recorder and has no recorder
 * (doc/design/standalone.md).  An area overwrites itself; the area of a thread
 * that has ended stays until another thread needs an area.  Bundles are written
 * by a recorder that the library starts for that moment (recorder.h).
 *
 * A forked child has recorded nothing, and has a bundle of its own,
 * NAME-PID.seam for NAME.seam.
 *
 * Not in a handler: uses malloc.  Threads: any, while others record; -EBUSY
 * while another thread writes for more than 10 s.
 */
#pragma once

#include "traced/fdr/record/source.h"

extern const struct seam_fdr_source seam_fdr_source_flight;

/*
 * Before sleds are patched: the bundle will be at @path, absolute; forget what
 * was recorded before.  While there is a bundle it stays.  0; -ENOMEM, also
 * before Linux 4.14.
 */
int seam_fdr_flight_begin(const char *path);

/*
 * Write the newest calls of all threads to the bundle, unless this is a child
 * that has recorded nothing.  If @ends, snapshots are no longer possible.  0,
 * also where there is no bundle; or the first -errno.
 */
int seam_fdr_flight_write(bool ends);
