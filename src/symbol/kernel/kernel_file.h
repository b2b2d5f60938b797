/* SPDX-License-Identifier: MIT */
/*
 * kernel_file.h - kernel.sym.zst, bytes and back
 *
 *	file   = skippable frame (zstd format 0.3.9, 3.1.2), zstd frame
 *	frame 1: u32 0x184d2a50, u32 size, then size bytes of lines:
 *		seam-kernel-symbols=1
 *		boot_id=UUID
 *		build_id=HEX
 *		text=HEX		address of _text
 *		modules=HEX		what was loaded, for the cache; see
 *					kernel_cache.h
 *	frame 2: the text of /proc/kallsyms, its size in the frame's header
 *
 * A line is missing when its value was not known; readers skip unknown keys.
 * Both integers are little-endian.
 */
#ifndef SEAM_KERNEL_FILE_H
#define SEAM_KERNEL_FILE_H

#include "symbol/kernel/kernel.h"

struct seam_kernel_file {
	struct seam_kernel_identity identity;
	uint64_t modules;
	struct seam_bytes packed;	/* frame 2; borrowed */
};

/*
 * The bytes of a file for @text.  malloc()ed into *@out, their number in
 * *@out_size.  0 or -ENOMEM.
 */
int seam_kernel_file_write(const struct seam_kernel_file *file,
			   struct seam_bytes text, uint8_t **out,
			   size_t *out_size, struct seam_err *err);

/* Read the first frame.  0, or -EBADMSG, -ENODATA, -ENOTSUP. */
int seam_kernel_file_read(struct seam_kernel_file *file,
			  struct seam_bytes bytes, struct seam_err *err);

/*
 * The text, with room for one more byte after it: malloc()ed.  0, or
 * -EBADMSG, -ENOMEM; at most 256 MiB.
 */
int seam_kernel_file_text(const struct seam_kernel_file *file, char **text,
			  size_t *size, struct seam_err *err);

#endif /* SEAM_KERNEL_FILE_H */
