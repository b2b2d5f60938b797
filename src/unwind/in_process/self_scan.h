/* SPDX-License-Identifier: MIT */
/*
 * self_scan.h - which images the dynamic loader has mapped
 *
 * dl_iterate_phdr() lists them under the loader's lock, which a dlopen() of
 * the program waits for, and a fork must not copy (self_fork.h).  So only the
 * list is made under it; call frame information is copied afterwards, by reads
 * that do not fault, and the copies are used if nothing was unloaded meanwhile.
 *
 * Images of other link-map namespaces (dlmopen) are not listed.
 *
 * Source: dl_iterate_phdr(3); System V gABI 4.1, "Program Header".
 */
#ifndef SEAM_SELF_SCAN_H
#define SEAM_SELF_SCAN_H

#include "unwind/in_process/self_images.h"
#include "wire/eh_frame.h"

enum {
	SEAM_SELF_MAX_IMAGES = 4096,
	SEAM_SELF_MAX_SEGMENTS = 8,
	SEAM_SELF_MAX_FRAME = 256 << 20,	/* bytes of .eh_frame */
};

/* Addresses and sizes in the file. */
struct seam_self_segment {
	uint64_t addr, bytes, offset;
};

struct seam_self_found {
	uint64_t start, end;		/* of its executable segments */
	uint64_t bias;
	uint64_t entry;			/* as loaded; 0: not known */
	/* Of the set of images that is current; NULL: the image is new. */
	const struct seam_self_image *same;
	struct seam_self_segment readable[SEAM_SELF_MAX_SEGMENTS];
	size_t n_readable;
	/* Addresses and sizes in the file; what was copied is at .copy. */
	uint64_t header_addr, frame_addr;
	size_t header_bytes, frame_bytes;
	size_t copy;
};

/* Zeroed is valid and empty. */
struct seam_self_scan {
	struct seam_self_loads loads;
	struct seam_self_found *found;
	size_t n;
	uint8_t *copies;
	size_t n_copied, room;
};

/* Whether an image was loaded or unloaded since @current, or it is NULL. */
bool seam_self_scan_differs(const struct seam_self_images *current);

/*
 * List the images and copy what is new.  @current: those of the last time, or
 * NULL.  0; -ENOMEM; -EAGAIN where some were unloaded at each attempt.
 */
int seam_self_scan(struct seam_self_scan *scan,
		   const struct seam_self_images *current);

/* The call frame information of an image that is new; size 0: it has none. */
struct seam_eh_frame
seam_self_scan_frame(const struct seam_self_scan *scan,
		     const struct seam_self_found *found);

void seam_self_scan_fini(struct seam_self_scan *scan);

#endif /* SEAM_SELF_SCAN_H */
