/* SPDX-License-Identifier: MIT */
/*
 * batch.h - samples of many machines, added up, as rows of a store's tables
 *
 * What one agent, or one recording, gives to a store at a time; and what a
 * query of a store gives back.  A batch is complete: each stack of its samples,
 * and each frame of these stacks, is in it or in an earlier batch of the same
 * writer (in a file: always in it).
 *
 * Samples are added up by their window, stack, thread and event: a row has how
 * many they are and the sum of their weights.  Times are UTC nanoseconds, since
 * hosts have no other clock in common.
 *
 * Ids of frames and stacks are hashes of what they mean (batch_ids.h), the same
 * on each host: addresses of one run are never in them.
 *
 * Ownership: the batch owns all of it; seam_batch_fini() frees it.
 * Threads: one.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"
#include "base/strings.h"

enum {
	/* Rows of a table in one batch: a block that ClickHouse stores at once,
	 * or not at all (max_insert_block_size). */
	SEAM_BATCH_MAX_ROWS = 1 << 20,
	SEAM_BATCH_MAX_DEPTH = 1024,	/* frames of a stack; outer ones go */
	SEAM_BATCH_MAX_TEXT = 1024,	/* bytes of a name from outside */
	SEAM_BATCH_MAX_LABELS = 16,
};

/* Which agent, and which of its batches: once in a store. */
struct seam_batch_id {
	uint64_t agent;		/* random, of each start of an agent; of a
				 * recording that is pushed: from its id */
	uint64_t seq;		/* from 0 */
};

/* Where rows are from.  One in an agent's batch; several in an answer. */
struct seam_batch_origin {
	uint32_t service, host;		/* strings */
	uint32_t recording;		/* string: of a bundle, or "" */
	uint32_t labels;		/* first of n_labels in the batch's */
	uint32_t n_labels;		/* strings "key=value", sorted */
};

struct seam_batch_frame {
	uint64_t id;
	uint8_t layer;			/* enum seam_layer (profile.h) */
	bool is_named, is_inlined;
	uint32_t function, file, module; /* strings; module: its path */
	uint32_t build_id;		/* string: hexadecimal digits, or "" */
	uint32_t line;			/* 0: not known */
	uint64_t offset;		/* in the module's file; 0 of JIT code
					 * and of guests */
};

struct seam_batch_stack {
	uint64_t id;
	uint32_t first, n;		/* in frame_ids, the outermost first */
};

struct seam_batch_sample {
	uint64_t ts_ns;			/* UTC: when its window begins */
	uint64_t stack;			/* its id; 0: the empty stack */
	uint64_t count;			/* samples */
	uint64_t value;			/* their weights added up */
	uint32_t origin;
	uint32_t event;			/* string: "cpu-clock", "off-cpu" */
	uint8_t unit;			/* enum seam_unit (profile.h) */
	uint8_t kind;			/* enum seam_batch_kind */
	int32_t pid, tid;		/* -1: of several */
	uint32_t process, thread;	/* strings: their names */
};

/* What the samples of an event are. */
enum seam_batch_kind {
	SEAM_BATCH_SAMPLES,
	SEAM_BATCH_CALLS,		/* none left out */
	SEAM_BATCH_BLOCKED,		/* waits */
	SEAM_BATCH_PREEMPTED,		/* waits for a CPU */
};

/* Calls of one function in a window: sums, and a histogram of durations. */
struct seam_batch_calls {
	uint64_t ts_ns;
	uint64_t frame;			/* the function: its frame's id */
	uint64_t count, min_ns, max_ns;
	uint64_t sum_ns, total_ns, self_ns;	/* as struct seam_account_row */
	uint32_t origin;
	int32_t pid;
	uint32_t process;		/* string */
	uint32_t first, n;		/* in buckets */
};

/* Buckets of seam_histogram_bucket() (account.h) that have any. */
struct seam_batch_bucket {
	uint64_t count;
	uint16_t bucket;
};

/* What is missing: on the host, or of batches that were dropped. */
struct seam_batch_loss {
	uint64_t ts_ns;
	uint64_t records, bytes;	/* 0: not known */
	uint32_t origin;
	uint32_t cause, source;		/* strings */
};

/* Zeroed is valid and empty. */
struct seam_batch {
	struct seam_batch_id id;
	uint64_t from_ns, to_ns;	/* UTC: of all its rows; one day */
	struct seam_strings strings;
	SEAM_ARRAY(struct seam_batch_origin) origins;
	SEAM_ARRAY(uint32_t) labels;	/* strings */
	SEAM_ARRAY(struct seam_batch_frame) frames;
	SEAM_ARRAY(struct seam_batch_stack) stacks;
	SEAM_ARRAY(uint64_t) frame_ids;
	SEAM_ARRAY(struct seam_batch_sample) samples;
	SEAM_ARRAY(struct seam_batch_calls) calls;
	SEAM_ARRAY(struct seam_batch_bucket) buckets;
	SEAM_ARRAY(struct seam_batch_loss) losses;
	struct seam_index origin_index;
};

/*
 * The id of an equal origin, added if new: its labels are at the end of
 * batch->labels, or are those of another origin.  SEAM_NONE: no memory.
 */
uint32_t seam_batch_origin(struct seam_batch *batch,
			   const struct seam_batch_origin *origin);

void seam_batch_fini(struct seam_batch *batch);
