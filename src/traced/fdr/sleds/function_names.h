/* SPDX-License-Identifier: MIT */
/*
 * function_names.h - the names of functions, by their addresses
 *
 * From .symtab of the image's file; where strip(1) took .symtab away, of the
 * debug file; else from .dynsym.  The symbols are read anew for each call.
 *
 * Not in a handler.
 */
#pragma once

#include "traced/fdr/sleds/images.h"

/*
 * Call @on_name for each name of each function of @image that begins at one of
 * the @n @addresses: @function is an index of @addresses.  Ends at the first
 * call that does not return 0, with its result.  Else 0; -ENOENT where the file
 * has no symbols; -ENOMEM; or as seam_fdr_image_open().
 */
int seam_fdr_names_each(const struct seam_fdr_image *image,
			const uint64_t *addresses, size_t n,
			int (*on_name)(void *context, uint32_t function,
				       const char *name),
			void *context);

struct seam_fdr_addresses {
	uint64_t *items;
	size_t n, cap;
};

/*
 * Where the functions of @image begin, in the order of its symbols, some more
 * than once; the caller frees the items.  0; or as above.
 */
int seam_fdr_names_addresses(const struct seam_fdr_image *image,
			     struct seam_fdr_addresses *addresses);

/*
 * ---- the debug file, with the symbols that strip(1) took out ----
 *
 * As gdb does, look for it by build id, and by the name in .gnu_debuglink
 * beside the file, in .debug/ there, and below /usr/lib/debug.
 *
 * The build ids have to be equal: the CRC in .gnu_debuglink is of a whole file,
 * which may have gigabytes, and the program would wait.  The debug file has to
 * belong to root, to this process' user, or to the owner of the image's file,
 * as anybody may put a file beside a program in /tmp.
 */

/*
 * Open the debug file, one with a symbol table, of @file, whose image has the
 * build id @id.  @path is where @file is; NULL: look by build id alone.  False:
 * there is none, and nothing is open.
 */
bool seam_image_debug_open(struct seam_image_file *debug,
			   const struct seam_image_file *file, const char *path,
			   const uint8_t *id, size_t id_bytes);
