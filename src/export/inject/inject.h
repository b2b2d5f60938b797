/* SPDX-License-Identifier: MIT */
/*
 * inject.h - the JIT code of a process as one ELF file for plain perf
 *
 * perf resolves an address by the file that is mapped there.  So the injected
 * recording has one file per process, with all JIT code that the process ever
 * had, its symbols, source lines and unwinding tables; and a mapping (MMAP2)
 * of a part of that file for each time that code was loaded or moved:
 *
 *	addr = where it ran, len = its size, pgoff = file_offset,
 *	time = when it was put there, file = the one that is made here
 *
 * In the file, addresses are equal to offsets, so that every conversion
 * between them is the identity (versions of perf convert differently).  The
 * first code is at 0x80, as in the files of 'perf inject --jit'.
 *
 * Source: ELF gABI 4.1; DWARF 2, 6.2 and 7; LSB 5.0, 10.6 (.eh_frame_hdr).
 */
#ifndef SEAM_INJECT_H
#define SEAM_INJECT_H

#include "base/base.h"
#include "base/err.h"

/* The line of the code from @offset to the next entry's offset. */
struct seam_inject_line {
	uint64_t offset;		/* bytes from the start of the code */
	uint32_t line;
	uint32_t column;
	const char *file;
};

/* One piece of code.  Everything is borrowed. */
struct seam_inject_function {
	const char *name;
	uint64_t size;			/* bytes; 0 is allowed */
	struct seam_bytes code;		/* @size bytes, or none: zeros then */
	const struct seam_inject_line *lines;	/* by offset */
	size_t n_lines;
	/* Its addresses are right @eh_frame_offset bytes after the start. */
	struct seam_bytes eh_frame;	/* size 0: none */
	uint64_t eh_frame_offset;
	uint64_t file_offset;		/* out: of the code */
};

/* Zeroed is valid and empty. */
struct seam_inject_file {
	uint8_t *bytes;
	size_t n, cap;
	uint64_t n_bad_tables;		/* unwinding tables left out */
};

/*
 * Make the file of @n functions for machine @elf_machine, in the byte order of
 * this machine, in memory.  Each function's file_offset is set.  0, -ENOMEM, or
 * -EOVERFLOW for more than 2 GiB of code.
 *
 * Unwinding tables are copied if their addresses are pcrel|sdata4, as V8,
 * CPython and GCC write them; others are left out and counted.
 */
int seam_inject_elf(struct seam_inject_file *file,
		    struct seam_inject_function *functions, size_t n,
		    uint32_t elf_machine, struct seam_err *err);

void seam_inject_fini(struct seam_inject_file *file);

#endif /* SEAM_INJECT_H */
