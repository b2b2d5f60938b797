/* SPDX-License-Identifier: MIT */
/*
 * recording.h - all that a recording in progress consists of
 *
 * Shared by record.c, which moves it from one stage to the next, plan.c,
 * which opens its events, and account.c, which writes down what it says of
 * itself.  Nobody else's.
 */
#ifndef SEAM_RECORDING_H
#define SEAM_RECORDING_H

#include "base/array.h"
#include "record/bundle.h"
#include "record/child.h"
#include "record/drain.h"
#include "record/event_list.h"
#include "record/follow.h"
#include "record/hotplug.h"
#include "record/keep_hits.h"
#include "record/keep_kernel.h"
#include "record/link.h"
#include "record/loop.h"
#include "record/prompt.h"
#include "record/record.h"
#include "record/running.h"
#include "record/stopped.h"
#include "record/synth.h"

struct seam_recording {
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
	struct seam_prompt prompt;	/* where we run */
	uint64_t full_ns;		/* when a ring was full last */
	struct seam_keep_kernel *kernel_copy;	/* snapshots share it */
	struct seam_keep *keep;		/* mapped files; also snapshots' */
	struct seam_keep_counts kept;	/* in this bundle */
	struct seam_keep_hits hits;	/* with --keep-files */
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
	struct seam_follow follow;	/* later threads, one by one */
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
void seam_recording_note(const struct seam_recording *s, bool verbose,
			 const char *fmt, ...);

/* One round of draining; 0 or -errno, and then it is cut short. */
int seam_recording_drain(struct seam_recording *s, struct seam_err *err);

/* What the recording takes by now: data, and what JITs have streamed. */
uint64_t seam_recording_bytes(const struct seam_recording *s);

/* The id that synthesized records carry. */
uint64_t seam_recording_sideband_id(const struct seam_recording *s);

/* What became of each event, and of the threads, as far as is known. */
int seam_recording_list_results(struct seam_recording *s,
				struct seam_err *err);

/* Append @synth to the file, and free it. */
int seam_recording_append(struct seam_recording *s, struct seam_synth *synth,
			  struct seam_err *err);

/*
 * Count what was lost until now, and write it behind the records: what no
 * record has followed is only in the kernel's counts.  After the results
 * have been listed, at most once a file.
 */
int seam_recording_write_losses(struct seam_recording *s,
				struct seam_err *err);

/*
 * Put into the bundle what symbols will be looked up in: the kernel's, which
 * a reboot renames, and files that no path leads to.
 */
void seam_recording_keep_symbols(struct seam_recording *s);

/*
 * Take the space of the next manifest while there is some: a full disk must
 * not keep a recording from telling that it met one.
 */
int seam_recording_reserve_manifest(struct seam_recording *s,
				    struct seam_err *err);

/* Write the manifest as things stand, into the space that was reserved. */
int seam_recording_write_manifest(struct seam_recording *s, bool complete,
				  struct seam_err *err);

/* End the file with the features of perf.data. */
int seam_recording_write_features(struct seam_recording *s,
				  struct seam_err *err);

#endif /* SEAM_RECORDING_H */
