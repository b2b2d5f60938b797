/* SPDX-License-Identifier: MIT */
/*
 * dump_walk.h - one thread's part of stack_dumps.h: walk, make a callchain,
 * count
 *
 * Threads: one for each struct seam_dump_walk; what they share is only read.
 */
#ifndef SEAM_DUMP_WALK_H
#define SEAM_DUMP_WALK_H

#include "model/perf/code_space.h"
#include "model/perf/stack_dumps.h"
#include "unwind/walk/kernel_chain.h"
#include "unwind/walk/stack_joins.h"

enum {
	SEAM_DUMP_MAX_FRAMES = 4096,	/* of 16 bytes: a dump of 64 KiB */
	/* Of a walker, in a batch: 6 MiB.  Stacks beyond are not joined. */
	SEAM_DUMP_MAX_KEPT = 1 << 18,
};

/* A sample of a batch. */
struct seam_dump_job {
	struct seam_bytes payload;
	uint32_t sample;		/* of the profile */
	uint16_t event, misc;
	bool is_done;
	uint32_t chain;		/* of the walker's; SEAM_NONE: as it was */
	/* Of a stack that is to be joined, or joins others: */
	uint32_t first_frame, n_frames;	/* of the walker's .kept; n 0: none */
	int32_t pid, tid;
	uint8_t end;			/* enum seam_unwind_end */
	bool is_cut;			/* .chain is made by _join() */
	struct seam_unwind_rest rest;	/* of the recorded chain */
};

struct seam_dump_walk {
	const struct seam_stack_dumps *dumps;
	const int32_t *jvms;		/* processes with a JVM, sorted */
	size_t n_jvms;
	struct seam_code_space space;
	struct seam_task_at at;
	struct seam_callchains chains;		/* of the stacks walked here */
	SEAM_ARRAY(uint32_t) common;		/* their common ids, + 1; 0 */
	struct seam_stack_counts counts;	/* but for .modules */
	/* stacks that ended early, by module and reason; JIT code first */
	SEAM_ARRAY(uint64_t) early;
	SEAM_ARRAY(uint64_t) words;		/* of one callchain */
	SEAM_ARRAY(struct seam_unwind_frame) kept;	/* of this batch */
	int error;				/* 0 or -ENOMEM */
	struct seam_unwind_frame frames[SEAM_DUMP_MAX_FRAMES];
};

/*
 * Unwind @job.  It is not done where a file is needed first, which is then
 * .space.needed.
 */
void seam_dump_walk_job(struct seam_dump_walk *walk,
			struct seam_dump_job *job);

/*
 * After all walks of a batch, by one thread, in the order of samples: enter the
 * stack of @job in @joins, and append what they have of a stack that was cut.
 * Where that is not enough it remains cut, for the next call.
 */
void seam_dump_walk_join(struct seam_dump_walk *walk,
			 struct seam_dump_job *job,
			 struct seam_stack_joins *joins);

/* After that, for those still cut: by the samples after them too. */
void seam_dump_walk_join_again(struct seam_dump_walk *walk,
			       struct seam_dump_job *job,
			       struct seam_stack_joins *joins);

/* Add its counts to those of the profile. */
void seam_dump_walk_count(const struct seam_dump_walk *walk,
			  struct seam_stack_counts *counts);

void seam_dump_walk_fini(struct seam_dump_walk *walk);

#endif /* SEAM_DUMP_WALK_H */
