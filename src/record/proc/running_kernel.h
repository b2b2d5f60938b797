/* SPDX-License-Identifier: MIT */
/*
 * running_kernel.h - the kernel that runs, as a recording puts it down
 *
 * Which one it is says symbol/kernel/kernel.h.  Here is where it lies, for the
 * record of its mapping.
 */
#ifndef SEAM_RUNNING_KERNEL_H
#define SEAM_RUNNING_KERNEL_H

#include "symbol/kernel/kernel.h"

struct seam_running_kernel {
	struct seam_kernel_identity identity;
	uint64_t text_bytes;	/* from _text to the end of the code */
};

/* What cannot be read, or may not be seen, is left zero. */
void seam_running_read(struct seam_running_kernel *kernel);

#endif /* SEAM_RUNNING_KERNEL_H */
