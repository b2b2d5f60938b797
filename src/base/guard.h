/* SPDX-License-Identifier: MIT */
/*
 * guard.h - a mapped file that shrinks while it is read
 *
 * Reading a mapping beyond the end of its file raises SIGBUS, as does a disk
 * that cannot be read, in any thread.  The handler maps zeros over the rest of
 * that mapping, and the reader goes on: each of our readers accepts any bytes.
 * The program checks seam_guard_tripped() at the end and reports it.
 */
#pragma once

#include "base/base.h"

/*
 * Handle SIGBUS from here on.  For a program's main(), once; a SIGBUS that
 * is not about a guarded mapping ends the process as without it.
 */
void seam_guard_install(void);

/*
 * @mapped, which begins at a page boundary, is guarded until it is removed,
 * which must be before munmap().  Any thread.  With 4096 guarded mappings,
 * further ones are not guarded.
 */
void seam_guard_add(struct seam_bytes mapped);
void seam_guard_remove(struct seam_bytes mapped);

/* How many mappings had pages that could not be read. */
unsigned int seam_guard_tripped(void);
