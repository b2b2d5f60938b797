/* SPDX-License-Identifier: MIT */
/*
 * procfs.h - values from files in /proc and /sys
 *
 * Each call reads its file; nothing is cached.  A recorder reads as little as
 * it can before it starts the command.
 */
#pragma once

#include "base/array.h"
#include "base/err.h"
#include "wire/perf/perf_writer.h"

/* Numbers of CPUs or threads.  Zeroed is empty; the caller frees items. */
struct seam_number_list {
	int *items;
	size_t n, cap;
};

/* 0 or -ENOMEM. */
int seam_number_list_add(struct seam_number_list *list, int number);

bool seam_number_list_has(const struct seam_number_list *list, int number);

/*
 * Read a small file of /proc or /sys into @buf, without its last newline; ""
 * if it cannot be read.  Returns @buf.
 */
const char *seam_procfs_text(const char *path, char *buf, size_t cap);

/* The number in /proc/sys/kernel/@name, or @otherwise. */
long seam_procfs_sysctl(const char *name, long otherwise);

/* The numbers of a list such as "0-3,5".  -EBADMSG or -ENOMEM. */
int seam_procfs_list(struct seam_number_list *list, const char *text);

/* The CPUs that are online, ascending. */
int seam_procfs_cpus(struct seam_number_list *cpus, struct seam_err *err);

/* The current threads of process @pid, ascending.  -ESRCH: no process. */
int seam_procfs_threads(struct seam_number_list *tids, int pid,
			struct seam_err *err);

/* All processes, ascending.  0 or -ENOMEM. */
int seam_procfs_processes(struct seam_number_list *pids);

/* The key and the value of a line "key<blank>: value". */
struct seam_procfs_value {
	const char *key;
	char text[128];
};

/*
 * The value of the first line of @path with each key, "" if there is none; in
 * one pass, because each read of /proc/cpuinfo makes the kernel compute it.
 */
void seam_procfs_values(const char *path, struct seam_procfs_value *values,
			size_t n);

/* The value of the first line "@key<blank>: value" of @path; "" if none. */
const char *seam_procfs_value(const char *path, const char *key, char *buf,
			      size_t cap);

struct seam_procfs_mapping {
	uint64_t begin, end, offset;
	char rights[5];		/* "r-xp" */
	uint32_t maj, min;
	uint64_t ino;		/* 0: of no file */
	const char *name;	/* the program's; "": none */
};

/*
 * Call @take for each mapping, in the order of addresses, until it returns
 * false.  @process is the folder of the process in /proc, or negative.
 * Source: proc_pid_maps(5).
 */
void seam_procfs_maps(int process,
		      bool (*take)(void *context,
				   const struct seam_procfs_mapping *mapping),
		      void *context);

/* List the PMUs of the kernel, at most @cap.  Returns how many. */
size_t seam_procfs_pmus(struct seam_perf_pmu *pmus, size_t cap);

/* ---- the threads that a recording samples ---- */

/* The ids in "4711,4712".  -EBADMSG when it is not such a list. */
int seam_targets_parse(struct seam_number_list *ids, const char *text);

/*
 * Put into @out the current threads of the processes @pids (with @children
 * also of their descendants) and the threads @tids, each once, ascending.
 * -ESRCH: one of @pids or @tids does not exist; the message names it.
 */
int seam_targets_list(struct seam_number_list *out,
		      const struct seam_number_list *pids,
		      const struct seam_number_list *tids, bool children,
		      struct seam_err *err);

/* Whether @user is the effective user of process @pid, which runs. */
bool seam_targets_is_of_user(int pid, uid_t user);

/* Whether all of @some, ascending, are in @all, ascending. */
bool seam_targets_are_in(const struct seam_number_list *some,
			 const struct seam_number_list *all);

/* The process of thread @tid; 0: the thread has ended. */
int seam_targets_process(int tid);
