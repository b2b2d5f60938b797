/* SPDX-License-Identifier: MIT */
/*
 * kernel_cache.h - a cache of the running kernel's compressed symbols
 *
 * Reading and compressing them takes 50 ms at the end of every recording,
 * and they rarely change.  One file in the user's cache folder holds
 * them and what they are valid for: the kernel, its boot, the modules and BPF
 * programs that were loaded.
 *
 * The folder must be the user's own and closed to other users, because names
 * in a recording come from it.  Without a trusted folder there is no cache,
 * and that is no error.
 */
#ifndef SEAM_KERNEL_CACHE_H
#define SEAM_KERNEL_CACHE_H

#include "base/file.h"
#include "symbol/kernel/kernel_file.h"

/*
 * A number for the modules and BPF programs that are loaded now, never 0; 0
 * when it cannot be known, and then nothing may be cached.
 */
uint64_t seam_kernel_modules(void);

/*
 * The file for this kernel and these modules, whole.  False when there is
 * none.  seam_file_close() frees it.
 */
bool seam_kernel_cache_read(struct seam_file *file,
			    const struct seam_kernel_identity *identity,
			    uint64_t modules);

/* Cache @bytes, a whole file; replaces an older one. */
void seam_kernel_cache_write(struct seam_bytes bytes);

#endif /* SEAM_KERNEL_CACHE_H */
