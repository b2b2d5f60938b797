/* SPDX-License-Identifier: MIT */
/* elf_frames.h - the call frame information of a file, for tests */
#ifndef ELF_FRAMES_H
#define ELF_FRAMES_H

#include "symbol/elf/cfi_file.h"

#include <fcntl.h>

/* False where @path is no ELF file with an .eh_frame. */
static inline bool open_frames(struct seam_cfi_file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && seam_cfi_file_open(file, fd, NULL) == 0 &&
	       file->eh.entries.size > 0;
}

#endif /* ELF_FRAMES_H */
