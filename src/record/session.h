/* SPDX-License-Identifier: MIT */
/*
 * recording.h - all that a recording in progress consists of
 *
 * Shared by record.c, which moves it from one stage to the next, plan.c,
 * which opens its events, and account.c, which writes down what it says of
 * itself.  Nobody else's.
 */
#ifndef SEAM_SESSION_H
#define SEAM_SESSION_H

#include "base/array.h"
#include "record/bundle/bundle.h"
#include "record/bundle/kept_hits.h"
#include "record/bundle/kept_kernel.h"
#include "record/events/event_list.h"
#include "record/loop.h"
#include "record/perf/drain.h"
#include "record/perf/hotplug.h"
#include "record/perf/new_threads.h"
#include "record/perf/stopped.h"
#include "record/perf/synth.h"
#include "record/proc/child.h"
#include "record/proc/running_kernel.h"
#include "record/record.h"
#include "record/sched.h"
#include "record/services/link_service.h"

struct seam_session {
	const struct seam_record_options *options;
	struct seam_record_result *result;

	struct seam_loop loop;
	struct seam_child child;
	struct seam_bundle bundle;
	struct seam_event_list events;	/* the side-band's last */
	bool system_wide;
	struct seam_sources sources;
	struct seam_perf_event *described;	/* events, with their ids */

	int data;			/* the file; -1: none */
	int meta;			/* the last manifest's; -1: none */
	struct seam_perf_writer writer;
	struct seam_compress compress;
	struct seam_auxtrace aux;
	struct seam_drain drain;
	struct seam_sched prompt;	/* where we run */
	uint64_t full_ns;		/* when a ring was full last */
	struct seam_kept_kernel *kernel_copy;	/* snapshots share it */
	struct seam_kept_files *keep;		/* mapped files; also snapshots' */
	struct seam_kept_files_counts kept;	/* in this bundle */
	struct seam_kept_hits hits;	/* with --keep-files */
	/*
	 * Wait until @fd is readable, or @timeout_ms, and read signals.  False:
	 * one of them, or the time, wants an end of it.
	 */
	bool (*wait)(void *context, int fd, int timeout_ms);
	void *wait_context;
	uint64_t wait_end_ns;		/* when there is no more time */
	bool is_snapshot;		/* of another that goes on */
	bool must_end;			/* a signal came while we waited */
	struct seam_record_link link;	/* JITs that tell us */
	struct seam_new_threads follow;	/* later threads, one by one */
	struct seam_stopped stopped;	/* programs that the kernel hides */
	struct seam_hotplug hotplug;	/* CPUs that went or came */
	bool delayed;			/* samples are still off */
	uint64_t enable_ns;		/* until then */
	uint64_t snapshot_ns;		/* when the next is due, or UINT64_MAX */
	unsigned int n_snapshots;
	uint64_t end_ns;		/* when to end; UINT64_MAX: never */
	struct seam_running_kernel kernel;
	uint64_t hz;			/* of samples; 0: by period */
	uint64_t start_ns, start_wall_ns;
};

/* Tell the user, in one line. */
__attribute__((format(printf, 3, 4)))
void seam_session_note(const struct seam_session *s, bool verbose,
			 const char *fmt, ...);

/* One round of draining; 0 or -errno, and then it is cut short. */
int seam_session_drain(struct seam_session *s, struct seam_err *err);

/* What the recording takes by now: data, and what JITs have streamed. */
uint64_t seam_session_bytes(const struct seam_session *s);

/* The id that synthesized records carry. */
uint64_t seam_session_sideband_id(const struct seam_session *s);

/* What became of each event, and of the threads, as far as is known. */
int seam_recording_list_results(struct seam_session *s,
				struct seam_err *err);

/* Append @synth to the file, and free it. */
int seam_session_append(struct seam_session *s, struct seam_synth *synth,
			  struct seam_err *err);

/*
 * Count what was lost until now, and write it behind the records: what no
 * record has followed is only in the kernel's counts.  After the results
 * have been listed, at most once a file.
 */
int seam_session_write_losses(struct seam_session *s,
				struct seam_err *err);

/*
 * Put into the bundle what symbols will be looked up in: the kernel's, which
 * a reboot renames, and files that no path leads to.
 */
void seam_session_finish_bundle(struct seam_session *s);

/*
 * Take the space of the next manifest while there is some: a full disk must
 * not keep a recording from telling that it met one.
 */
int seam_session_reserve_manifest(struct seam_session *s,
				    struct seam_err *err);

/* Write the manifest as things stand, into the space that was reserved. */
int seam_session_write_manifest(struct seam_session *s, bool complete,
				  struct seam_err *err);

/* End the file with the features of perf.data. */
int seam_session_write_features(struct seam_session *s,
				  struct seam_err *err);

#endif /* SEAM_SESSION_H */
