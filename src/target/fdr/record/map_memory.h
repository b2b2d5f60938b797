/* SPDX-License-Identifier: MIT */
/*
 * map_memory.h - zeroed memory, which takes room as its pages are used
 *
 * Any thread, in handlers too; errno may change.
 */
#ifndef SEAM_FDR_MAP_MEMORY_H
#define SEAM_FDR_MAP_MEMORY_H

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

/* Page-aligned; NULL: there is none.  Freed by munmap(2). */
static inline void *seam_fdr_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/*
 * Memory that a forked child finds zeroed again.  NULL, with errno: ENOMEM, or
 * ENOSYS before Linux 4.14.
 */
static inline void *seam_fdr_map_per_process(size_t bytes)
{
	void *p = seam_fdr_map(bytes);

	if (p && madvise(p, bytes, MADV_WIPEONFORK)) {
		munmap(p, bytes);
		errno = ENOSYS;
		p = NULL;
	}
	return p;
}

#endif /* SEAM_FDR_MAP_MEMORY_H */
