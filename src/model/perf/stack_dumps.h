/* SPDX-License-Identifier: MIT */
/*
 * stack_dumps.h - registers and a copy of the stack become a callchain
 *
 * Samples of "perf record --call-graph dwarf" hold the user registers and the
 * top of the user stack.  They are unwound when all mappings are known, before
 * addresses are resolved; from then on they are callchains as all others: the
 * kernel's part as recorded, then the frames of the stack, and where the copy
 * ends early the rest of the kernel's own user chain, if the sample has one.
 * What a callchain cannot express is kept for stack_joins.h, in the form in
 * which the recorder writes it for stacks that it has unwound.
 *
 * Samples are taken in batches, each unwound on all cores.  A walk that comes
 * to a file that was not opened yet stops its thread, and is repeated when the
 * file is open: files are opened between the passes over a batch, by the
 * calling thread alone, because the process that searches them cannot be
 * started while other threads run.  Dumps are read where they are in the file;
 * those of a compressed recording are unpacked again, a batch at a time.
 *
 * x86-64 only.
 *
 * Cost: some 2 us for a stack of 20 frames.
 */
#ifndef SEAM_STACK_DUMPS_H
#define SEAM_STACK_DUMPS_H

#include "model/perf/perf_scan.h"
#include "model/perf/stack_joins.h"
#include "symbol/jit/jit_code.h"
#include "symbol/symbols.h"

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

/* Whether there are samples to unwind, and they are of this architecture. */
bool seam_stack_dumps_exist(const struct seam_stack_dumps *dumps);
bool seam_stack_dumps_supported(const struct seam_stack_dumps *dumps);

/*
 * Unwind all of them: set the chains of their samples, add their walks, which
 * borrow from the scans, and what the walks do not have to the profile's
 * stack_counts.  0 or -ENOMEM.
 */
int seam_stack_dumps_unwind(const struct seam_stack_dumps *dumps);

#endif /* SEAM_STACK_DUMPS_H */
