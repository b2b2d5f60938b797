/* SPDX-License-Identifier: MIT */
/*
 * jit_sources.h - the jitdumps and perf maps that belong to a recording
 *
 * A runtime announces its dump by mapping a page of it, the marker; a perf map
 * is found by its name alone.  Both are found and validated by jit_find.h, and
 * valid ones added to the code of jit_code.h.  A note of the profile gives the
 * reason why a file was rejected.
 *
 * Threads: one at a time.
 */
#pragma once

#include "base/file.h"
#include "base/pair_map.h"
#include "model/profile/profile.h"
#include "symbol/jit/jit_code.h"
#include "symbol/jit/jit_find.h"

/*
 * Add a note for each process of a known runtime that has samples in JIT code
 * without a name: the flag that makes the runtime write names.  A process that
 * announced a dump had that flag.  Another note counts samples whose name may
 * be wrong, because a perf map without times has several for the address.
 */
void seam_jit_hint(struct seam_profile *profile,
		   struct seam_jit_sources *sources);

/* A dump or map that was read. */
struct seam_jit_source_file {
	struct seam_file file;
	uint32_t path;		/* string of the profile */
	int32_t pid;
};

struct seam_jit_sources {
	struct seam_profile *profile;	/* for notes and paths */
	struct seam_jit_code *code;
	struct seam_jit_places places;
	uint64_t first_ns, last_ns;	/* of the recording */
	bool is_untimed;		/* its clock is not CLOCK_MONOTONIC */
	/* in the order of the code's dumps; the code points into them */
	SEAM_ARRAY(struct seam_jit_source_file) files;
	struct seam_strings tried;	/* "pid path": each once */
	/* by pid: whether the dump that a process announced is absent */
	struct seam_pair_map announced;
};

/*
 * New sources, which @profile owns from then on (profile->jit); @places must
 * outlive the load.  NULL when memory ran out.
 */
struct seam_jit_sources *
seam_jit_sources_new(struct seam_profile *profile,
		     const struct seam_jit_places *places);

/*
 * Process @pid mapped @path.  If that is the marker of a dump, find the dump
 * and add its code.  0, also when there is none; or -ENOMEM.
 */
int seam_jit_sources_mapped(struct seam_jit_sources *sources, int32_t pid,
			    const char *path);

/* Process @pid has executable memory without a file: add its perf map. */
int seam_jit_sources_anonymous(struct seam_jit_sources *sources, int32_t pid);

/* After the last source: sort the code and add its notes.  0 or -ENOMEM. */
int seam_jit_sources_seal(struct seam_jit_sources *sources);
