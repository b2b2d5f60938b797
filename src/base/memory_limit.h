/* SPDX-License-Identifier: MIT */
/*
 * memory_limit.h - how much memory the program may take, and if it ran out
 *
 * The limit is the kernel's own, RLIMIT_DATA: the heap and all private
 * writable memory count, of every library too, and no way of getting some
 * goes round it.  Mapped input files do not count, because their pages can
 * be given back.  Beyond it, allocations fail, which all code here handles.
 *
 * Some failures lose no more than a name or a line and are not passed up.
 * So a failed allocation of base's containers is also remembered, and the
 * program reports at the end that its output is incomplete.
 */
#ifndef SEAM_MEMORY_LIMIT_H
#define SEAM_MEMORY_LIMIT_H

#include "base/base.h"

/*
 * Allow @bytes in all; 0: three quarters of the machine's memory.  A lower
 * limit that is in force already stays.  For main(), before threads.
 */
void seam_memory_limit(uint64_t bytes);

/* The limit that is in force; UINT64_MAX when there is none. */
uint64_t seam_memory_limited(void);

/* An allocation failed.  Any thread.  Returns NULL, for a return. */
void *seam_memory_refused(void);

/* Whether any has. */
bool seam_memory_ran_out(void);

#endif /* SEAM_MEMORY_LIMIT_H */
