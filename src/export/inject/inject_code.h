/* SPDX-License-Identifier: MIT */
/*
 * inject_code.h - 'seam inject': the JIT code of a recording as ELF files, and
 * the mappings of their parts over time
 */
#ifndef SEAM_INJECT_CODE_H
#define SEAM_INJECT_CODE_H

#include "base/arena.h"
#include "export/inject/inject.h"
#include "export/inject/perf_rewrite.h"
#include "model/jit/jit_sources.h"
#include "symbol/jit/jit_placements.h"

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

#endif /* SEAM_INJECT_CODE_H */
