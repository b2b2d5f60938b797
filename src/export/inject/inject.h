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
#pragma once

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "export/inject/perf_rewrite.h"
#include "model/jit/jit_sources.h"
#include "symbol/jit/jit_code.h"

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

/* The file of one process. */
struct seam_inject_process {
	int32_t pid;
	const char *path;		/* absolute */
	uint32_t maj, min;
	uint64_t ino;
	size_t first, n;		/* of the functions */
	size_t first_range, n_ranges;
};

/* An address range of code, which must not be mapped over. */
struct seam_inject_range {
	uint64_t start_addr, end_addr, time_ns;
	uint64_t reach;		/* maximum of end_addr up to this one */
};

/* Zeroed except for the first three is valid and empty. */
struct seam_inject_code {
	const struct seam_profile *profile;	/* with its JIT code */
	/* Create file @name: a descriptor to write to, or -errno. */
	int (*create)(void *context, const char *name, struct seam_err *err);
	void *context;
	struct seam_jit_placements placements;
	struct seam_arena arena;
	SEAM_ARRAY(struct seam_inject_function) functions;
	SEAM_ARRAY(struct seam_inject_process) processes;
	SEAM_ARRAY(struct seam_inject_range) ranges;
	SEAM_ARRAY(struct seam_perf_added) added;	/* by time */
	uint32_t *function_of;		/* by object; SEAM_NONE: in no file */
	uint64_t n_bad_tables;
};

/*
 * Make the files of all JIT code of code->profile, which create() makes in the
 * folder with the absolute path @path, and the mappings.  0 or -errno.
 */
int seam_inject_code_make(struct seam_inject_code *code, const char *path,
			  struct seam_err *err);

void seam_inject_code_fini(struct seam_inject_code *code);

/*
 * Whether @mapping is anonymous and covers code, as after mprotect() by a
 * runtime: perf would drop the code.  @context is the struct
 * seam_inject_code.
 */
bool seam_inject_code_is_hidden_by(void *context,
				   const struct seam_perf_mapping *mapping,
				   uint64_t time_ns);
