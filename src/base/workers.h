/* SPDX-License-Identifier: MIT */
/*
 * workers.h - one function over many tasks, on all cores
 *
 * The calling thread works too, and is the only one on a single CPU, for a
 * single task, or when no thread can be created.
 */
#pragma once

#include "base/base.h"

/* How many tasks run at once: the CPUs that this thread may use, at most 64. */
unsigned int seam_workers_count(void);

/*
 * Call @work(@context, task) for every task in [0, @n_tasks), each once, in
 * any order, from several threads.  Returns when all are done.
 */
void seam_workers_run(size_t n_tasks, void (*work)(void *context, size_t task),
		      void *context);
