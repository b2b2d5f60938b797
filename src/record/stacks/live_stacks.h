/* SPDX-License-Identifier: MIT */
/*
 * live_stacks.h - user stacks of samples, unwound while they are recorded
 *
 * A sample with the user's registers and a copy of the stack's top becomes a
 * sample with an ordinary callchain (unwind/walk/sample_stack.h), without
 * both; the rest of the record is as the kernel wrote it.
 *
 *   1. The drain passes all records of a round in the order of time: side-band
 *	records change the mappings (process_maps), samples are unwound with
 *	those of their moment.
 *   2. A sample in a file that was not read yet (cfi_files) is copied, with the
 *	used part of its dump and the mappings of its moment, and waits, so that
 *	its ring can be drained.
 *   3. The record becomes RAW data about the walk, if its event has no RAW data
 *	of its own, and is written to a buffer.
 *
 * Cost: 1 to 10 us a sample; no allocation but of rows and for waiting.
 * Threads: one, the recorder's; files are opened and read in a helper's.
 */
#pragma once

#include "record/stacks/cfi_files.h"
#include "record/stacks/live_jit.h"
#include "unwind/walk/sample_stack.h"

/*
 * Which executable mappings each process has now.
 *
 * The side-band, applied in the order of time, keeps a list of mappings for
 * each process.  A fork shares its parent's list; a list that is shared is
 * copied when one of its users changes it, so that a sample can hold the list
 * of its moment while later records are applied.  A new mapping covers what was
 * mapped there before; the kernel reports no munmap().  A sample of a ring that
 * overwrites is older than the list: mappings after it do not count.
 *
 * Everything is bounded, because unprivileged programs fork and map as they
 * like; stacks without mappings are counted as incomplete.
 */
enum {
	SEAM_PROCESS_MAPS_MAX = 65536,		/* processes */
	SEAM_PROCESS_MAX_MAPPINGS = 16384,	/* of one process */
	/* Of all processes: 32 MiB. */
	SEAM_PROCESS_MAPS_MAX_MAPPINGS = 1 << 20,
	SEAM_PROCESS_MAPS_LISTS = 4096,
	/* Mappings of processes that ended last: records may be late. */
	SEAM_PROCESS_MAPS_ENDED = 256,
};

/* [begin, end) of a process's memory, mapped from @offset of @file on. */
struct seam_process_mapping {
	uint64_t begin, end, offset;
	uint64_t since_ns;		/* samples before are not in it */
	uint32_t file;			/* the caller's id; SEAM_NONE: none */
	uint32_t flags;			/* the caller's */
};

/* The mappings of one or more processes, ascending. */
struct seam_process_map {
	uint32_t n_users;
	uint32_t n, cap;
	uint32_t flags;			/* of all that were ever in it */
	struct seam_process_mapping items[];
};

struct seam_mapped_process {
	int32_t pid;			/* 0: a free slot */
	uint32_t next;			/* of .by_pid, + 1; 0: the last */
	bool has_ended;
	bool has_birth;			/* n_threads is exact */
	uint32_t n_threads;
	struct seam_process_map *map;	/* NULL: nothing is mapped */
};

/* Zeroed is valid and empty. */
struct seam_process_maps {
	struct seam_cfi_files *files;	/* counts lists with a file; or NULL */
	SEAM_ARRAY(struct seam_mapped_process) processes;
	/* Lists of processes, + 1, by the pid's rest. */
	uint32_t by_pid[SEAM_PROCESS_MAPS_LISTS];
	SEAM_ARRAY(uint32_t) free;	/* slots */
	size_t n_mappings;		/* in all lists */
	uint32_t ended[SEAM_PROCESS_MAPS_ENDED];	/* slots, and 1 */
	size_t n_ended;
};

enum {
	SEAM_LIVE_WAITING_BYTES = 16 << 20,
	SEAM_LIVE_IS_JVM = 1,		/* flag of a mapping: libjvm.so */
};

/* In the order in which they were added. */
struct seam_waiting_samples {
	struct seam_waiting_sample *first, **last;
	size_t n, n_bytes;
};

/* Zeroed is valid: not used. */
struct seam_live_stacks {
	/* Called with each sample that is written; may be NULL. */
	void (*on_sample)(void *context, uint32_t event, const void *record);
	void *context;
	struct seam_stack_counts *counts;	/* borrowed */
	/* Processes that ran before are still read: samples wait for them. */
	bool is_starting;

	struct seam_perf_attr *attrs;	/* as opened, by event */
	bool is_used;			/* an event has copies of stacks */
	size_t max_chain;		/* addresses in a chain of the kernel */
	struct seam_process_maps maps;
	struct seam_cfi_files files;
	struct seam_live_jit jit;	/* filled by the caller too */
	struct seam_waiting_samples waiting;	/* for files */
	uint64_t n_tried;		/* files.n_changes at the last try */
	struct seam_sample_stack *stack;	/* of the last sample */
	uint64_t hole_end;		/* of the last hole that was mapped */
	SEAM_ARRAY(uint8_t) out;	/* records of this round */
	uint64_t n_dropped;		/* records; out of memory */
};

/*
 * For events with these attributes, as they are opened; @max_chain is the
 * kernel's limit (kernel.perf_event_max_stack), @counts are borrowed.  0 or
 * -ENOMEM.
 */
int seam_live_stacks_init(struct seam_live_stacks *stacks,
			  const struct seam_perf_attr *attrs, size_t n_events,
			  size_t max_chain, struct seam_stack_counts *counts,
			  struct seam_err *err);

/*
 * Apply a side-band record.  @is_new: from a ring, not made from /proc.
 */
void seam_live_stacks_sideband(struct seam_live_stacks *stacks,
			       const struct seam_perf_sideband *record,
			       bool is_new);

/*
 * Begin a round: an empty buffer, then the waiting samples that can be
 * unwound now.  With @all, all of them, with what is known.
 */
void seam_live_stacks_begin_round(struct seam_live_stacks *stacks, bool all);

/* Unwind the sample of event @event at @record, which is in one piece. */
void seam_live_stacks_sample(struct seam_live_stacks *stacks, uint32_t event,
			     const void *record);

/* Append another record, in its place among the samples. */
void seam_live_stacks_copy(struct seam_live_stacks *stacks, const void *record);

/*
 * Wait for files: true while samples wait and the helper works.  The
 * descriptor of *@fd is readable when a job has ended.
 */
bool seam_live_stacks_is_busy(struct seam_live_stacks *stacks, int *fd);

/*
 * After a write has failed: drop the oldest waiting sample.  The index of its
 * event; SEAM_NONE: none waits.
 */
uint32_t seam_live_stacks_drop(struct seam_live_stacks *stacks);

/*
 * The time of the oldest sample that is not written yet; UINT64_MAX: all are.
 */
uint64_t seam_live_stacks_oldest(const struct seam_live_stacks *stacks);

void seam_live_stacks_fini(struct seam_live_stacks *stacks);
