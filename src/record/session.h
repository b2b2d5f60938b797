/* SPDX-License-Identifier: MIT */
/*
 * session.h - a recording in progress
 *
 * Shared by record.c, which takes it from stage to stage, plan.c, which opens
 * its events, rounds.c, which drains them, recording.c and snapshot.c, which
 * write its bundles.
 */
#ifndef SEAM_SESSION_H
#define SEAM_SESSION_H

#include "record/bundle/kept_hits.h"
#include "record/events/event_list.h"
#include "record/flight.h"
#include "record/loop.h"
#include "record/recording.h"
#include "record/perf/drain.h"
#include "record/perf/new_threads.h"
#include "record/perf/sparse.h"
#include "record/perf/stopped.h"
#include "record/proc/user_share.h"
#include "record/proc/child.h"
#include "record/record.h"
#include "record/sched.h"
#include "record/services/guest_service.h"
#include "record/services/jit_service.h"
#include "record/services/fdr_service.h"
#include "record/services/services.h"
#include "record/stacks/live_stacks.h"
#include "record/trace/trace_names.h"
#include "record/trace/trigger_hits.h"

/* Of tracing.c: what --trace needs.  Zeroed is valid: it is not used. */
struct seam_tracing {
	bool is_used;
	struct seam_fdr_service fdr;
	struct seam_trace_logs logs;	/* of the recording */
	struct seam_address_names names;	/* a process that reads files */
	char *options;			/* value of SEAM_TRACE; owned */
	char *old_options;		/* of the environment; owned */
};

/* Of rounds.c. */
struct seam_rounds {
	struct seam_sched sched;	/* the recorder's CPU */
	uint64_t full_ns;	/* when a ring was above its watermark last */
	bool is_delayed;	/* samples are not enabled yet (--delay) */
	uint64_t enable_ns;	/* when they will be */
	uint64_t end_ns;	/* of the recording; UINT64_MAX: none */
	uint64_t snapshot_ns;	/* of the next snapshot; UINT64_MAX: none */
	unsigned int n_snapshots;
	uint64_t wait_end_ns;	/* when seam_rounds_wait() gives up */
	bool must_end;		/* seam_rounds_wait() has found the end */
	bool wants_snapshot;	/* and a request for a snapshot */
	uint64_t drained_ns;	/* of seam_rounds_drain(), the last one */
	int failed;		/* -errno of seam_rounds_drain() */
	struct seam_err why;
};

struct seam_session {
	const struct seam_record_options *options;
	struct seam_record_result *result;
	struct seam_kernel_identity kernel;	/* 0: may not be read */
	uint64_t start_ns, start_wall_ns;	/* the same moment */

	/* The command, and the events that are recorded. */
	struct seam_child child;
	struct seam_event_list events;
	uint64_t frequency_hz;		/* of samples; 0: by period */
	struct seam_session_copies {	/* of stacks: stack_plan.h */
		uint32_t bytes;		/* of the largest copy; 0: none */
		size_t ring_bytes;	/* that could be mapped; 0: not known */
		bool was_limited;	/* more could not be locked */
		bool by_frame_pointers;	/* copies were the default, but: */
		char why[200];
	} copies;
	struct seam_sources sources;
	size_t n_watched;		/* sources that the loop waits for */

	/* From the rings to the file. */
	struct seam_loop loop;
	struct seam_rounds rounds;
	struct seam_drain drain;
	struct seam_live_stacks stacks;
	struct seam_recording recording;

	/* Readers of the side-band. */
	struct seam_kept_files kept_files;	/* for all bundles */
	struct seam_kept_hits kept_hits;	/* with --keep-files */
	struct seam_user_shares shares;		/* of the mappings */
	int kernel_fd;		/* the last copy of its symbols; 0: none */
	uint64_t kernel_modules; /* hash of those loaded then; 0: unknown */
	struct seam_services services;	/* rings of programs */
	struct seam_jit_service jit;
	struct seam_preload preload;
	struct seam_guest_service guest; /* if preload.is_used */
	struct seam_tracing tracing;
	struct seam_flight flight;
	struct seam_trigger_hits triggers;
	struct seam_new_threads new_threads;
	struct seam_sparse sparse;
	struct seam_stopped stopped;
};

/* Report to the user, in one line. */
__attribute__((format(printf, 3, 4)))
void seam_session_note(const struct seam_session *s, bool verbose,
		       const char *fmt, ...);

/* Have the loop wait for all sources that it does not wait for yet. */
int seam_session_watch(struct seam_session *s, struct seam_err *err);

/*
 * Pass a side-band record to kept_files, kept_hits and stacks.  @is_new: from
 * a ring, not made from /proc.
 */
void seam_session_track_files(struct seam_session *s,
			      const struct seam_perf_sideband *record,
			      bool is_new);

/* One round of draining.  After -errno the recording is cut short. */
int seam_session_drain(struct seam_session *s, struct seam_err *err);

/* Write no more records; those in the file stay readable. */
void seam_session_cut_short(struct seam_session *s);

/* The size of @file so far, and of the dumps that JITs stream. */
uint64_t seam_session_bytes(const struct seam_session *s,
			    const struct seam_data_file *file);

/*
 * ---- tracing.c: the calls of instrumented programs (--trace) ----
 */

/*
 * Before the command is forked, and before any thread: have the services, and
 * libseam-fdr in s->preload.  0; -errno where that cannot be.
 */
int seam_tracing_prepare(struct seam_session *s, struct seam_err *err);

/* Change the environment, which the command inherits; and change it back. */
void seam_tracing_set(struct seam_tracing *tracing);
void seam_tracing_restore(struct seam_tracing *tracing);

/* There is a bundle: its logs can be written. */
void seam_tracing_begin(struct seam_session *s);

/* Once a round. */
void seam_tracing_step(struct seam_session *s);

/*
 * Complete @logs, of the recording or of a snapshot, in whose bundle the names
 * are written too.  The first failure is reported to the user.
 */
void seam_tracing_complete(struct seam_session *s,
			   struct seam_trace_logs *logs,
			   struct seam_trace_name_counts *counts);

/* The services are closed: complete the logs, and count. */
void seam_tracing_finish(struct seam_session *s);

void seam_tracing_fini(struct seam_tracing *tracing);

/*
 * ---- rounds.c: wait, drain, check limits ----
 *
 * A round begins with a wakeup or a timeout and drains the rings.  It makes a
 * snapshot if one is due, and ends the recording on a signal, at a limit, or
 * when all recorded processes have ended.
 */

/* Run rounds until the recording ends.  0 or -errno of a write. */
int seam_rounds_run(struct seam_session *s, struct seam_err *err);

/*
 * Limit work outside the rounds: seam_rounds_wait() returns false @ns from now.
 */
void seam_rounds_allow(struct seam_session *s, uint64_t ns);

/*
 * Wait until @fd is readable or @timeout_ms is over, and read signals.  False:
 * stop the work, because of a signal or because the allowed time is over.
 * @session is a struct seam_session.
 */
bool seam_rounds_wait(void *session, int fd, int timeout_ms);

/*
 * Drain the rings in the middle of a round, for long work while programs are
 * recorded; also with seam_rounds_wait(), if they were not drained for some ms.
 * A failure is one of the round.
 */
int seam_rounds_drain(struct seam_session *s);
bool seam_rounds_wait_and_drain(struct seam_session *s, int fd,
				int timeout_ms);

/*
 * After the recording: wait until the command has ended, for its exit status.
 * A command that is not recorded itself, with -p or -t, is terminated.
 */
void seam_rounds_wait_for_command(struct seam_session *s);

#endif /* SEAM_SESSION_H */
