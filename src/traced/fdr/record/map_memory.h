/* SPDX-License-Identifier: MIT */
/*
 * map_memory.h - zeroed memory, which takes room as its pages are used
 *
 * Any thread, in trampolines and handlers too; errno is kept.
 */
#ifndef SEAM_FDR_MAP_MEMORY_H
#define SEAM_FDR_MAP_MEMORY_H

#include <stddef.h>
#include <sys/mman.h>

#include "traced/fdr/record/system.h"

static inline void seam_fdr_unmap(void *p, size_t bytes)
{
	seam_fdr_syscall4(SYS_munmap, (long)p, (long)bytes, 0, 0);
}

/* Page-aligned; NULL: there is none. */
static inline void *seam_fdr_map(size_t bytes)
{
	long p = seam_fdr_syscall6(SYS_mmap, 0, (long)bytes,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   -1, 0);

	/* an address, or -errno */
	return p < 0 ? NULL : (void *)p;
}

/*
 * Memory that a forked child finds zeroed again.  NULL: there is none, or the
 * kernel is older than 4.14.
 */
static inline void *seam_fdr_map_per_process(size_t bytes)
{
	void *p = seam_fdr_map(bytes);

	if (p && seam_fdr_syscall4(SYS_madvise, (long)p, (long)bytes,
				   MADV_WIPEONFORK, 0)) {
		seam_fdr_unmap(p, bytes);
		p = NULL;
	}
	return p;
}

#endif /* SEAM_FDR_MAP_MEMORY_H */
