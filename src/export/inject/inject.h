/* SPDX-License-Identifier: MIT */
/*
 * inject.h - the code of a process's JITs as one ELF file for plain perf
 *
 * perf knows code by the file that was mapped where it ran.  So a recording
 * is handed over as: one file for each process, which holds every piece of
 * code that process ever had, one after the other, with symbols, source lines
 * and unwinding tables; and a mapping (MMAP2) of the right part of it for each
 * time a piece was put somewhere:
 *
 *	addr = where it ran, len = its size, pgoff = file_offset,
 *	time = when it was put there, file = the one that is made here
 *
 * In the file, offsets and addresses are the same numbers: every way in which
 * tools turn one into the other then gives the same answer (perf 6.1 and
 * earlier ones differ in it).  The first code is at 0x80, as in files that
 * perf makes itself.
 *
 * Source: ELF gABI 4.1; DWARF 2, 6.2 and 7; LSB 5.0, 10.6 (.eh_frame_hdr).
 */
#ifndef SEAM_INJECT_H
#define SEAM_INJECT_H

#include "base/base.h"
#include "base/err.h"

/* Code from @offset on comes from @line, until the next one's offset. */
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
	/* With addresses as if it began @table_offset after the code. */
	struct seam_bytes eh_frame;	/* size 0: none */
	uint64_t table_offset;
	uint64_t file_offset;		/* out: of its code */
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
 * -EOVERFLOW when it would have 4 GiB.
 *
 * Unwinding tables are taken over if their addresses are relative and of 4
 * bytes, as V8, CPython and GCC write them; others are counted.
 */
int seam_inject_elf(struct seam_inject_file *file,
		    struct seam_inject_function *functions, size_t n,
		    uint32_t elf_machine, struct seam_err *err);

void seam_inject_fini(struct seam_inject_file *file);

#endif /* SEAM_INJECT_H */
