/* SPDX-License-Identifier: MIT */
/* load_perf.h - a perf.data file into a profile; see load.h for all kinds */
#pragma once

#include "base/file.h"
#include "model/load.h"
#include "model/profile/waits.h"
#include "symbol/jit/jit_find.h"
#include "symbol/symbols.h"
#include "wire/manifest.h"

struct seam_perf_input {
	const struct seam_file *data;		/* header and records */
	const struct seam_file *parts;		/* more records, or NULL */
	size_t n_parts;
	struct seam_kernel kernel;		/* from the manifest */
	struct seam_bytes vdso_build_id;	/* the kernel records none */
	struct seam_jit_places jit;		/* where dumps and maps are */
	bool by_record, no_joins;		/* as in load.h */
	const struct seam_manifest *manifest;	/* NULL, or zeroed: none */
	uint64_t written_ns;	/* UTC of the last change of data */
	uint64_t n_paused;	/* records lost while a snapshot was copied */
	struct seam_waits *waits;	/* out, without symbols; or NULL */
};

/*
 * Fill @profile from @input; names come from @symbols.  Without @symbols (NULL)
 * no samples and no losses are added: only processes, modules, mappings, JIT
 * code and waits.  As with seam_load(), damage is noted and counted; an error
 * means that nothing could be read.
 */
int seam_load_perf(struct seam_profile *profile,
		   const struct seam_perf_input *input,
		   struct seam_symbols *symbols, struct seam_err *err);

/*
 * Add a note if a sampled recording has no callchains (@has_chains: those of
 * some event have), or if many of them end before the function in which their
 * thread began.  @is_overwrite: a ring that overwrites has no copies of stacks,
 * so nothing but frame pointers would help.
 *
 * Estimator: a callchain by frame pointers counts as complete where its
 * outermost user frame is the code that starts threads and processes, by
 * its name (_start, clone3, start_thread, ...) or, without one, by its file
 * (the C library or its loader).  A function that a program calls by itself
 * on a stack of its own (a coroutine) counts as cut though it is complete.
 */
void seam_stack_hint(struct seam_profile *profile, bool has_chains,
		     bool is_overwrite);
