/* SPDX-License-Identifier: MIT */
/*
 * debug_file.h - the separate debug file of a file that a process has mapped
 *
 * Where gdb looks for it, as the process sees it: by build id, and by the name
 * in .gnu_debuglink beside the file, in .debug/ beside it, and below
 * /usr/lib/debug.
 *
 * Source: gdb's manual, "Debugging Information in Separate Files".
 */
#ifndef SEAM_DEBUG_FILE_H
#define SEAM_DEBUG_FILE_H

#include <limits.h>

#include "record/proc/mapped_file.h"
#include "symbol/elf/cfi_file.h"

/*
 * The @i-th path to try for the debug file of the file at @mapped, which has
 * @link.  False: there are no more.
 */
bool seam_debug_file_path(size_t i, const char *mapped,
			  const struct seam_file_identity *identity,
			  const struct seam_debug_link *link,
			  char path[PATH_MAX]);

#endif /* SEAM_DEBUG_FILE_H */
