/* SPDX-License-Identifier: MIT */
/*
 * kept_kernel.h - one copy of the kernel's symbols for all of a recording
 *
 * Each snapshot is a recording of its own and has the symbols of the kernel.
 * All but the first are hard links to one file, as long as no module is loaded
 * or unloaded.
 */
#ifndef SEAM_KEPT_KERNEL_H
#define SEAM_KEPT_KERNEL_H

#include "base/base.h"
#include "base/err.h"

struct seam_kept_kernel {
	int fd;			/* of the newest copy; 0: none yet */
	uint64_t modules;	/* hash of those loaded then; 0: not known */
};

/*
 * Put the symbols of the running kernel into folder @dir as
 * kernel.sym.zst.  0 or -errno, as seam_kernel_capture().
 */
int seam_kept_kernel(struct seam_kept_kernel *kept, int dir,
		     struct seam_err *err);

/* Valid on a zeroed one. */
void seam_kept_kernel_fini(struct seam_kept_kernel *kept);

#endif /* SEAM_KEPT_KERNEL_H */
