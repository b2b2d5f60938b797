/* SPDX-License-Identifier: MIT */
/*
 * keep_kernel.h - one copy of the kernel's symbols for all of a recording
 *
 * Each snapshot is a recording of its own and has the symbols of the kernel
 * in it.  They are the same file: all but the first are hard links to it, as
 * long as no module comes or goes.
 */
#ifndef SEAM_KEEP_KERNEL_H
#define SEAM_KEEP_KERNEL_H

#include "base/base.h"
#include "base/err.h"

struct seam_keep_kernel {
	int fd;			/* of the newest copy; 0: none yet */
	uint64_t modules;	/* what was loaded then; 0: not known */
};

/*
 * Put the symbols of the running kernel into folder @dir as
 * kernel.sym.zst.  0 or -errno, as seam_kernel_capture().
 */
int seam_keep_kernel(struct seam_keep_kernel *kept, int dir,
		     struct seam_err *err);

/* Valid on a zeroed one. */
void seam_keep_kernel_fini(struct seam_keep_kernel *kept);

#endif /* SEAM_KEEP_KERNEL_H */
