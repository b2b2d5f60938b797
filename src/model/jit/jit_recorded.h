/* SPDX-License-Identifier: MIT */
/*
 * jit_recorded.h - the JIT code of a recording, without a profile of it
 *
 * A profile has names and places; who needs the code itself (its bytes, where
 * it was and when) reads it with this: one walk over the records for who
 * mapped a dump, ran code without a file, was forked or became another
 * program.
 */
#ifndef SEAM_JIT_RECORDED_H
#define SEAM_JIT_RECORDED_H

#include "model/jit/jit_sources.h"
#include "wire/perf/perf_data.h"

/* A fork that was recorded; the last one of a child is right. */
struct seam_jit_fork {
	int32_t parent, child;
};

/* Zeroed is valid and empty. */
struct seam_jit_recorded {
	struct seam_jit_sources sources;
	SEAM_ARRAY(struct seam_jit_fork) forks;
};

/*
 * Read what the processes of @data left, @parts being more of its records.
 * Notes go to @notes, which must outlive it: a profile of nothing else will
 * do.  What cannot be walked is passed over.  0 or -ENOMEM.
 */
int seam_jit_recorded_read(struct seam_jit_recorded *recorded,
			   const struct seam_perf_data *data,
			   const struct seam_file *parts, size_t n_parts,
			   const struct seam_jit_places *places,
			   struct seam_profile *notes);

void seam_jit_recorded_fini(struct seam_jit_recorded *recorded);

/* The parent that @pid was forked from; -1 when none was recorded. */
int32_t seam_jit_recorded_parent(const struct seam_jit_recorded *recorded,
				 int32_t pid);

/* The e_machine of the recording, for dumps that do not say theirs. */
uint32_t seam_jit_recorded_machine(const struct seam_perf_data *data);

#endif /* SEAM_JIT_RECORDED_H */
