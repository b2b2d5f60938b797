/* SPDX-License-Identifier: MIT */
/*
 * finish_bundle.h - the end of a recording: what readers need is put into its bundle
 *
 * The kernel's symbols, the files that kept_files.h holds, the dumps and maps of
 * JITs; and what is told of those that were left out, by cause.
 */
#ifndef SEAM_FINISH_BUNDLE_H
#define SEAM_FINISH_BUNDLE_H

#include "record/recording.h"
#include "wire/manifest.h"

/* What the manifest says of it. */
struct seam_manifest_kept seam_kept_manifest(
	const struct seam_kept_files_counts *counts);

#endif /* SEAM_FINISH_BUNDLE_H */
