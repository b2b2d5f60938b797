/* SPDX-License-Identifier: MIT */
/*
 * own_bundle.h - the bundle that a program without a recorder writes
 *
 *	NAME.seam/meta.json		schema seam.bundle/1 (wire/manifest.h)
 *	NAME.seam/xray/PID.xray		the log of a process
 *	NAME.seam/xray/PID.yaml		names of functions, for llvm-xray too
 *	NAME.seam/xray/PID.events	names of types of events
 *
 * A log is opened at the beginning, when the process has its rights and its
 * descriptors still; it grows, and is valid at any time.  A forked child has
 * its own in the same folder, opened when it has a full chunk, or ends: most
 * children record nothing.  Names are written, and blocks joined
 * (wire/xray/xray_join.h), at the end.  meta.json is written by the process
 * that began the bundle.
 *
 * Descriptors may be closed by the program: before each use the log's is
 * compared with its file, and opened again by its path.
 *
 * Not in a handler: uses malloc.  Threads: one at a time begins or ends; any
 * other may write meanwhile.
 */
#ifndef SEAM_FDR_OWN_BUNDLE_H
#define SEAM_FDR_OWN_BUNDLE_H

#include "traced/fdr/own/own_chunks.h"
#include "traced/fdr/own/source_own.h"

/*
 * Create the folder @path, or replace what a bundle of this kind has in it; and
 * set up seam_fdr_source_own, a flight recorder or a full trace.  NULL as
 * @path: NAME-PID.seam in the current folder.  Called again for another bundle
 * after the end of the one before.  The first one is not replaced while another
 * program writes to it, as the one that started this program with its
 * SEAM_TRACE: it gets one log more.  So does one that @goes_on.
 *
 * Returns 0; -EBUSY while there is one; -EEXIST where @path is anything else;
 * -ENAMETOOLONG; or -errno of what failed.
 */
int seam_fdr_bundle_begin(const char *path, bool is_flight, bool goes_on);

/* Functions have ids: write the names of few, before any is called. */
void seam_fdr_bundle_name(void);

/* Its path, absolute; "": there is none. */
const char *seam_fdr_bundle_path(void);

/*
 * Write what has been recorded so far.  A full trace: to the bundle, and NULL
 * as @path.  A flight recorder: as a new bundle at @path.  0 or -errno.
 */
int seam_fdr_bundle_write(const char *path);

/*
 * Write what is there, names and the manifest.  No sled is patched.  In a
 * child: its own log, if it has recorded anything.  Returns 0, also when there
 * is no bundle; or the first -errno, also of threads that wrote before.
 */
int seam_fdr_bundle_end(void);

#endif /* SEAM_FDR_OWN_BUNDLE_H */
