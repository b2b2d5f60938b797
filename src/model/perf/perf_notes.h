/* SPDX-License-Identifier: MIT */
/* perf_notes.h - losses and notes of a profile that was read from perf.data */
#ifndef SEAM_PERF_NOTES_H
#define SEAM_PERF_NOTES_H

#include "model/perf/sideband.h"

/* Add what @scan could not read. */
void seam_perf_note_damage(struct seam_profile *profile,
			   const struct seam_perf_scan *scan);

/*
 * Add the losses that the side-band and the header report.  Of the records,
 * @n_paused were lost while a snapshot was copied.
 */
void seam_perf_note_losses(const struct seam_sideband *sideband,
			   uint64_t n_paused);

#endif /* SEAM_PERF_NOTES_H */
