/* SPDX-License-Identifier: MIT */
/*
 * debug_file.h - the separate debug file of a file that a process has mapped
 *
 * Where gdb looks for it, as the process sees it, and opened with the rights of
 * its user (target_file.h): by build id, and by the name in .gnu_debuglink
 * beside the file, in .debug/ beside it, and below /usr/lib/debug.  It is the
 * file's if it has its build id; of a file without one, by the CRC in
 * .gnu_debuglink.
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

/*
 * Open the debug file of @fd, which is mapped as @mapping says.  A descriptor,
 * or -ENOENT.  Only in a helper.
 */
int seam_debug_file_open(const struct seam_file_mapping *mapping, int fd,
			 const struct seam_file_identity *identity);

#endif /* SEAM_DEBUG_FILE_H */
