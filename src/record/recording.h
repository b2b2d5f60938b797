/* SPDX-License-Identifier: MIT */
/*
 * recording.h - a bundle being written: a recording's own, or a snapshot's
 *
 * Everything that each bundle has: its folder, its perf.data file, its
 * manifest, and counts of the files that were copied into it.  What all
 * bundles of a recording share is in session.h.
 */
#pragma once

#include "record/bundle/bundle.h"
#include "record/bundle/kept_files.h"
#include "record/perf/data_file.h"
#include "wire/manifest.h"

struct seam_session;

struct seam_recording {
	struct seam_bundle bundle;
	struct seam_data_file data;
	int meta;		/* descriptor of the next manifest; or -1 */
	bool is_snapshot;	/* the recording goes on */
	bool skipped;		/* files for symbols were not copied */
	uint64_t duration_ns;	/* of the recording; 0: not yet known */
	struct seam_kept_files_counts kept;
};

void seam_recording_init(struct seam_recording *recording);

/*
 * Write the current state as the manifest.  Unless the state @is_complete,
 * space is reserved for the next manifest: a full disk must not prevent the
 * last one, which reports the full disk.
 */
int seam_recording_write_manifest(struct seam_recording *recording,
				  const struct seam_session *s,
				  bool is_complete, struct seam_err *err);

/* End the perf.data file with its features. */
int seam_recording_write_features(struct seam_recording *recording,
				  const struct seam_session *s,
				  struct seam_err *err);

/* The manifest so far, without its lists; counts are of programs too. */
struct seam_manifest seam_recording_describe(
	const struct seam_recording *recording, const struct seam_session *s);

/*
 * Copy the files that symbols will be looked up in: the kernel's symbols,
 * which change with a reboot, and files that cannot be found by path later.
 */
void seam_recording_add_files(struct seam_recording *recording,
			      struct seam_session *s);

void seam_recording_fini(struct seam_recording *recording);

/* A recording that failed: close its files and remove its bundle. */
void seam_recording_remove(struct seam_recording *recording);

/*
 * ---- snapshots ----
 *
 * With --overwrite the rings of samples run backward and are never drained:
 * the kernel overwrites the oldest records.  A snapshot is a bundle of its own:
 * a copy of the recording's file, with the side-band, and after it the contents
 * of the rings and of AUX buffers in snapshot mode (-S), oldest first.  The
 * recording's own bundle gets what the rings hold at the end.
 *
 * The rings are paused while they are copied; records of that time are lost,
 * and counted.  Samples come later in the file than younger side-band records,
 * so FINISHED_ROUND is not written: readers must sort all of it.
 *
 * Copies of stacks stay in the rings until then, and are unwound with the
 * mappings of now, but for those that are younger than the sample.
 */

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
