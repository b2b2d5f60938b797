/* SPDX-License-Identifier: MIT */
/*
 * inject.h - the JIT code of a process as one ELF file for plain perf
 *
 * perf resolves an address by the file that is mapped there.  So the injected
 * recording has one file per process, with all JIT code that the process ever
 * had, its symbols and unwinding tables; and a mapping (MMAP2) of a part of
 * that file for each time that code was loaded or moved:
 *
 *	addr = where it ran, len = its size, pgoff = file_offset,
 *	time = when it was put there, file = the one that is made here
 *
 * In the file, addresses are equal to offsets, so that every conversion
 * between them is the identity (versions of perf convert differently).  The
 * first code is at 0x80, as in the files of 'perf inject --jit'.
 *
 * Source: ELF gABI 4.1; LSB 5.0, 10.6 (.eh_frame_hdr).
 */
#ifndef SEAM_INJECT_H
#define SEAM_INJECT_H

#include "base/base.h"
#include "base/err.h"

/* One piece of code.  Everything is borrowed. */
struct seam_inject_function {
	const char *name;
	uint64_t size;			/* bytes; 0 is allowed */
	struct seam_bytes code;		/* @size bytes, or none: zeros then */
	/* Its addresses are right @eh_frame_offset bytes after the start. */
	struct seam_bytes eh_frame;	/* size 0: none */
	uint64_t eh_frame_offset;
	uint64_t file_offset;		/* out: of the code */
};

/*
 * Write the file of @n functions for machine @elf_machine, in the byte order of
 * this machine, to @fd, which is empty.  Each function's file_offset is set.
 * 0, or -errno: -EOVERFLOW for more than 2 GiB of code.
 *
 * Unwinding tables are copied if their addresses are pcrel|sdata4, as V8,
 * CPython and GCC write them; others are left out and counted in
 * *@n_bad_tables.
 */
int seam_inject_elf(int fd, struct seam_inject_function *functions, size_t n,
		    uint32_t elf_machine, uint64_t *n_bad_tables,
		    struct seam_err *err);

#endif /* SEAM_INJECT_H */
