/* SPDX-License-Identifier: MIT */
/*
 * image_debug.h - the separate debug file of an image that was loaded
 *
 * The debug file has the symbols that strip(1) took out of the image's file.
 * As gdb does, look for it by build id, and by the name in .gnu_debuglink
 * beside the file, in .debug/ there, and below /usr/lib/debug.
 *
 * The build ids have to be equal: the CRC in .gnu_debuglink is of a whole file,
 * which may have gigabytes, and the program would wait.  The debug file has to
 * belong to root, to this process' user, or to the owner of the image's file,
 * as anybody may put a file beside a program in /tmp.
 *
 * Not in a handler: it opens files and allocates.
 *
 * Source: gdb's manual, "Debugging Information in Separate Files".
 */
#ifndef SEAM_IMAGE_DEBUG_H
#define SEAM_IMAGE_DEBUG_H

#include "traced/elf/image_file.h"

/*
 * Open the debug file, one with a symbol table, of @file, whose image has the
 * build id @id.  @path is where @file is; NULL: look by build id alone.  False:
 * there is none, and nothing is open.
 */
bool seam_image_debug_open(struct seam_image_file *debug,
			   const struct seam_image_file *file, const char *path,
			   const uint8_t *id, size_t id_bytes);

#endif /* SEAM_IMAGE_DEBUG_H */
