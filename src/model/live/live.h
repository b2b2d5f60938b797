/* SPDX-License-Identifier: MIT */
/*
 * live.h - a profile of a recording that is being made, second by second
 *
 * Takes the records of a recorder as they come, and makes a profile (profile.h)
 * whose samples are those since the last call of seam_live_step(), or all so
 * far.  Views that read a profile need not know that it changes.
 *
 * What is mapped is a list for each process, changed by each record in the
 * order of time; a sample is resolved (resolver.h) between the records before
 * and after it.  Each distinct place in a file is looked up once.
 *
 * Everything is bounded: SEAM_LIVE_MAX_CHAINS distinct callchains in a step,
 * SEAM_LIVE_MAX_STACKS stacks, SEAM_LIVE_MAX_SUMS rows of the sum and
 * SEAM_LIVE_MAX_THREADS threads; samples beyond are counted as one function
 * "[other]", in a thread "[other]".  Threads that have ended are forgotten from
 * time to time: in the sum their samples are those of "[other]" then.
 *
 * With the events of --off-cpu (wire/perf/wait_events.h) the profile has the
 * events off-cpu and preempted, whose samples are the parts of waits that are in
 * each step, and thread_times.  Each wait has a sample of the first event too,
 * that counts nothing: rows of that event are then of all threads and functions.
 *
 * Names of JIT code are those that its runtime has written when a step ends
 * (live_names.h).  Left out: Lua functions are not known.
 *
 * Threads: one.
 */
#pragma once

#include "model/live/live_names.h"
#include "model/profile/profile.h"
#include "symbol/elf/module.h"
#include "wire/perf/perf_attr.h"

enum {
	SEAM_LIVE_MAX_CHAINS = 65536,
	SEAM_LIVE_MAX_STACKS = 1 << 20,	/* nodes, shared by stacks */
	SEAM_LIVE_MAX_SUMS = 1 << 18,
	SEAM_LIVE_MAX_THREADS = 1 << 16,	/* that live, or ended lately */
	SEAM_LIVE_MAX_EVENTS = 64,
};

struct seam_live;

struct seam_live_event {
	const char *name;		/* copied */
	struct seam_perf_attr attr;	/* of its samples, in this order */
};

/*
 * @kernel is the running one.  Makes a process that reads files
 * (symbol/symbols.h): no other thread may run.  NULL: no memory.
 */
struct seam_live *seam_live_new(const struct seam_symbols_options *options,
				const struct seam_kernel *kernel);
void seam_live_free(struct seam_live *live);

/*
 * Before the first record: the next event of the recording, in its order; and
 * which event has records with this id.  0, -ENOMEM, or -EOVERFLOW.
 */
int seam_live_add_event(struct seam_live *live,
			const struct seam_live_event *event);
int seam_live_add_id(struct seam_live *live, uint64_t id, uint32_t event);

/* Before the first record: read names of JIT code, of what @owner permits. */
void seam_live_follow_names(struct seam_live *live, seam_live_owner *owner);

/* Samples of @pid, and of what it forks and does not execute, do not count. */
int seam_live_exclude(struct seam_live *live, int32_t pid);

/* Whole records of this machine; damaged ones are counted.  0 or -ENOMEM. */
int seam_live_take(struct seam_live *live, struct seam_bytes records);

/*
 * What has come since the last call becomes the samples of the profile, and
 * waits that go on at @now_ns are counted up to then.  0 or -ENOMEM.  Cost: the
 * names of places that are new, a look-up in a hash for each sample.
 */
int seam_live_step(struct seam_live *live, uint64_t now_ns);

/* Before the first record: waits shorter than @min_ns are left out. */
void seam_live_set_min_wait(struct seam_live *live, uint64_t min_ns);

/* Before the first record: there is no sum over all steps, and no memory. */
void seam_live_without_sum(struct seam_live *live);

/*
 * After a step: forget the tables of the files that names were looked up in.
 * They are read again for the next place that is new.
 */
void seam_live_forget_files(struct seam_live *live);

/*
 * After a step: another object that goes on where @live is, with the processes,
 * threads and mappings that there are, and nothing else: no stacks, no names of
 * functions, no sum.  What the former has in memory goes with it, which the
 * caller frees.  Options as of seam_live_new().  NULL: no memory.
 */
struct seam_live *seam_live_renewed(const struct seam_live *live,
				    const struct seam_symbols_options *options,
				    const struct seam_kernel *kernel);

/* Have the profile the samples of the last step, or with @all of all steps. */
void seam_live_select(struct seam_live *live, bool all);

/* Borrowed; ids of threads and processes are valid until the next step. */
const struct seam_profile *seam_live_profile(const struct seam_live *live);

/* Samples in "[other]", in all steps; and damaged records. */
uint64_t seam_live_n_other(const struct seam_live *live);
uint64_t seam_live_n_damaged(const struct seam_live *live);
