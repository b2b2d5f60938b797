/* SPDX-License-Identifier: MIT */
/*
 * record.h - record a command, or running processes, into a bundle
 *
 * The one call that makes a recording: it opens the events, starts the
 * command, drains until the end and leaves a bundle that opens in Seam and
 * in perf.  The command is never blocked: when the disk is full or a write
 * fails, it goes on and the recording ends.
 *
 * Threads: one recording a process, because signals are process-wide.
 */
#pragma once

#include "base/base.h"
#include "base/err.h"
#include "record/events/event.h"
#include "record/preload/preload.h"
#include "record/proc/procfs.h"
#include "wire/counts.h"
#include "wire/stack_counts.h"

enum {
	SEAM_RECORD_FREQUENCY_HZ = 4000,	/* as perf's, without copies */
	SEAM_RECORD_RING_BYTES = 512 * 1024,	/* for each CPU, as perf's */
	SEAM_RECORD_AUX_BYTES = 4 * 1024 * 1024,	/* as perf's */
	SEAM_RECORD_MORE_SERVICES = 3,
};

struct seam_service;			/* record/services/service.h */
struct seam_sink;			/* record/perf/sink.h */

enum {
	SEAM_FLIGHT_BYTES = 1 << 20,
	SEAM_FLIGHT_MIN_BYTES = 256 << 10,	/* four chunks */
	SEAM_FLIGHT_MAX_BYTES = 1 << 30,
	SEAM_FLIGHT_MAX_AFTER_MS = 60000,
};

/*
 * The newest calls of functions, of each thread, instead of all: they are
 * written when a trigger is met, when a snapshot is requested, and at the end.
 */
struct seam_flight_options {
	bool is_used;			/* with overwrite */
	uint64_t bytes;			/* of a thread; a power of two */
	const char *const *triggers;	/* wire/xray/trigger_text.h */
	size_t n_triggers;
	uint64_t after_ns;		/* from a trigger to its snapshot */
	unsigned int max_snapshots;	/* by triggers */
};

/*
 * --trace: each call of an instrumented function is recorded, by libseam-fdr in
 * the programs that COMMAND is and starts.  Lists are as the user gave them:
 * GLOBs with a comma in between (fnmatch(3)).
 */
struct seam_trace_options {
	bool is_used;
	const char *const *only;	/* lists; none: all functions */
	size_t n_only;
	const char *const *except;
	size_t n_except;
	uint64_t min_ns;		/* no shorter calls; 0: all */
	unsigned int depth;		/* of calls; 0: no limit */
	unsigned int n_arguments;	/* of each call, 0 to 6 */
};

/* --off-cpu: when threads wait, for how long, and with which stack. */
struct seam_off_cpu_options {
	bool is_used;
	uint64_t min_ns;		/* shorter waits are added up */
	bool wakers;			/* and who woke the threads */
};

struct seam_record_options {
	const char *const *events;	/* lists "a,b"; none: the default */
	size_t n_events;
	/* 0: 1000 where stacks are copied, else 4000; UINT64_MAX: maximum */
	uint64_t frequency_hz;
	uint64_t period;		/* in its place; 0: frequency_hz */
	/* DEFAULT: auto where it fits, and no call chains of tracepoints */
	enum seam_call_graph call_graph;
	bool callchains;		/* the same, of all events */
	uint32_t stack_bytes;		/* copied for a sample; 0: as fits */
	const char *filter;		/* of all tracepoints; NULL: none */
	bool switch_events;		/* SWITCH records beside the samples */
	bool no_idle;			/* no samples of CPUs without work */
	struct seam_off_cpu_options off_cpu;
	bool namespaces, cgroups;	/* records of these */
	bool data_addresses;		/* of what was accessed */
	int compress_level;		/* of zstd; 0: not compressed */
	/* of each ring, a power of two; 0: as large as stacks need */
	size_t ring_bytes;
	size_t aux_bytes;		/* of each AUX buffer; 0: the default */
	size_t jit_ring_bytes;		/* for each JIT; a power of two */
	bool ring_auto;			/* the largest that can be locked */
	int realtime;			/* priority of the recorder; 0: none */
	uint64_t watermark;		/* bytes to a wakeup; 0: the default */
	const char *output;		/* the bundle's folder */
	struct seam_sink *sink;		/* in place of a bundle; or NULL */
	/*
	 * What is recorded: a command; processes and threads; or the whole
	 * machine, until the command ends if there is one.  CPUs alone mean
	 * everything that runs on them; else they limit what is sampled.
	 */
	struct seam_number_list pids, tids, cpus;	/* borrowed */
	bool by_user;		/* the processes of .user that run */
	uid_t user;		/* effective user id */
	bool system_wide;
	const char *cgroup;	/* of these, in this one; NULL: in any */
	bool no_inherit;		/* without child processes */
	bool per_thread;		/* a ring a thread, not a CPU */
	char **command;			/* ends with NULL; NULL: none */
	/* Besides the recorder's own; for COMMAND and its children; or NULL. */
	struct seam_service *services[SEAM_RECORD_MORE_SERVICES];
	enum seam_layers layers;	/* of COMMAND: has it a sampler */
	uint64_t delay_ms;		/* before the first sample */
	/*
	 * Keep the newest samples only; a snapshot is made on SIGUSR2, at
	 * intervals of so many ns (0: none), and at the end.
	 */
	bool overwrite;
	bool aux_snapshots;		/* the same for AUX buffers */
	uint64_t aux_snapshot_bytes;	/* of each buffer; 0: all of it */
	uint64_t snapshot_ns;
	struct seam_trace_options trace;
	struct seam_flight_options flight;	/* with trace */
	uint64_t duration_ns;		/* limit; 0: none */
	uint64_t max_bytes;		/* limit of its files; 0: none */
	bool keep_files;		/* copy those that samples are in */
	const char *const *words;	/* the command line, for the manifest */
	size_t n_words;
	/* Called with messages for the user, one line each.  May be NULL. */
	void (*note)(void *context, bool verbose, const char *text);
	void *context;
};

/* The counts of one event. */
struct seam_record_event {
	char name[256];
	uint64_t n_samples;
	uint64_t n_lost;
};

/* How the command ended. */
struct seam_command_end {
	/*
	 * 0; or the -errno that exec() gave: the command was not started
	 * and there is no recording.
	 */
	int start_error;
	bool has_ended;		/* wait_status says how */
	int wait_status;	/* as from waitpid() */
	bool was_stopped;	/* by us, because -p's processes ended */
	int signal;		/* the last that was to end it; or 0 */
};

struct seam_record_result {
	struct seam_command_end command;
	bool cut_short;		/* by a failed write; the chain says which */
	bool skipped;		/* files for symbols were not copied */
	const char *limit;	/* the option that ended it; or NULL */
	bool was_moved;		/* renamed by a user or a later recording */
	char place[4096];	/* its new path */
	bool was_removed;	/* while it was written: nothing is left */

	uint64_t n_samples;
	const char *aux_event;	/* name of the one with AUX data; or NULL */
	struct seam_counts counts;
	struct seam_stack_counts stacks;
	bool has_calls;		/* of --trace */
	bool has_no_calls;	/* and none was recorded, or lost */
	uint64_t calls_bytes;	/* of all logs */
	uint64_t tsc_hz;	/* measured; 0: not known */
	/* Without the side-band's; owned, or NULL. */
	struct seam_record_event *events;
	size_t n_events;
	uint64_t duration_ns;	/* of the recording */
	uint64_t bundle_bytes;	/* of all files in it */
};

/*
 * Returns 0 when the recording is complete.  With -errno and a chain in @err
 * either nothing was recorded, or, with result->cut_short, what was written
 * until then can be read.
 */
int seam_record(const struct seam_record_options *options,
		struct seam_record_result *result, struct seam_err *err);

/* Valid on a zeroed one. */
void seam_record_result_fini(struct seam_record_result *result);

/*
 * ---- plan.c: how user stacks are recorded, and how much is copied ----
 *
 * A program without frame pointers has complete stacks only if the kernel
 * copies the registers and the top of the stack into the ring with each
 * sample.  The ring must then last from one wakeup of the recorder to the
 * next, 11 ms or more on a busy machine: that limits the size of a copy and the
 * frequency.  The recorder unwinds the copies (auto), or writes them (dwarf).
 *
 * By default stacks are copied where this fits and the rate is bounded; else
 * they are those of frame pointers, which the kernel walks itself.
 */
enum {
	SEAM_STACK_PLAN_HZ = 1000,	/* default where stacks are copied */
	/* Default rings there; halved while less may be locked. */
	SEAM_STACK_PLAN_MAX_RING_BYTES = 4 * 1024 * 1024,
	/* perf's default; and the largest, because a record has 64 KiB */
	SEAM_STACK_PLAN_DWARF_BYTES = 8192,
	SEAM_STACK_PLAN_MAX_BYTES = 65528,
	/* The recorder wakes at least so often. */
	SEAM_STACK_PLAN_WAIT_MS = 100,
};

/*
 * The largest copy that fits rings of @ring_bytes at @hz samples a second on a
 * CPU: 48, 32, 24, 16 or 8 KiB, or 0.  @hz 0: not known, the smallest.
 */
uint32_t seam_stack_plan_bytes(size_t ring_bytes, uint64_t hz);

/*
 * Have samples of @event carry a call chain, by @how, with copies of @bytes.
 * Not for SEAM_CALL_GRAPH_DEFAULT.
 */
void seam_stack_plan_apply(struct seam_event *event, enum seam_call_graph how,
			   uint32_t bytes);

/*
 * ---- snapshot_client.c: request a snapshot from a running recorder ----
 *
 * A recorder is recognized by the file that it writes, NAME.seam/data, and by
 * SIGUSR2 in its mask of blocked signals.  No other process is sent the signal,
 * which would kill it.
 */

/*
 * Request a snapshot from the recorder with process id @name, or of that
 * process if a recorder has started it, or from the one that writes the
 * recording @name, and wait for it; its path is copied to @path.
 * -ESRCH: no such recorder; -EINVAL: it makes no snapshots; -ETIMEDOUT: none
 * was made in 30 s.
 */
int seam_snapshot_request(const char *name, char *path, size_t cap,
			  struct seam_err *err);

/*
 * ---- program_recorder.c: the recorder of a program that has started it ----
 *
 * For seam_fdr_start() in a program that no recorder runs: it takes the calls
 * of that program, of its forked children, and of programs that connect to the
 * same link, and writes them to a bundle.  It has no perf events, so it needs
 * no rights.  doc/design/standalone.md has the protocol.
 */

/*
 * Record to a bundle at @path until the program requests the end, on the socket
 * @control, or is over.  @since NULL, or the tie "TSC:NS" of when the calls of
 * a flight recorder began.  Returns 0 or the first -errno of the bundle, which
 * the program is told, too.  Threads: one recording a process.
 */
int seam_program_recorder_run(int control, const char *path, const char *since);
