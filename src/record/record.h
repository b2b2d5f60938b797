/* SPDX-License-Identifier: MIT */
/*
 * record.h - record a command, or a process that runs, into a bundle
 *
 * The one call that makes a recording: it opens the events, starts the
 * command, drains until the end and leaves a bundle that opens in Seam and
 * in perf.  The command is never held up: when the disk is full or a write
 * fails, it goes on and the recording ends.
 *
 * Threads: one recording a process, because signals are the process's.
 */
#ifndef SEAM_RECORD_H
#define SEAM_RECORD_H

#include "base/base.h"
#include "base/err.h"
#include "record/proc/procfs.h"

enum {
	SEAM_RECORD_FREQUENCY_HZ = 4000,	/* as perf's */
	SEAM_RECORD_RING_BYTES = 512 * 1024,	/* for each CPU, as perf's */
	SEAM_RECORD_AREA_BYTES = 4 * 1024 * 1024,	/* AUX, as perf's */
};

struct seam_record_options {
	const char *const *events;	/* lists "a,b"; none: the default */
	size_t n_events;
	uint64_t frequency_hz;		/* UINT64_MAX: as high as allowed */
	uint64_t period;		/* in its place; 0: frequency_hz */
	bool callchains;		/* by frame pointers */
	const char *filter;		/* of all tracepoints; NULL: none */
	bool switch_events;		/* SWITCH records beside the samples */
	bool namespaces, cgroups;	/* records of these */
	bool data_addresses;		/* of what was accessed */
	int compress_level;		/* of zstd; 0: not compressed */
	size_t ring_bytes;		/* of each ring; a power of two */
	size_t area_bytes;		/* of each AUX area; 0: the default */
	size_t jit_ring_bytes;		/* of each JIT that streams; as above */
	bool ring_auto;			/* in its place: as large as can be */
	int realtime;			/* priority of the recorder; 0: none */
	uint64_t watermark;		/* bytes in a ring to a wake-up; 0 */
	const char *output;		/* the bundle's folder */
	/*
	 * What is watched: a command, processes and threads, or the whole
	 * machine, then until the command ends if there is one.  CPUs alone
	 * mean all that runs on them; else they limit what is sampled.
	 */
	struct seam_number_list pids, tids, cpus;	/* borrowed */
	bool system_wide;
	bool no_inherit;		/* without what they start */
	bool per_thread;		/* a ring a thread, not a CPU */
	char **command;			/* ends with NULL; NULL: none */
	uint64_t delay_ms;		/* before the first sample */
	/*
	 * Keep the newest samples only; a snapshot is made on SIGUSR2, at
	 * intervals of so many ns (0: none), and at the end.
	 */
	bool overwrite;
	bool aux_snapshots;		/* AUX areas run free; the same then */
	uint64_t aux_snapshot_bytes;	/* of each area; 0: all of it */
	uint64_t snapshot_ns;
	uint64_t duration_ns;		/* then it ends; 0: no limit */
	uint64_t max_bytes;		/* of its files; then it ends; 0: none */
	bool keep_files;		/* copy those that samples are in */
	const char *const *words;	/* the command line, for the record */
	size_t n_words;
	/* What the user should know, one line each.  May be NULL. */
	void (*note)(void *context, bool verbose, const char *text);
	void *context;
};

/* What became of one event. */
struct seam_record_event {
	char name[256];
	uint64_t n_samples;
	uint64_t n_lost;
};

struct seam_record_result {
	/*
	 * 0; or the -errno that exec() gave: the command was not started
	 * and there is no recording.
	 */
	int start_error;
	bool command_ended;	/* wait_status tells how */
	int wait_status;	/* as from waitpid() */
	bool stopped_command;	/* by us, because -p's processes ended */
	int signal;		/* ended the recording before that; or 0 */
	bool cut_short;		/* by a failed write; the chain says which */
	bool skipped;		/* symbols that could have been kept */
	const char *limit;	/* the option that ended it; NULL: none did */
	bool was_moved;		/* a later recording took its name, or a user */
	char place[4096];	/* where it is then */
	bool was_removed;	/* while it was written: nothing is left */

	uint64_t n_samples;
	uint64_t n_lost;	/* for want of ring space, or paused */
	uint64_t n_paused;	/* of them: while a snapshot was copied */
	uint64_t n_unwritten;	/* drained, but not in the file */
	uint64_t n_throttled;	/* times the kernel held sampling back */
	const char *area_event;	/* what wrote AUX areas; in events, or NULL */
	uint64_t area_bytes;	/* of AUX areas, in the file */
	/* AUX records that tell of a full area, gaps, or colliding samples. */
	uint64_t n_truncated, n_partial, n_collision;
	uint64_t n_jit;		/* pieces of code and moves, streamed */
	uint64_t n_jit_lost;	/* those that did not come through */
	/* Those sampled, the side-band behind them; owned, or NULL. */
	struct seam_record_event *events;
	size_t n_events;
	/* A thread at a time: threads that ran before they were opened. */
	uint64_t n_late, late_ns, longest_late_ns;
	uint64_t n_unseen;	/* threads that ended before they were opened */
	uint64_t n_refused;	/* those that could not be opened, and why */
	char refusal[256];
	/* Programs whose events the kernel stopped; one of their names. */
	uint64_t n_stopped;
	char stopped[16];
	/* CPUs that went offline and came back, and that came later. */
	unsigned int n_cpus_back, n_cpus_new;
	int first_cpu;		/* one of them */
	uint64_t cpu_ns;	/* of one, from when it went to the end */
	uint64_t duration_ns;	/* of the recording */
	uint64_t bundle_bytes;	/* of all files in it */
};

/*
 * Returns 0 when the recording is there and whole.  With -errno and a chain
 * in @err either nothing was recorded, or, with result->cut_short, what was
 * written until then is there and readable.
 */
int seam_record(const struct seam_record_options *options,
		struct seam_record_result *result, struct seam_err *err);

/* Valid on a zeroed one. */
void seam_record_result_fini(struct seam_record_result *result);

#endif /* SEAM_RECORD_H */
