/* SPDX-License-Identifier: MIT */
/*
 * image_imports.h - the functions of ours that an image calls by name
 *
 * __fentry__ of programs built with -pg -mfentry, which call it at the
 * beginning of each function: through a pointer that the loader sets, by the
 * procedure linkage table, or, where libc is in the program, directly.  And
 * those of seam/fdr.h and -finstrument-functions: such an image has calls to
 * record, though it has no sleds.
 *
 * Not in a handler: uses malloc.  Threads: one at a time.
 */
#ifndef SEAM_FDR_IMAGE_IMPORTS_H
#define SEAM_FDR_IMAGE_IMPORTS_H

#include "traced/fdr/sleds/images.h"

/*
 * Set image->records_itself, and image->code's members of __fentry__, from the
 * dynamic symbols in memory, and the symbols and relocations in @file.  What is
 * damaged has none.
 */
void seam_fdr_find_imports(struct seam_fdr_image *image,
			   const struct seam_image_file *file);

#endif /* SEAM_FDR_IMAGE_IMPORTS_H */
