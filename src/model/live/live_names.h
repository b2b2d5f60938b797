/* SPDX-License-Identifier: MIT */
/*
 * live_names.h - names of JIT code while it is compiled
 *
 * Perf maps grow line by line, dumps record by record.  What was added is read
 * when they have grown.
 *
 * Files are found and checked by symbol/jit/jit_find.h, of processes that the
 * caller answers for: a file system of a hostile user could block any call.
 *
 * Limits: SEAM_LIVE_MAX_NAMES files; 64 MiB of a file and 256 MiB in total.
 *
 * Threads: one.
 */
#pragma once

#include "model/jit/jit_sources.h"

enum { SEAM_LIVE_MAX_NAMES = 256 };

/* Fill @owner of process @pid; false: its files are not to be read. */
typedef bool seam_live_owner(int32_t pid, struct seam_jit_owner *owner);

struct seam_live_names {
	struct seam_jit_sources *sources;	/* the profile's */
	seam_live_owner *owner;			/* NULL: none is read */
	SEAM_ARRAY(struct seam_followed_names) files;
	uint64_t n_bytes;			/* read so far */
};

/* 0 or -ENOMEM; _fini() is valid on a zeroed one. */
int seam_live_names_init(struct seam_live_names *names,
			 struct seam_profile *profile);
void seam_live_names_fini(struct seam_live_names *names);

/*
 * Process @pid mapped @path, or (@is_code) executable memory without a file:
 * is there a dump or a map to follow?  0 or -ENOMEM.
 */
int seam_live_names_mapped(struct seam_live_names *names, int32_t pid,
			   const char *path, bool is_code);

/* Process @child begins, with the memory of @parent.  0 or -ENOMEM. */
int seam_live_names_forked(struct seam_live_names *names, int32_t parent,
			   int32_t child, uint64_t time_ns);

/* Process @pid has ended, or executes another program.  0 or -ENOMEM. */
int seam_live_names_ended(struct seam_live_names *names, int32_t pid,
			  uint64_t time_ns);

/*
 * Read what has grown; @changed is called for each process that has more names.
 * 0 or -ENOMEM.  Cost: a stat() a file; 0.2 us a new function.
 */
int seam_live_names_update(struct seam_live_names *names,
			   void (*changed)(void *context, int32_t pid),
			   void *context);
