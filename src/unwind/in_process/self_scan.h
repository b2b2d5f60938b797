/* SPDX-License-Identifier: MIT */
/*
 * self_scan.h - code and call frame information of a loaded image
 *
 * Reads do not fault: the image may be unloaded meanwhile, and what was read
 * is used only if the loader has unloaded nothing since it listed the image.
 *
 * Source: System V gABI 4.1, "Program Header".
 */
#ifndef SEAM_SELF_SCAN_H
#define SEAM_SELF_SCAN_H

#include "unwind/in_process/loaded_images.h"
#include "wire/eh_frame.h"

enum { SEAM_SELF_MAX_FRAME = 256 << 20 };	/* bytes of .eh_frame */

/* The bounds of its executable segments, as loaded; false: there is none. */
bool seam_self_scan_code(const struct seam_loaded_image *image,
			 uint64_t *start, uint64_t *end);

/* The entry point, as loaded; 0: not known. */
uint64_t seam_self_scan_entry(const struct seam_loaded_image *image);

/* A copy; .frame.entries.size 0: the image has no call frame information. */
struct seam_self_frame {
	struct seam_eh_frame frame;
	void *pages;
	size_t n_pages_bytes;
};

/* 0, or -ENOMEM and nothing to free. */
int seam_self_scan_frame(const struct seam_loaded_image *image,
			 struct seam_self_frame *copy);

void seam_self_frame_fini(struct seam_self_frame *copy);

#endif /* SEAM_SELF_SCAN_H */
