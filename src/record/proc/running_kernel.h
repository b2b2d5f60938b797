/* SPDX-License-Identifier: MIT */
/*
 * running_kernel.h - identity and address range of the running kernel
 *
 * For the manifest, and for the MMAP2 record of the kernel's text.
 */
#ifndef SEAM_RUNNING_KERNEL_H
#define SEAM_RUNNING_KERNEL_H

#include "symbol/kernel/kernel.h"

struct seam_running_kernel {
	struct seam_kernel_identity identity;
	uint64_t text_bytes;	/* from _text to the end of the code */
};

/* Values that this user may not read are 0. */
void seam_running_kernel_read(struct seam_running_kernel *kernel);

#endif /* SEAM_RUNNING_KERNEL_H */
