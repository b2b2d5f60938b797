/* SPDX-License-Identifier: MIT */
/*
 * keep.h - files that a later reader could not find, kept in the bundle
 *
 * A mapped file may be deleted or replaced while its program runs, or lie
 * where only a container sees it.  Each file that appears in the side-band is
 * opened when it is first seen, the way the target sees it, and held.  At the
 * end of the recording those that are not where their path says any more are
 * copied to elf/BUILDID in the bundle.  So is the vdso, which has no file.
 *
 * What is held is known by build id: a file that does not carry the one in
 * the record is not taken for it.
 *
 * Nothing here fails a recording; what could not be kept is counted.
 */
#ifndef SEAM_KEEP_H
#define SEAM_KEEP_H

#include "base/array.h"
#include "base/index.h"
#include "record/bundle.h"
#include "record/keep_jit.h"
#include "ring/layout.h"

enum { SEAM_KEEP_BUILD_ID = 20 };

struct seam_kept {
	int fd;			/* -1: it could not be opened */
	uint8_t build_id[SEAM_KEEP_BUILD_ID];
	uint8_t build_id_size;
	char *path;		/* as in the record */
};

/* Zeroed is valid and empty. */
struct seam_keep {
	SEAM_ARRAY(struct seam_kept) files;
	struct seam_index index;	/* of files, by build id and path */
	struct seam_keep_jit jit;
	bool saw_vdso;
	uint8_t vdso_build_id[SEAM_KEEP_BUILD_ID];
	size_t vdso_build_id_size;	/* 0: not kept */

	uint64_t n_copied;
	uint64_t n_copied_bytes;
	uint64_t n_too_large;	/* beyond what a bundle takes in */
	uint64_t n_missed;	/* gone before they could be opened */
	uint64_t n_failed;	/* could not be written */
};

/* Look at a side-band record, whole and in one piece. */
void seam_keep_see(struct seam_keep *keep,
		   const struct seam_ring_header *record);

/* Copy what its path does not lead to any more. */
void seam_keep_finish(struct seam_keep *keep,
		      const struct seam_bundle *bundle);

void seam_keep_fini(struct seam_keep *keep);

#endif /* SEAM_KEEP_H */
