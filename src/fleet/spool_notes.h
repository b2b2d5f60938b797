/* SPDX-License-Identifier: MIT */
/*
 * spool_notes.h - what was in batches that no store will have
 *
 * A note of the spool is a batch file of losses alone: of each event how many
 * samples there were, and the losses that the batch had itself.
 */
#pragma once

#include "fleet/batch_build.h"
#include "fleet/spool.h"

/* Causes of losses: the contexts of seam_spool_note_losses(). */
#define SEAM_SPOOL_FULL "spool full"
#define SEAM_SPOOL_REFUSED "batch refused by the store"
#define SEAM_SPOOL_UNWRITTEN "batch not written to the spool"

/* A seam_spool_note; @cause is text.  0 or -ENOMEM. */
int seam_spool_note_losses(void *cause, struct seam_bytes file,
			   struct seam_bytes *note);

/*
 * Add the losses of @note to @build, as of @ts_ns (UTC).  A note that is
 * damaged is one loss.  0 or -errno.
 */
int seam_spool_note_add(struct seam_fleet_build *build, uint64_t ts_ns,
			struct seam_bytes note, struct seam_err *err);
