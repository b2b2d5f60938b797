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
#ifndef SEAM_KERNEL_H
#define SEAM_KERNEL_H

#include "base/file.h"
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

/* ---- the file, in bytes ---- */

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

/* ---- the text ---- */

/*
 * Add the functions (t T w W) that @text of @size bytes names, in the form of
 * /proc/kallsyms; other symbols only end them.  Without @modules those in
 * [brackets] are left out: their addresses are true for one boot, while those
 * of the kernel itself are true wherever _text is the same.
 *
 * @text is changed, a NUL after each name, and must outlive the table;
 * text[size] must be there to be written.  Lines that are not of this form
 * are skipped, and so are addresses of 0, which this user may not see.
 *
 * Returns how many functions the text has, or -ENOMEM.  Of several at one
 * address the table keeps the last.  Sorts the table.
 */
ptrdiff_t seam_kallsyms_read(struct seam_symtab *table, char *text, size_t size,
			     bool modules);

/* ---- the cache ---- */

/*
 * Reading and compressing takes 50 ms at the end of every recording, and the
 * symbols rarely change.  One file in a folder that is the user's own, and
 * closed to other users, holds them and what they are valid for.  Without such
 * a folder there is no cache, and that is no error.
 */

/*
 * A number for the modules and BPF programs that are loaded now, never 0; 0
 * when it cannot be known, and then nothing may be cached.
 */
uint64_t seam_kernel_modules(void);

/*
 * The file for this kernel and these modules, whole.  False when there is
 * none.  seam_file_close() frees it.
 */
bool seam_kernel_cache_read(struct seam_file *file,
			    const struct seam_kernel_identity *identity,
			    uint64_t modules);

#endif /* SEAM_KERNEL_H */
