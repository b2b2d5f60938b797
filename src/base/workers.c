/* SPDX-License-Identifier: MIT */
/* workers.c - threads that take task numbers from one counter */
#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MAX_WORKERS 64

struct pool {
	void (*work)(void *context, size_t task);
	void *context;
	size_t n_tasks;
	/*
	 * Next task; every worker takes from it.  Relaxed: it orders nothing
	 * but itself, pthread_join() publishes the results.
	 */
	atomic_size_t next;
};

unsigned int seam_workers_count(void)
{
	cpu_set_t set[8];	/* the kernel refuses one of 1024 CPUs */
	int n = sched_getaffinity(0, sizeof(set), set) < 0 ? 1 :
		CPU_COUNT_S(sizeof(set), set);

	return n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : (unsigned int)n;
}

static void *run(void *arg)
{
	struct pool *pool = arg;
	size_t task;

	while ((task = atomic_fetch_add_explicit(&pool->next, 1,
						 memory_order_relaxed)) <
	       pool->n_tasks)
		pool->work(pool->context, task);
	return NULL;
}

void seam_workers_run(size_t n_tasks, void (*work)(void *context, size_t task),
		      void *context)
{
	struct pool pool = {
		.work = work, .context = context, .n_tasks = n_tasks,
	};
	pthread_t threads[MAX_WORKERS];
	size_t want = seam_workers_count();
	size_t n = 0;

	if (want > n_tasks)
		want = n_tasks;
	while (n + 1 < want &&
	       pthread_create(&threads[n], NULL, run, &pool) == 0)
		n++;
	run(&pool);
	while (n > 0)
		pthread_join(threads[--n], NULL);
}
