/* SPDX-License-Identifier: MIT */
/*
 * sample_code.h - the code of a process at the moment of a sample
 *
 * The look-ups of a walk (struct seam_unwind_space): by the mappings of that
 * moment (process_maps.h), the files that are mapped (cfi_files.h) and the
 * code of its JIT (live_jit.h).
 *
 * Threads: one.
 */
#ifndef SEAM_SAMPLE_CODE_H
#define SEAM_SAMPLE_CODE_H

#include "record/stacks/cfi_files.h"
#include "record/stacks/live_jit.h"
#include "record/stacks/process_maps.h"
#include "wire/stack_counts.h"

struct seam_sample_code {
	struct seam_cfi_files *files;		/* borrowed, as all of these */
	struct seam_process_map *map;		/* NULL: not known */
	struct seam_live_jit *jits;
	const struct seam_live_jit_process *jit;	/* NULL: no such code */
	uint64_t time_ns;
	bool is_last_try;	/* do without files that are not read yet */
	/* Results; zero at first. */
	bool is_pending;	/* a file is not read yet */
	enum seam_stack_end no_file;	/* why the last address had no CFI */
	const struct seam_process_mapping *mapping;	/* the last one */
};

/* @code as a walk takes it, which ends early when a file is not read yet. */
struct seam_unwind_space seam_sample_code_space(struct seam_sample_code *code);

enum {
	SEAM_FOUND_CALLS = 256,
	/* Of code, in a round: 3 ms.  Callers beyond are not found. */
	SEAM_FOUND_CALLS_BYTES = 4 << 20,
};

/* Several calls, or code that cannot be read, or too much of it. */
#define SEAM_CALL_UNKNOWN UINT64_MAX

/* Calls that were looked for.  Zeroed is valid and empty. */
struct seam_found_calls {
	struct {
		const struct seam_mapped_file_cfi *file;	/* NULL: free */
		uint64_t caller, callee;	/* functions */
		uint64_t after;			/* an address; 0: none */
	} items[SEAM_FOUND_CALLS];
	size_t n_bytes;			/* read in this round; the caller's */
};

/*
 * The return address in the function at @caller, after its call of the function
 * at @callee: both are addresses of instructions.  0 where it has none, but by
 * a register, or from file to file; or SEAM_CALL_UNKNOWN.
 * Cost: a pass over the bytes of the caller, which are read; of the same
 * functions again, two searches.
 */
uint64_t seam_sample_code_call(struct seam_sample_code *code,
			       struct seam_found_calls *calls,
			       uint64_t caller, uint64_t callee);

#endif /* SEAM_SAMPLE_CODE_H */
