/* SPDX-License-Identifier: MIT */
/*
 * memory_limit.h - a limit of the program's memory, and whether it ran out
 *
 * The limit is RLIMIT_DATA: the heap and all private writable mappings count,
 * those of libraries too.  Mapped input files do not count, because the kernel
 * can reclaim their pages.  Allocations beyond it fail, which all code here
 * handles.
 *
 * Some failures lose no more than a name and are not passed up: a failed
 * allocation of base's containers is also remembered, for a report at the end.
 */
#pragma once

#include "base/base.h"

/*
 * Allow @bytes in all; 0: three quarters of the machine's memory.  A lower
 * RLIMIT_DATA stays.  For main(), before threads.
 */
void seam_memory_limit(uint64_t bytes);

/* The current limit; UINT64_MAX when there is none. */
uint64_t seam_memory_limited(void);

/* Note that an allocation failed.  Any thread.  Returns NULL. */
void *seam_memory_refused(void);

/* Whether any allocation failed. */
bool seam_memory_ran_out(void);
