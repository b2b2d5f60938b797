/* SPDX-License-Identifier: MIT */
/* kept_kernel.c - capture once, link afterwards; see kept_kernel.h */
#include "record/bundle/kept_kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "symbol/kernel/kernel.h"
#include "symbol/kernel/kernel_cache.h"

#define FILE_NAME "kernel.sym.zst"

/* Link the copy.  False: no copy, other modules, another file system. */
static bool link_copy(const struct seam_kept_kernel *kept, int dir)
{
	char path[32];

	if (kept->fd <= 0 || !kept->modules ||
	    kept->modules != seam_kernel_modules())
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", kept->fd);
	return linkat(AT_FDCWD, path, dir, FILE_NAME, AT_SYMLINK_FOLLOW) == 0;
}

int seam_kept_kernel(struct seam_kept_kernel *kept, int dir,
		     struct seam_err *err)
{
	uint64_t modules;
	int r;

	if (link_copy(kept, dir))
		return 0;
	modules = seam_kernel_modules();
	r = seam_kernel_capture(dir, FILE_NAME, err);
	if (r < 0)
		return r;
	seam_kept_kernel_fini(kept);
	kept->fd = openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	kept->modules = modules;
	return 0;
}

void seam_kept_kernel_fini(struct seam_kept_kernel *kept)
{
	if (kept->fd > 0)
		close(kept->fd);
	*kept = (struct seam_kept_kernel) { 0 };
}
