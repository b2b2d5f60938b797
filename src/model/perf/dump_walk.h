/* SPDX-License-Identifier: MIT */
/*
 * dump_walk.h - one thread's part of stack_dumps.h: walk, make a callchain
 *
 * Threads: one for each struct seam_dump_walk; what they share is only read.
 */
#ifndef SEAM_DUMP_WALK_H
#define SEAM_DUMP_WALK_H

#include "model/perf/code_space.h"
#include "model/perf/stack_dumps.h"
#include "unwind/walk/kernel_chain.h"
#include "wire/perf/unwound.h"

enum {
	SEAM_DUMP_MAX_FRAMES = 4096,	/* of 16 bytes: a dump of 64 KiB */
};

/* A sample of a batch. */
struct seam_dump_job {
	struct seam_bytes payload;
	uint32_t sample;		/* of the profile */
	uint16_t event, misc;
	bool is_done;
	uint32_t chain;		/* of the walker's; SEAM_NONE: as it was */
	struct seam_bytes raw;	/* wire/perf/unwound.h; the walker's */
};

struct seam_dump_walk {
	const struct seam_stack_dumps *dumps;
	struct seam_code_space space;
	struct seam_task_at at;
	struct seam_callchains chains;		/* of the stacks walked here */
	SEAM_ARRAY(uint32_t) common;		/* their common ids, + 1; 0 */
	struct seam_stack_counts counts;	/* what samples do not have */
	SEAM_ARRAY(uint64_t) words;		/* of one callchain */
	struct seam_arena kept;			/* RAW data of a batch */
	int error;				/* 0 or -ENOMEM */
	struct seam_unwind_frame frames[SEAM_DUMP_MAX_FRAMES];
	uint64_t cfas[SEAM_DUMP_MAX_FRAMES];
	uint8_t raw[SEAM_UNWOUND_MAX_BYTES];	/* of one stack */
};

/*
 * Unwind @job.  It is not done where a file is needed first, which is then
 * .space.needed.
 */
void seam_dump_walk_job(struct seam_dump_walk *walk,
			struct seam_dump_job *job);

void seam_dump_walk_fini(struct seam_dump_walk *walk);

#endif /* SEAM_DUMP_WALK_H */
