/* SPDX-License-Identifier: MIT */
/* own_usage.c - from /proc; see own_usage.h */
#include "cli/own_usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "record/proc/procfs.h"

enum { MAX_OWN = 256 };

static void name_of(pid_t pid, char name[32])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	seam_procfs_text(path, name, 32);
}

/* The children that thread @tid of @pid has made. */
static void add_children(struct seam_own_processes *own, pid_t pid, int tid)
{
	char path[64], text[4096];
	const char *at = text, *end;
	uint64_t child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	seam_procfs_text(path, text, sizeof(text));
	end = text + strlen(text);
	while ((at = seam_text_number(at, end, 10, &child))) {
		seam_own_processes_find(own, (pid_t)child);
		at += at < end;
	}
}

void seam_own_processes_find(struct seam_own_processes *own, pid_t pid)
{
	struct seam_number_list threads = { 0 };
	char ours[32], name[32];

	name_of(getpid(), ours);
	name_of(pid, name);
	if (strcmp(ours, name) != 0 || own->pids.n >= MAX_OWN ||
	    !SEAM_ARRAY_ADD(&own->pids, pid) ||
	    seam_procfs_threads(&threads, pid, NULL) < 0)
		return;
	for (size_t i = 0; i < threads.n; i++)
		add_children(own, pid, threads.items[i]);
	free(threads.items);
}

static uint64_t cpu_ns(pid_t pid)
{
	char path[64], text[128];
	uint64_t ns;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	seam_procfs_text(path, text, sizeof(text));
	return seam_text_number(text, text + strlen(text), 10, &ns) ? ns : 0;
}

/* Of children of @pid that have ended, in clock ticks. */
static uint64_t ended_ns(pid_t pid)
{
	unsigned long long user = 0, system = 0;
	char path[64], text[1024];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	seam_procfs_text(path, text, sizeof(text));
	/* cutime and cstime: proc_pid_stat(5); the name may have brackets */
	end = strrchr(text, ')');
	if (!end || sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
			   "%*u %*u %llu %llu", &user, &system) != 2)
		return 0;
	return (user + system) * (SEAM_NS_PER_S /
				  (uint64_t)sysconf(_SC_CLK_TCK));
}

uint64_t seam_own_cpu_ns(pid_t pid)
{
	struct seam_own_processes own = { { 0 } };
	uint64_t sum = 0;

	seam_own_processes_find(&own, pid);
	for (size_t i = 0; i < own.pids.n; i++)
		sum += cpu_ns(own.pids.items[i]) +
		       ended_ns(own.pids.items[i]);
	free(own.pids.items);
	return sum;
}

uint64_t seam_own_memory_bytes(pid_t pid)
{
	char path[64], text[128];
	uint64_t kib = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	seam_procfs_value(path, "RssAnon", text, sizeof(text));
	seam_text_number(text, text + strlen(text), 10, &kib);
	return kib * 1024;
}
