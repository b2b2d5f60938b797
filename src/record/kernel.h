/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - which kernel runs, and where
 *
 * Enough to know later whether a recording's kernel addresses mean what
 * today's kernel calls them; the names themselves are not read here.
 */
#ifndef SEAM_RECORD_KERNEL_H
#define SEAM_RECORD_KERNEL_H

#include "base/base.h"

struct seam_running_kernel {
	char boot_id[64];
	uint8_t build_id[20];
	size_t build_id_size;	/* 0: not known */
	uint64_t text_addr;	/* of _text; 0: hidden from this user */
	uint64_t text_bytes;	/* to the end of the code */
};

/* What cannot be read is left zero. */
void seam_running_kernel_read(struct seam_running_kernel *kernel);

/* The GNU build id in @notes, an ELF note section; its size, 0 for none. */
size_t seam_build_id_in_notes(struct seam_bytes notes, uint8_t id[20]);

#endif /* SEAM_RECORD_KERNEL_H */
