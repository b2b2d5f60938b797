/* SPDX-License-Identifier: MIT */
/*
 * jit_sources.h - the dumps and maps that belong to a recording
 *
 * A runtime tells a profiler of its dump by mapping a page of it; a perf map
 * is known by its name alone.  This finds both, has them judged (jit_find.h),
 * and adds what is believed to the code that jit_code.h answers from.  What
 * was refused becomes a note of the profile, with the reason.
 *
 * Threads: one at a time.
 */
#ifndef SEAM_JIT_SOURCES_H
#define SEAM_JIT_SOURCES_H

#include "base/file.h"
#include "model/profile/profile.h"
#include "symbol/jit/jit_code.h"
#include "symbol/jit/jit_find.h"

struct seam_jit_sources {
	struct seam_profile *profile;	/* for notes */
	struct seam_jit_code *code;
	struct seam_jit_places places;
	uint64_t first_ns, last_ns;	/* of the recording */
	bool is_untimed;		/* its clock is not CLOCK_MONOTONIC */
	SEAM_ARRAY(struct seam_file) files;	/* the code borrows them */
	struct seam_strings tried;	/* "pid path": each once */
	SEAM_ARRAY(int32_t) announced;	/* who mapped a dump's marker */
	SEAM_ARRAY(int32_t) absent;	/* whose dump is not here */
};

/* @places and @profile must outlive it.  0 or -ENOMEM. */
int seam_jit_sources_init(struct seam_jit_sources *sources,
			  struct seam_profile *profile,
			  const struct seam_jit_places *places);
void seam_jit_sources_fini(struct seam_jit_sources *sources);

/*
 * Process @pid mapped @path.  If that is the marker of a dump, find the dump
 * and add its code.  0, also when there is none; or -ENOMEM.
 */
int seam_jit_sources_mapped(struct seam_jit_sources *sources, int32_t pid,
			    const char *path);

/* Process @pid ran code in memory without a file: add its map if it has one. */
int seam_jit_sources_anonymous(struct seam_jit_sources *sources, int32_t pid);

/* Whether @pid announced a dump that was not found. */
bool seam_jit_sources_lack(const struct seam_jit_sources *sources,
			   int32_t pid);

/* Whether @pid announced a dump, found or not. */
bool seam_jit_sources_announced(const struct seam_jit_sources *sources,
				int32_t pid);

/* All has been added: notes of what had to be bent.  0 or -ENOMEM. */
int seam_jit_sources_seal(struct seam_jit_sources *sources);

#endif /* SEAM_JIT_SOURCES_H */
