/* SPDX-License-Identifier: MIT */
/*
 * cfi_file.h - the unwinding information of an ELF file
 *
 * .eh_frame with its table of contents, .debug_frame (compressed too; often
 * only a separate debug file has it), the segments that map offsets of the file
 * to addresses, the entry point, the build id, and bytes of code.
 *
 * This runs in the recorder, which may be root, on files that others wrote
 * and may still change.  So the reader is small, and copies everything but code
 * when the file is opened.  Program headers suffice for .eh_frame;
 * section headers, which may be stripped, give .debug_frame.  Sizes are
 * bounded; a section beyond a limit or out of the file is left out.
 *
 * Files as of x86-64 only: 64 bits, little-endian.
 *
 * Threads: opened by one, which may be a helper, as opening reads from the
 * disk; then one at a time.
 * Source: ELF-64 Object File Format; LSB Core 5.0, 10.6; gABI 4.3, "Section
 * Compression"; binutils' .zdebug_*: "ZLIB", the size as big-endian u64.
 */
#pragma once

#include "symbol/elf/elf_file.h"
#include "wire/eh_frame.h"

enum {
	/* Largest found: 7 MiB, in a librustc_driver. */
	SEAM_CFI_MAX_BYTES = 64 << 20,	/* of a section, unpacked */
	SEAM_CFI_MAX_SEGMENTS = 128,
	SEAM_CFI_MAX_IMAGE = 1 << 20,
	SEAM_CFI_CODE_SLOTS = 1024,	/* 16 KiB */
	SEAM_CFI_MAX_LINK = 128,
	/* _start() of a program calls main, or does not return, by then. */
	SEAM_CFI_ENTRY_BYTES = 96,
};

/* Bytes of code that were read, by address; no chains. */
struct seam_cfi_code {
	struct {
		uint64_t addr;		/* after the bytes; 0: a free slot */
		uint8_t n, bytes[7];
	} slots[SEAM_CFI_CODE_SLOTS];
};

/* Zeroed is valid and closed, but for @fd. */
struct seam_cfi_file {
	/* .eh_frame and .debug_frame; no entries: the file has no such */
	struct seam_eh_frame eh, debug;
	uint64_t entry;			/* an address; 0: none */
	uint16_t machine;		/* EM_X86_64, ... */
	struct seam_segments segments;
	uint8_t build_id[SEAM_BUILD_ID_MAX];
	size_t build_id_size;		/* 0: no build id */
	/* the name in .gnu_debuglink, without a folder; "": none */
	char debug_link[SEAM_CFI_MAX_LINK];

	int fd;				/* -1: an image */
	bool may_block;			/* a read may, in its file system */
	bool may_wait;			/* the caller's: read code even so */
	uint8_t *image;			/* owned */
	size_t image_bytes;
	struct seam_cfi_code *code;	/* NULL: each byte is read again */
	uint8_t *owned[3];		/* the bytes of .eh and .debug */
	size_t n_owned_bytes;
};

/*
 * Open the file at @fd, a regular file, and take the descriptor, on failure
 * too.  0; -EBADMSG: no ELF file, -ENOTSUP: not of this kind, -ENODATA: it ends
 * early, -ENOMEM, -EIO.  A file without CFI is no failure.
 */
int seam_cfi_file_open(struct seam_cfi_file *file, int fd,
		       struct seam_err *err);

/*
 * The same for a file in memory, the vdso, whose @image is copied.  -EFBIG
 * beyond SEAM_CFI_MAX_IMAGE.
 */
int seam_cfi_file_open_image(struct seam_cfi_file *file,
			     struct seam_bytes image, struct seam_err *err);

/*
 * Move .debug_frame of @other, which the caller has found to be the debug file
 * of @file, to @file, unless that has one; close @other.  Whether it was moved.
 */
bool seam_cfi_file_take_debug(struct seam_cfi_file *file,
			      struct seam_cfi_file *other);

/*
 * Copy the bytes of code that end before @addr to the end of @bytes, which has
 * room for @max.  The number of bytes; 0 where there are none, or where
 * reading them might wait for a disk or another machine, unless may_wait.
 */
size_t seam_cfi_file_code_before(const struct seam_cfi_file *file,
				 uint64_t addr, uint8_t *bytes, size_t max);

/*
 * Whether @addr, which has no CFI, is in the code at the entry point: nothing
 * called it.  Dynamic loaders, and programs in assembler, are so.
 */
static inline bool seam_cfi_file_is_entry(const struct seam_cfi_file *file,
					  uint64_t addr)
{
	return file->entry && addr - file->entry < SEAM_CFI_ENTRY_BYTES;
}

/*
 * Keep the bytes of code that are read: a stack of V8's code has ten frames
 * that are left by their frame pointers, at a system call each.  From then on
 * only one thread at a time may read code.  Without memory nothing changes.
 */
void seam_cfi_file_keep_code(struct seam_cfi_file *file);

/* Give the descriptor back: there are no bytes of code from then on. */
void seam_cfi_file_release_fd(struct seam_cfi_file *file);

void seam_cfi_file_close(struct seam_cfi_file *file);
