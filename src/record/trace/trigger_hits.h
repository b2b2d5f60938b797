/* SPDX-License-Identifier: MIT */
/*
 * trigger_hits.h - triggers that programs have hit, and their snapshots
 *
 * A program sends a hit at once, with a number that grows from 1.  Until the
 * recorder has copied its calls ("resume"), --after later, each of its threads
 * uses half of its memory at most (traced/fdr/check/checked.h).
 *
 * One snapshot is for all hits that are due, and for all others of the same
 * process.  After max_snapshots, or as many that failed one after another (the
 * disk is full), the programs are resumed for good; later hits are only
 * counted.
 *
 * Threads: one, the recorder's.
 */
#ifndef SEAM_TRIGGER_HITS_H
#define SEAM_TRIGGER_HITS_H

#include "base/array.h"
#include "wire/xray/trigger_text.h"
#include "wire/xray/xray_functions.h"

enum {
	SEAM_TRIGGER_MAX_HITS = 256,	/* waiting; others are only counted */
	SEAM_TRIGGER_NO_MORE = UINT32_MAX,	/* never wait again */
};

struct seam_trigger_hit {
	struct seam_xray_trigger met;	/* trigger: index in the options */
	uint32_t pid;
	uint64_t due_ns;	/* of its snapshot; CLOCK_MONOTONIC */
};

/* Of one trigger. */
struct seam_trigger_counts {
	uint64_t n_hits;
	uint64_t n_functions;	/* that it is for, in all programs */
	uint64_t since_ns;	/* first announcement of n_functions; 0: none */
	bool was_reported;	/* that there are none */
};

struct seam_trigger_resumed {
	uint32_t pid;
	uint64_t tsc;
};

struct seam_trigger_hits {
	/* Set by the caller; max_snapshots 0: none. */
	size_t n_triggers;	/* at most SEAM_TRIGGER_MAX */
	uint64_t after_ns;
	unsigned int max_snapshots;
	void (*resume)(void *context, uint32_t pid, uint32_t number);
	void *context;

	SEAM_ARRAY(struct seam_trigger_hit) waiting;	/* as they came */
	SEAM_ARRAY(struct seam_trigger_hit) taken;	/* of this snapshot */
	/* when each process was resumed last */
	SEAM_ARRAY(struct seam_trigger_resumed) resumed;
	struct seam_trigger_counts counts[SEAM_TRIGGER_MAX];
	unsigned int n_snapshots;
	unsigned int n_failed;	/* since the last snapshot */
	/* without a snapshot: after the last, too many, or left out */
	uint64_t n_beyond;
};

/* Process @pid has met @trigger; one that does not exist is ignored. */
void seam_trigger_hits_add(struct seam_trigger_hits *hits, uint32_t pid,
			   const struct seam_xray_trigger *trigger);

/* A program has @n functions that @trigger is for. */
void seam_trigger_hits_functions(struct seam_trigger_hits *hits,
				 uint32_t trigger, uint32_t n);

/* CLOCK_MONOTONIC of the next snapshot; UINT64_MAX: none is due. */
uint64_t seam_trigger_hits_due_ns(const struct seam_trigger_hits *hits);

/*
 * Fill hits->taken with what a snapshot at @now_ns is for (UINT64_MAX: all).
 * Returns how many; 0: none is to be made.
 */
size_t seam_trigger_hits_take(struct seam_trigger_hits *hits, uint64_t now_ns);

/* Hits of the same processes, met during the copy: in the same snapshot. */
void seam_trigger_hits_join(struct seam_trigger_hits *hits);

/*
 * The calls of hits->taken are copied, and it is @tsc.  Hits from before that
 * which arrive later join them until seam_trigger_hits_done(); after it they
 * are only counted.
 */
void seam_trigger_hits_resume(struct seam_trigger_hits *hits, uint64_t tsc);

/* Their snapshot is complete, or could not be made. */
void seam_trigger_hits_done(struct seam_trigger_hits *hits, bool has_snapshot);

/*
 * A trigger that no function is for, one second after a program announced its
 * functions or at the @end.  Returns its index, once; or -1.
 */
int seam_trigger_hits_unknown(struct seam_trigger_hits *hits, uint64_t now_ns,
			      bool at_end);

/* Valid on a zeroed struct. */
void seam_trigger_hits_fini(struct seam_trigger_hits *hits);

#endif /* SEAM_TRIGGER_HITS_H */
