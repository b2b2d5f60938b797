/* SPDX-License-Identifier: MIT */
/*
 * stack_dumps.h - registers and a copy of the stack become a callchain
 *
 * Samples of "perf record --call-graph dwarf" are unwound when all mappings are
 * known, before addresses are resolved (doc/design/stacks.md); from then on
 * they have callchains as all others.
 *
 * Samples are taken in batches, each unwound on all cores.  A walk that comes
 * to a file that was not opened yet stops its thread, and is repeated when the
 * file is open: files are opened between the passes over a batch, by the
 * calling thread alone, because the process that searches them cannot be
 * started while other threads run.  Dumps of a compressed recording are
 * unpacked again, a batch at a time.
 *
 * x86-64 only.  Cost: some 2 us for a stack of 20 frames.
 */
#pragma once

#include "model/perf/perf_scan.h"
#include "model/perf/stack_joins.h"
#include "symbol/elf/cfi_file.h"
#include "symbol/jit/jit_code.h"
#include "symbol/symbols.h"

/* Code of more files is not read: a step by frame pointer is not checked. */
enum { SEAM_CODE_FILES_MAX_OPEN = 256 };

struct seam_code_file {
	bool is_found;			/* else no file here is the module */
	struct seam_cfi_file cfi;
	bool is_debug_tried;		/* a separate file for .debug_frame */
};

/* Zeroed with profile and symbols set, it is ready. */
struct seam_code_files {
	const struct seam_profile *profile;
	struct seam_symbols *symbols;
	size_t n_open;			/* descriptors */
	/* by module of the profile; NULL: not opened yet */
	SEAM_ARRAY(struct seam_code_file *) items;
};

/* The file of @module; NULL where it was not opened yet. */
static inline const struct seam_code_file *
seam_code_files_get(const struct seam_code_files *files, uint32_t module)
{
	return module < files->items.n ? files->items.items[module] : NULL;
}

/*
 * Search and open the file of @module, or its debug file, which few addresses
 * need (@is_debug), unless that was done.  0 or -ENOMEM.
 */
int seam_code_files_open(struct seam_code_files *files, uint32_t module,
			 bool is_debug);

void seam_code_files_fini(struct seam_code_files *files);

/* All borrowed. */
struct seam_stack_dumps {
	const struct seam_perf_data *data;
	struct seam_perf_scan *scans;	/* joined */
	size_t n_scans;
	struct seam_tasks *tasks;	/* sealed */
	struct seam_jit_code *jit;	/* NULL: there is none */
	struct seam_symbols *symbols;
	/* the stack of a sample is a chain, its thread a task key */
	struct seam_profile *profile;
	struct seam_callchains *chains;
	struct seam_stack_walks *walks;	/* of all samples; added to */
};

/*
 * Unwind all of them: set the chains of their samples, add their walks, which
 * borrow from the scans, and what the walks do not have to the profile's
 * stack_counts.  Those of another architecture remain as they are, with a note.
 * 0 or -ENOMEM.
 */
int seam_stack_dumps_unwind(const struct seam_stack_dumps *dumps);
