/* SPDX-License-Identifier: MIT */
/*
 * fdr_process.h - what the files around start.c share: the state of the process
 *
 * Threads: with the lock, which is taken before the loader's and never after
 * it; so no work of seam_fdr_images_with() may take it.
 */
#ifndef SEAM_FDR_PROCESS_H
#define SEAM_FDR_PROCESS_H

#include <pthread.h>

#include "base/tsc.h"
#include "ring/link/link.h"
#include "traced/fdr/options.h"
#include "traced/fdr/sleds/images.h"

struct seam_fdr_process {
	pthread_mutex_t lock;
	/* the thread that has it, by a variable of its own; NULL: none */
	const void *_Atomic owner;
	uint32_t n_nested_forks;	/* of that thread's */
	/* of that thread, before */
	int cancel_state;
	uint64_t blocked;		/* signals */
	char address[SEAM_LINK_ADDRESS_BYTES];	/* of the recorder; "": none */
	struct seam_fdr_options options;
	struct seam_fdr_images images;
	uint64_t n_adds, n_subs;	/* of the loader, when last patched */
	_Atomic bool is_armed;		/* it has begun, if only to look */
	bool has_source;		/* once, for all beginnings */
	uint32_t n_types, n_registered;	/* announced */
	bool has_noted_unknown, has_noted_behind;
	uint32_t n_matches[SEAM_TRIGGER_MAX];	/* not announced */
	uint32_t matches_due;		/* a bit for each trigger */
	_Atomic bool is_off;		/* for good; changed with the lock */
	bool is_stopped;		/* with that, and was armed before */
	bool is_ending;			/* nothing is wanted */
	bool is_child;			/* it was forked */
	pid_t pid;			/* in a fork's handler: the parent's */
	_Atomic bool is_completing;	/* a thread waits for the bundle */
};

extern struct seam_fdr_process seam_fdr_process;

/* ---- start.c ---- */

/*
 * Handlers are blocked meanwhile, and the thread cannot be cancelled.  False
 * when this thread already holds the lock: a fault handler has interrupted the
 * holder, and the caller proceeds without the lock.
 */
__attribute__((warn_unused_result))
bool seam_fdr_lock(void);
void seam_fdr_unlock(void);

/*
 * With the lock: give ids to functions with sleds, of all that is loaded so
 * far.  The program may have none of its own before.
 */
void seam_fdr_number_functions(void);

/*
 * Whether 'seam record' takes the calls: then it reports to its user, and
 * completes the bundle.
 */
bool seam_fdr_is_recorded(void);

/* Install the handlers of forks, once.  0 or -errno. */
int seam_fdr_fork_init(void);

/*
 * For a moment, while threads record elsewhere: start a recorder for a bundle
 * at @path, of what was recorded @since, connect, and announce all functions;
 * seam_fdr_recorder_stop() ends it.  0 or -errno, with the cause in @why.
 */
int seam_fdr_connect_recorder(const char *path,
			      const struct seam_tsc_tie *since, char *why,
			      size_t why_bytes);

/* ---- select.c ---- */

/*
 * Select and announce the functions that are new in the list; whether there
 * were any.
 */
bool seam_fdr_take_new(void);

/*
 * Announce what is new to the recorder; in a child that has announced nothing,
 * everything.  0 or -errno.
 */
int seam_fdr_announce_new(void);

/* At the end: what the recorder had no room for, if there is any. */
void seam_fdr_announce_rest(void);

/*
 * Patch exactly the selected functions of all images; within
 * seam_fdr_images_with().
 */
void seam_fdr_patch_all(void);

/* Report files that are of no use, once. */
void seam_fdr_note_unknown(void);

#endif /* SEAM_FDR_PROCESS_H */
