/* SPDX-License-Identifier: MIT */
/*
 * kernel_code.h - the machine code of a kernel that was recorded
 *
 * From the first of
 *
 *	SYMFS/vmlinux*, and below each SYMFS and "/":
 *	usr/lib/debug/boot/vmlinux-*, boot/vmlinux-*,
 *	usr/lib/debug/lib/modules/X/vmlinux, lib/modules/X/build/vmlinux,
 *	usr/lib/debug/.build-id/xx/rest.debug
 *			a file with the recorded build id, moved to where the
 *			kernel was (KASLR)
 *	/proc/kcore	the memory of the running kernel, if it is the one that
 *			was recorded: modules and BPF programs too, and code as
 *			it was patched at run time; for root
 */
#pragma once

#include "base/err.h"
#include "symbol/elf/module.h"

/*
 * Give the paths where a vmlinux file may be to @add, in the order above.  For
 * a process that can read folders; @kernel has a build id.
 */
void seam_vmlinux_find(const struct seam_symbols_options *options,
		       const struct seam_kernel *kernel,
		       void (*add)(void *context, const char *path),
		       void *context);

/*
 * Read @size bytes of code at @addr of @kernel, which has a build id and
 * text_addr, from the file at @path: for a sandboxed process.  0; -ENOENT when
 * the file is not of that kernel, and where there is one @err says so; or
 * another error.
 */
int seam_vmlinux_code(const struct seam_kernel *kernel, const char *path,
		      uint64_t addr, uint8_t *buf, size_t size,
		      struct seam_machine *machine, struct seam_err *err);

/*
 * The same from /proc/kcore, after vmlinux files gave error @file.  0, or
 * -errno, and @err has what was tried and what would help.
 */
int seam_kernel_core_code(const struct seam_kernel *kernel,
			  const struct seam_err *file, uint64_t addr,
			  uint8_t *buf, size_t size,
			  struct seam_machine *machine, struct seam_err *err);
