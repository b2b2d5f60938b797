/* SPDX-License-Identifier: MIT */
/* load_perf.h - a perf.data file into a profile; see load.h for all kinds */
#ifndef SEAM_LOAD_PERF_H
#define SEAM_LOAD_PERF_H

#include "base/file.h"
#include "model/load.h"
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
};

/*
 * Fill @profile from @input; names come from @symbols.  Without @symbols (NULL)
 * no samples and no losses are added: only processes, modules, mappings and JIT
 * code.  As with seam_load(), damage is noted and counted; an error means that
 * nothing could be read.
 */
int seam_load_perf(struct seam_profile *profile,
		   const struct seam_perf_input *input,
		   struct seam_symbols *symbols, struct seam_err *err);

#endif /* SEAM_LOAD_PERF_H */
