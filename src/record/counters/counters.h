/* SPDX-License-Identifier: MIT */
/*
 * counters.h - count what a command, or running processes, use
 *
 * A recording without samples: context switches are recorded, because their
 * records are exact at every kernel.perf_event_paranoid, where a count of
 * switches is 0 for users who may not see the kernel.  Beside them are counters
 * of the kernel (task-clock, hardware), rusage of the command, and files of
 * /proc.
 *
 *	elapsed			from the command's exec to its end
 *	task-clock		the scheduler's clock: rusage, with pids that of
 *				each process that lives at the end; of other
 *				processes the time between their switches
 *	switches, waits		task_times.h
 *	wake delay		schedstat: the time from a wakeup to the switch
 *				in, of the threads whose file could be read late
 *				in their life; so a lower limit
 *	faults, user, system	rusage: of the command, and of processes that
 *				were waited for.  With pids /proc/PID/stat
 *	max RSS			the largest of one process, by rusage
 *
 * A value that cannot be known is marked, and never 0.
 *
 * Source: proc_pid_stat(5), proc_pid_schedstat of
 * Documentation/scheduler/sched-stats.rst, getrusage(2).
 */
#pragma once

#include "record/counters/task_times.h"
#include "record/record.h"

enum seam_counter {
	SEAM_COUNTER_ELAPSED,
	SEAM_COUNTER_TASK_CLOCK,
	SEAM_COUNTER_CPUS,		/* task-clock by elapsed */
	SEAM_COUNTER_USER,
	SEAM_COUNTER_SYSTEM,
	SEAM_COUNTER_BLOCKED_SWITCHES,
	SEAM_COUNTER_PREEMPTED_SWITCHES,
	SEAM_COUNTER_MIGRATIONS,
	SEAM_COUNTER_BLOCKED,		/* time, of all threads */
	SEAM_COUNTER_PREEMPTED,
	SEAM_COUNTER_WAKE_DELAY,
	SEAM_COUNTER_MINOR_FAULTS,
	SEAM_COUNTER_MAJOR_FAULTS,
	SEAM_COUNTER_MAX_RSS,
	SEAM_COUNTER_CYCLES,
	SEAM_COUNTER_INSTRUCTIONS,
	SEAM_COUNTER_IPC,		/* instructions by cycles */
	SEAM_COUNTER_CACHE_REFERENCES,
	SEAM_COUNTER_CACHE_MISSES,
	SEAM_COUNTER_BRANCHES,
	SEAM_COUNTER_BRANCH_MISSES,
	SEAM_N_COUNTERS,
};

enum seam_counter_unit {
	SEAM_COUNTER_COUNT,
	SEAM_COUNTER_NS,
	SEAM_COUNTER_BYTES,
	SEAM_COUNTER_RATIO,
};

struct seam_counter_row {
	const char *key;	/* of JSON, with its unit */
	const char *label;
	enum seam_counter_unit unit;
	bool is_hardware;
};

/* In the order of enum seam_counter. */
extern const struct seam_counter_row seam_counter_rows[SEAM_N_COUNTERS];

struct seam_counter_value {
	bool is_known;
	double value;
	/*
	 * The part of the whole that @value is of, in (0, 1]: of wake delay the
	 * CPU time of the threads that were read; of a hardware counter the
	 * time it counted, for which @value is already scaled.
	 */
	double part;
};

struct seam_counts_of_run {
	struct seam_counter_value values[SEAM_N_COUNTERS];
	/*
	 * The command's memory before its exec had so many bytes, which the
	 * kernel adds to what it says of the command: max RSS is at most that.
	 */
	bool is_max_rss_ours;
	bool is_user_only;	/* hardware counters count user code only */
	uint64_t n_lost;	/* records: switches and waits are not known */
	struct seam_command_end command;
	/* By task_times.h; owned by the caller: free(processes). */
	struct seam_timed_process *processes;
	size_t n_processes;
};

/*
 * Run the command of @options, or count its processes (pids and tids) until
 * they end or the command does.  Only what is recorded and when, and note, is
 * read of @options.  0 or -errno, as seam_record().
 */
int seam_counters_run(const struct seam_record_options *options,
		      struct seam_counts_of_run *out, struct seam_err *err);
