/* SPDX-License-Identifier: MIT */
/*
 * finish_bundle.h - copy what readers need into the bundle of a recording
 *
 * seam_recording_add_files(), at the end of a recording or for a snapshot,
 * copies the kernel's symbols, the files of kept_files.h, and the dumps and
 * maps of JITs.  Files left out are reported by cause, and counted in the
 * manifest.
 */
#ifndef SEAM_FINISH_BUNDLE_H
#define SEAM_FINISH_BUNDLE_H

#include "record/recording.h"
#include "wire/manifest.h"

/* The counts as the manifest has them. */
struct seam_manifest_kept seam_kept_manifest(
	const struct seam_kept_files_counts *counts);

#endif /* SEAM_FINISH_BUNDLE_H */
