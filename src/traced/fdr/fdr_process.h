/* SPDX-License-Identifier: MIT */
/*
 * fdr_process.h - what the files around start.c share: the state of the process
 *
 *	constructor, with SEAM_TRACE; or seam_fdr_start()
 *	  options		what to record
 *	  source_*		where to
 *	  images		the loaded images and their functions
 *	  announce_functions	their ids
 *	  select		the selected functions
 *	  patch			their sleds
 *	dlopen(), dlclose()		seam_fdr_refresh()
 *	a seccomp filter		seam_fdr_end()
 *
 * The library does nothing without SEAM_TRACE until the program itself begins;
 * with SEAM_TRACE, it connects to the recorder when an image has calls to
 * record.  A library that is loaded is patched when dlopen() returns, so what
 * its constructors call is not recorded.
 *
 * Not in handlers.  Threads: any, with the lock, which is taken before the
 * loader's lock and never after it: no work of seam_fdr_images_with() may take
 * the lock.  errno is kept.
 */
#pragma once

#include <pthread.h>

#include "base/tsc.h"
#include "ring/link/link.h"
#include "traced/fdr/options.h"
#include "traced/fdr/sleds/images.h"

/* Names that the program has registered, of types of events or functions. */
struct seam_fdr_names {
	SEAM_ARRAY(struct seam_xray_named) list;
	size_t n_announced;
};

struct seam_fdr_process {
	pthread_mutex_t lock;
	/* the thread that has the lock, by a variable of its own */
	const void *_Atomic owner;
	uint32_t n_nested_forks;	/* of that thread */
	/* of that thread, before */
	int cancel_state;
	uint64_t blocked;		/* signals */
	char address[SEAM_LINK_ADDRESS_BYTES];	/* of the recorder; "": none */
	struct seam_fdr_options options;
	struct seam_fdr_images images;
	struct seam_self_loads loads;	/* when last patched */
	_Atomic bool is_armed;		/* begun, if only to look for calls */
	bool has_source;		/* once, for all beginnings */
	struct seam_fdr_names types, functions;
	bool has_noted_unknown, has_noted_behind;
	uint32_t n_matches[SEAM_TRIGGER_MAX];	/* not announced */
	uint32_t matches_due;		/* a bit for each trigger */
	_Atomic bool is_off;		/* for good; changed with the lock */
	bool is_stopped;		/* with is_off, and was armed before */
	bool is_ending;			/* no function is selected */
	bool is_child;			/* of a fork */
	pid_t pid;			/* in a fork's handler: the parent's */
	_Atomic bool is_completing;	/* a thread waits for the bundle */
};

extern struct seam_fdr_process seam_fdr_process;

/* Whether calls are recorded now.  Written by start.c, read anywhere. */
extern _Atomic bool seam_fdr_is_on;

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
 * With the lock: give ids to the functions with sleds of all that is loaded so
 * far.  The program may have no ids of its own before.
 */
void seam_fdr_number_functions(void);

/*
 * Whether 'seam record' takes the calls: then it reports to its user, and
 * completes the bundle.
 */
bool seam_fdr_is_recorded(void);

/*
 * For a moment, while threads record elsewhere: start a recorder for a bundle
 * at @path, of what was recorded @since, connect, and announce all functions;
 * seam_fdr_recorder_stop() ends it.  0 or -errno.
 */
int seam_fdr_connect_recorder(const char *path,
			      const struct seam_tsc_tie *since);

/*
 * As seam_fdr_stop().  With @why not NULL recording ends for good, and @why is
 * a note for the recorder's user: from then on there is no system call of ours,
 * until seam_fdr_resume() says that @why did not come true.
 */
int seam_fdr_end(const char *why);
void seam_fdr_resume(void);

/* Libraries were loaded or unloaded. */
void seam_fdr_refresh(void);

/* Send a line for the recorder's user. */
__attribute__((format(printf, 1, 2)))
void seam_fdr_note(const char *format, ...);

/* ---- select.c ---- */

/* Select and announce the functions that are new in the list. */
void seam_fdr_take_new(void);

/* Other options: the functions of -finstrument-functions are selected anew. */
void seam_fdr_select_none(void);

/*
 * Patch exactly the selected functions of all images; within
 * seam_fdr_images_with().
 */
void seam_fdr_patch_all(void);
