/* SPDX-License-Identifier: MIT */
/*
 * recording.h - a bundle being written: a recording's own, or a snapshot's
 *
 * Everything that each bundle has: its folder, its perf.data file, its
 * manifest, and counts of the files that were copied into it.  What all
 * bundles of a recording share is in session.h.
 */
#ifndef SEAM_RECORDING_H
#define SEAM_RECORDING_H

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
 * Allocate the space of the next manifest: a full disk must not prevent the
 * last one, which reports it.
 */
int seam_recording_reserve_manifest(struct seam_recording *recording,
				    const struct seam_session *s,
				    struct seam_err *err);

/* Write the current state as the manifest, into the reserved space. */
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

#endif /* SEAM_RECORDING_H */
