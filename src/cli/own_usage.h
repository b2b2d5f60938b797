/* SPDX-License-Identifier: MIT */
/*
 * own_usage.h - what Seam's own processes take
 *
 * A command that records has several: the recorder and its helpers, a process
 * that reads files for names.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/array.h"

/* Process ids.  Zeroed is empty; the caller frees items. */
struct seam_own_processes {
	SEAM_ARRAY(pid_t) pids;
};

/*
 * Process @pid and its descendants, as far as they have our name: programs that
 * were started have another.  Without memory fewer.
 */
void seam_own_processes_find(struct seam_own_processes *own, pid_t pid);

/*
 * CPU time of @pid and of these descendants so far, and of children of them that
 * have ended.
 */
uint64_t seam_own_cpu_ns(pid_t pid);

/*
 * Memory of process @pid alone: what is resident and no file's.  Pages that a
 * fork shares count in each.  0: not known.
 */
uint64_t seam_own_memory_bytes(pid_t pid);
