/* SPDX-License-Identifier: MIT */
/* build_id.h - what identifies an untrusted ELF file */
#pragma once

#include "base/base.h"

/*
 * The GNU build id of the file open at @fd, from the notes that its program
 * headers name, as the kernel finds it.  The file begins at @base: not 0 where
 * @fd is the memory that a file is mapped in.  Returns the id's size, 0 for
 * none.  The descriptor's position is not touched.
 */
size_t seam_build_id_read(int fd, uint64_t base, uint8_t id[20]);

/*
 * What identifies a file without a GNU build id, wherever the file is and
 * whatever its times are: a hash of the build id of the Go tools, or of the
 * file's size, its first and last bytes and those of its code.  0: the file
 * cannot be read.  The
 * descriptor's position is not touched.  Cost: at most 1 MiB is read.
 */
uint64_t seam_content_id_read(int fd);

/*
 * This process's vdso, of up to 64 KiB and with its build id in @id: the kernel
 * gives all processes of 64 bits the same.  Empty where one is missing.
 */
struct seam_bytes seam_own_vdso(uint8_t id[20], size_t *id_size);
