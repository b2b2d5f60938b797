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

#endif /* SEAM_SAMPLE_CODE_H */
