/* SPDX-License-Identifier: MIT */
/*
 * tally.h - how many samples each distinct stack has
 *
 * The first step of every report: one pass over the samples, after which
 * only distinct stacks are left to work on, a hundredth of them or less.
 */
#pragma once

#include "model/profile/selection.h"

/* What the samples of a stack are divided by. */
enum seam_group {
	SEAM_GROUP_NONE,
	SEAM_GROUP_COMM,	/* string: the thread's name at the sample */
	SEAM_GROUP_THREAD,
	SEAM_GROUP_PROCESS,
	SEAM_GROUP_CPU,		/* UINT16_MAX: not known */
	SEAM_GROUP_VMSTATE,	/* SEAM_VMSTATE_NONE: not known, or no VM */
	/* String: why a thread waited; 0: not known; SEAM_GROUP_RAN. */
	SEAM_GROUP_WAIT,
	SEAM_GROUP_WAKER,	/* the same: who woke it */
	SEAM_GROUP_CGROUP,	/* string: its path; 0: not known */
	SEAM_GROUP_RUNNING,	/* how many threads ran; 0: not known */
	SEAM_GROUP_HOST,	/* string, of batches of a fleet; 0 of others */
	SEAM_GROUP_SERVICE,	/* likewise */
};

/* In place of a reason: the sample is no wait. */
#define SEAM_GROUP_RAN (SEAM_NONE - 1)

enum { SEAM_GROUP_NAME = 256 };	/* room for a name, and its end */

/*
 * The name of group @id without its number: "CPU" of a CPU, "threads" of
 * RUNNING; "none" for no VM state.
 */
const char *seam_group_text(const struct seam_profile *profile,
			    enum seam_group group, uint32_t id);

/* A tid, pid, CPU, number of threads; -1: not known, or no such group. */
int32_t seam_group_number(const struct seam_profile *profile,
			  enum seam_group group, uint32_t id);

enum { SEAM_GROUP_KINDS = 4 };

/* One id for each kind, in their order. */
struct seam_group_ids {
	uint32_t items[SEAM_GROUP_KINDS];
};

/* Several kinds at once: a tally's group is an index into this. */
struct seam_groups {
	enum seam_group kinds[SEAM_GROUP_KINDS];
	size_t n_kinds;
	struct seam_group_ids *items;
	size_t n, cap;
	struct seam_index index;
};

void seam_groups_fini(struct seam_groups *groups);

struct seam_tally {
	uint32_t stack;		/* of the selection */
	uint32_t group;		/* string, thread or process; 0 for none */
	uint64_t samples;
	uint64_t weight;	/* the samples' weights added up */
};

/* Zeroed is valid and empty; free(items) ends it. */
struct seam_tallies {
	struct seam_tally *items;
	size_t n, cap;
	uint64_t samples, weight;	/* of all */
};

/*
 * Count the selected samples of @event (SEAM_NONE: of all), for each
 * distinct stack and group; sorted by group, then stack.  0 or -ENOMEM.
 *
 * Cost: a few nanoseconds a sample, plus the sort of the tallies.
 */
int seam_tallies_make(struct seam_tallies *tallies,
		      const struct seam_selected *selected, uint32_t event,
		      enum seam_group group);

/*
 * The same for several kinds: @groups has kinds and n_kinds set and is
 * zeroed otherwise.  seam_groups_fini() is due in any case.
 */
int seam_tallies_make_by(struct seam_tallies *tallies,
			 struct seam_groups *groups,
			 const struct seam_selected *selected, uint32_t event);

/*
 * Replace the groups of @tallies by what @put returns for their names, so that
 * equal ones can merge.  0, or -ENOMEM where @put returned SEAM_NONE.
 */
int seam_tallies_name(struct seam_tallies *tallies,
		      const struct seam_profile *profile, enum seam_group group,
		      uint32_t (*put)(void *context, const char *name),
		      void *context);
