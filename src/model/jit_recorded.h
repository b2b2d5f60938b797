/* SPDX-License-Identifier: MIT */
/*
 * jit_recorded.h - the JIT code of a recording's processes, found and read
 *
 * Which processes had a JIT is said by the recording itself: a runtime maps
 * its dump, and code without a file is mapped to run.  Their dumps and maps
 * are looked for where symbol/jit_find.h says, and played with the forks and
 * execs that were recorded.
 */
#ifndef SEAM_JIT_RECORDED_H
#define SEAM_JIT_RECORDED_H

#include "base/file.h"
#include "symbol/jit_code.h"
#include "symbol/jit_find.h"
#include "wire/perf_data.h"

/* A fork that was recorded; the last one of a child is right. */
struct seam_jit_fork {
	int32_t parent, child;
};

/* Zeroed is valid and empty. */
struct seam_jit_recorded {
	struct seam_jit_code *code;		/* NULL until read */
	SEAM_ARRAY(struct seam_file) files;	/* whose bytes it borrows */
	SEAM_ARRAY(struct seam_jit_fork) forks;
	uint64_t first_ns, last_ns;		/* of the samples */
	bool is_untimed;	/* not sampled by CLOCK_MONOTONIC */
	size_t n_dumps, n_maps;
};

/*
 * Read what the processes of @data left, @parts being more of its records.
 * @say is told what was not found or not believed, and why.  0, or -errno when
 * the recording could not be walked (-ENOMEM; others are no failure).
 */
int seam_jit_recorded_read(struct seam_jit_recorded *recorded,
			   const struct seam_perf_data *data,
			   const struct seam_file *parts, size_t n_parts,
			   const struct seam_jit_places *places,
			   void (*say)(const char *fmt, ...)
				__attribute__((format(printf, 1, 2))),
			   struct seam_err *err);

void seam_jit_recorded_fini(struct seam_jit_recorded *recorded);

/* The parent that @pid was forked from; -1 when none was recorded. */
int32_t seam_jit_recorded_parent(const struct seam_jit_recorded *recorded,
				 int32_t pid);

#endif /* SEAM_JIT_RECORDED_H */
