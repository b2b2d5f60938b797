/* SPDX-License-Identifier: MIT */
/* own_manifest.h - meta.json of a bundle that the program writes */
#ifndef SEAM_FDR_OWN_MANIFEST_H
#define SEAM_FDR_OWN_MANIFEST_H

#include "base/tsc.h"
#include "traced/fdr/own/own_chunks.h"

/*
 * Write meta.json (wire/manifest.h) in @folder, of a recording that began at
 * @start.  @counts NULL: it goes on.  0 or -errno, and what was there before
 * stays.  Not in handlers: uses malloc.
 */
int seam_fdr_manifest_write(const char *folder,
			    const struct seam_tsc_tie *start, bool is_flight,
			    const struct seam_fdr_own_counts *counts);

#endif /* SEAM_FDR_OWN_MANIFEST_H */
