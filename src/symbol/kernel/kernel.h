/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - the symbols of a kernel, saved with a recording of it
 *
 * A kernel's symbols are valid for one boot: KASLR moves it, modules are
 * loaded and unloaded.  The recorder therefore saves them with the recording.
 * A reader uses these, or the running kernel's, only when they are of the
 * recorded kernel.
 *
 * The file is /proc/kallsyms, compressed: 'zstd -dc kernel.sym.zst' prints
 * it, and 'perf report --kallsyms' takes that.
 *
 *	file   = skippable frame (zstd format 0.3.9, 3.1.2), zstd frame
 *	frame 1: u32 0x184d2a50, u32 size, then size bytes of lines:
 *		seam-kernel-symbols=1
 *		boot_id=UUID
 *		build_id=HEX
 *		text=HEX		address of _text
 *		modules=HEX		what was loaded, for the cache
 *	frame 2: the text of /proc/kallsyms, its size in the frame's header
 *
 * A line is missing when its value was not known; readers skip unknown keys.
 * Both integers are little-endian.
 */
#pragma once

#include "symbol/elf/elf_file.h"
#include "symbol/elf/module.h"
#include "symbol/elf/symtab.h"

enum { SEAM_BOOT_ID_TEXT = 37 };	/* a UUID and its NUL */

/* Which kernel, in which boot. */
struct seam_kernel_identity {
	char boot_id[SEAM_BOOT_ID_TEXT];	/* "" when not known */
	uint8_t build_id[SEAM_BUILD_ID_MAX];
	size_t build_id_size;			/* 0 when not known */
	uint64_t text_addr;	/* of _text; 0 when it may not be seen */
};

/* The id of this boot; "" when not known. */
void seam_kernel_boot_id(char boot_id[SEAM_BOOT_ID_TEXT]);

/* The build id of the running kernel; returns its size, 0 for none. */
size_t seam_kernel_build_id(uint8_t id[SEAM_BUILD_ID_MAX]);

/*
 * The running kernel.  Reads /proc/kallsyms only up to _text: some 0.1 ms.
 * Parts that are missing, or hidden from this user, are left empty.  0,
 * -ENOMEM, or -errno where /proc/kallsyms cannot be read for another reason.
 */
int seam_kernel_identify(struct seam_kernel_identity *identity,
			 struct seam_err *err);

/*
 * Write the running kernel's symbols as file @name in folder @dirfd, which
 * must not have one.  0, or -errno: -EPERM with the sysctl that would change
 * it when the kernel shows no addresses to this user.
 *
 * Cost: 55 ms; 1 ms when an earlier call left them in the user's cache
 * ($XDG_CACHE_HOME/seam or ~/.cache/seam, if that is the user's alone) and no
 * module or BPF program has come or gone.
 */
int seam_kernel_capture(int dirfd, const char *name, struct seam_err *err);

/* A loaded kernel.  Zeroed is valid and empty. */
struct seam_kernel_symbols {
	struct seam_symtab table;	/* addresses are those of the kernel */
	char *text;			/* the names; owned */
};

/*
 * The symbols of the kernel @kernel: from kernel.sym.zst in folder @bundle
 * (NULL: none), or from the running one if it is the same.  0, or -errno and
 * the reason.
 */
int seam_kernel_load(struct seam_kernel_symbols *symbols, const char *bundle,
		     const struct seam_kernel *kernel, struct seam_err *err);

void seam_kernel_close(struct seam_kernel_symbols *symbols);

/*
 * A number for the modules and BPF programs that are loaded now, never 0; 0
 * when it cannot be known, and then nothing may be cached.
 */
uint64_t seam_kernel_modules(void);
