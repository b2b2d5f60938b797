/* SPDX-License-Identifier: MIT */
/*
 * session.h - a recording in progress
 *
 * Shared by record.c, which takes it from stage to stage, plan.c, which opens
 * its events, programs.c, which adds its services, rounds.c, which drains its
 * rings, and recording.c, which writes its bundles.
 */
#pragma once

#include "record/bundle/kept_files.h"
#include "record/events/event_kinds.h"
#include "record/loop.h"
#include "record/recording.h"
#include "record/drain.h"
#include "record/perf/new_threads.h"
#include "record/perf/sparse.h"
#include "record/perf/stopped.h"
#include "record/perf/switch_history.h"
#include "record/perf/switch_stacks.h"
#include "record/proc/user_share.h"
#include "record/record.h"
#include "record/services/services.h"
#include "record/stacks/blocked_stacks.h"
#include "record/stacks/live_stacks.h"

struct seam_programs;		/* programs.c */

/* Of rounds.c. */
struct seam_rounds {
	struct seam_sched sched;	/* the recorder's CPU */
	uint64_t full_ns;	/* when a ring was above its watermark last */
	bool is_delayed;	/* samples are not enabled yet (--delay) */
	uint64_t enable_ns;	/* when they will be */
	uint64_t end_ns;	/* of the recording; UINT64_MAX: none */
	uint64_t snapshot_ns;	/* of the next snapshot; UINT64_MAX: none */
	unsigned int n_snapshots;
	uint64_t wait_end_ns;	/* when seam_session_wait() gives up */
	bool must_end;		/* seam_session_wait() has found the end */
	bool wants_snapshot;	/* and a request for a snapshot */
	uint64_t drained_ns;	/* the last time */
	int failed;		/* -errno of the first drain that failed */
	struct seam_err why;
};

/*
 * The command.  Its process exists before the command runs in it, so that
 * events can be opened for its pid first.  It calls exec() when it reads a byte
 * from a socket, and exits if that is closed.  It has the signal mask, the
 * signal actions and the limits that the recorder was started with.
 */
struct seam_child {
	pid_t pid;		/* 0: none */
	bool started;
	int socket;	/* to exec(): a byte; back, if it fails: errno */
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
	struct seam_session_copies {	/* of stacks: record.h */
		uint32_t bytes;		/* of the largest copy; 0: none */
		size_t ring_bytes;	/* that could be mapped; 0: not known */
		bool was_limited;	/* more could not be locked */
		bool share_rings;	/* the stacks of waits, with samples */
		bool by_frame_pointers;	/* copies were the default, but: */
		char why[200];
	} copies;
	struct seam_sources sources;
	size_t n_watched;		/* sources that the loop waits for */
	size_t n_forbidden;		/* processes of .user left out */

	/* From the rings to the file. */
	struct seam_loop loop;
	struct seam_rounds rounds;
	struct seam_drain drain;
	struct seam_live_stacks stacks;
	struct seam_blocked_stacks blocked;	/* --off-cpu */
	struct seam_switch_history history;
	uint64_t switches_from_ns;	/* of threads that ran before; 0: none */
	struct seam_recording recording;

	/* Readers of the side-band. */
	struct seam_kept_files kept_files;	/* for all bundles */
	struct seam_user_shares shares;		/* of the mappings */
	int kernel_fd;		/* the last copy of its symbols; 0: none */
	uint64_t kernel_modules; /* hash of those loaded then; 0: unknown */
	struct seam_services services;	/* rings of programs */
	struct seam_programs *programs;	/* the recorder's own; owned */
	struct seam_new_threads new_threads;
	struct seam_sparse sparse;
	struct seam_switch_stacks switch_stacks;
	struct seam_stopped stopped;
};

/* ---- session.c: steps that all stages share; they call no stage ---- */

/* Report to the user, in one line. */
__attribute__((format(printf, 3, 4)))
void seam_session_note(const struct seam_session *s, bool verbose,
		       const char *fmt, ...);

/* Have the loop wait for all sources that it does not wait for yet. */
int seam_session_watch(struct seam_session *s, struct seam_err *err);

/*
 * Pass a side-band record to kept_files and stacks.  @is_new: from
 * a ring, not made from /proc.
 */
void seam_session_track_files(struct seam_session *s,
			      const struct seam_perf_sideband *record,
			      bool is_new);

/*
 * Code of a JIT in process @pid, for stacks that are unwound: whole JITDUMP
 * records.  @context is the session.
 */
void seam_session_take_code(void *context, uint32_t pid,
			    struct seam_bytes group);

/* The size of @file so far, and of the files of services. */
uint64_t seam_session_bytes(const struct seam_session *s,
			    const struct seam_data_file *file);

/* Whether the command has ended: its status is in the result then. */
bool seam_session_check_command(struct seam_session *s);

/*
 * True when the signal ends the recording.  The first signal is for the
 * command: the terminal has sent it there too, or we do, and the recording ends
 * when the command does.  A second one ends the recording at once.  So does the
 * first if it was ignored at our start: the command ignores it too.
 */
bool seam_session_ends_on(struct seam_session *s,
			  const struct seam_loop_signal *signal);

/*
 * Limit work outside the rounds: seam_session_wait() returns false @ns from
 * now.
 */
void seam_session_allow(struct seam_session *s, uint64_t ns);

/*
 * Wait until @fd is readable or @timeout_ms is over, and read signals.  False:
 * stop the work, because of a signal or because the allowed time is over.
 * @session is a struct seam_session.
 */
bool seam_session_wait(void *session, int fd, int timeout_ms);

/*
 * ---- plan.c: from the options to open events ----
 *
 * Nothing is on disk yet, so a refusal leaves no trace.
 */

/* Open the events of the options, once the command is forked. */
int seam_plan_open(struct seam_session *s, struct seam_err *err);

/*
 * What the events of the options are for a sampler: the CPU time between two
 * samples of the first event that samples CPU time; of a number of cycles,
 * whose time is not known, 1 ms; 0: no event does.  Before seam_plan_open(),
 * which reports the cause if this is false.
 */
bool seam_plan_clock(struct seam_session *s, uint64_t *period_ns,
		     bool *has_aux);

/* Whether all threads are recorded: -a, or CPUs and nothing else. */
bool seam_plan_is_system_wide(const struct seam_record_options *options);

/*
 * Whether the command is recorded.  Beside -a, -p and -t it only defines how
 * long to record, as in perf.
 */
bool seam_plan_records_command(const struct seam_record_options *options);

/* Report to the user what is left out or smaller than requested. */
void seam_plan_report(const struct seam_session *s);

/*
 * ---- programs.c: the recorder's own services ----
 *
 *	jit	code of JITs (jit_service.h)
 *	guest	samples of libseam-sampler, where the command runs a VM
 *		(guest_service.h, --layers)
 *	calls	of instrumented programs (--trace)
 *
 * This is the only file that names them: the rest of the recorder has
 * session->services (service.h).
 */

/*
 * Add the services and open their link; then fork the command, with its
 * address and libraries in its environment.  Before there are threads.  0 or
 * -errno.
 */
int seam_programs_fork_command(struct seam_session *s, struct seam_err *err);

/* Start the command.  Returns 0 when it runs, or the -errno of exec(). */
int seam_programs_start_command(struct seam_session *s, struct seam_err *err);

/* The rings are closed: complete what the services write, and report. */
void seam_programs_finish(struct seam_session *s);

/* Valid on a zeroed session. */
void seam_programs_fini(struct seam_session *s);

/*
 * ---- tracing.c: the calls of instrumented programs, --trace ----
 *
 * What fdr_service.h takes from programs becomes xray/ of the recording, and
 * of each snapshot of a flight recorder (doc/design/calls.md).
 */

struct seam_preload;			/* preload/preload.h */
struct seam_tracing;

/*
 * Before the command is forked, and before any thread: add the services, and
 * libseam-fdr to @preload.  0, with NULL in *@made without --trace; -errno
 * where programs cannot be traced.
 */
int seam_tracing_new(struct seam_tracing **made, struct seam_session *s,
		     struct seam_preload *preload, struct seam_err *err);

/* The value of SEAM_TRACE for the command. */
const char *seam_tracing_options(const struct seam_tracing *tracing);

/* May be NULL. */
void seam_tracing_free(struct seam_tracing *tracing);

/*
 * ---- rounds.c: wait, drain, check limits ----
 *
 * A round begins with a wakeup or a timeout and drains the rings.  It makes a
 * snapshot if one is due, and ends the recording on a signal, at a limit, or
 * when all recorded processes have ended.
 *
 * The first drain that fails cuts the recording short: no more records are
 * written, and those in the file stay readable.  The rounds go on until the
 * command ends.
 */

/* Run rounds until the recording ends.  0, or as seam_rounds_failure(). */
int seam_rounds_run(struct seam_session *s, struct seam_err *err);

/*
 * Drain the rings once: in the middle of a round, for long work while programs
 * are recorded, and before and after the rounds.  0 or -errno.
 */
int seam_rounds_drain(struct seam_session *s);

/*
 * The same if they were not drained for some ms, and read signals without
 * waiting.  False: stop, as seam_session_wait() says.  @session is a struct
 * seam_session.
 */
bool seam_rounds_wait_and_drain(void *session);

/* -errno of the drain that failed, with its cause in @err; 0: none has. */
int seam_rounds_failure(const struct seam_session *s, struct seam_err *err);

/* Make a snapshot; after a failure the recording goes on.  True: it is made. */
bool seam_rounds_snapshot(struct seam_session *s);

/* Write no more records; those in the file stay readable. */
void seam_rounds_cut_short(struct seam_session *s);
