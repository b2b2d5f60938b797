/* SPDX-License-Identifier: MIT */
/* self_fork.c - the owner and those that fork; see self_fork.h */
#include "unwind/in_process/self_fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { PAUSE_NS = 50 * 1000, MAX_PAUSES = 10000 };

/*
 * Each side announces itself, then looks for the other (sequentially
 * consistent: one of them sees the other).  The owner writes the first two,
 * threads that fork the last; a child begins anew.
 */
static _Atomic bool is_in_loader;
static _Atomic(pthread_t) owner;
static _Atomic int n_forking;

static void wait_a_little(void)
{
	const struct timespec pause = { 0, PAUSE_NS };

	nanosleep(&pause, NULL);
}

void seam_self_loader_enter(void)
{
	atomic_store(&owner, pthread_self());
	for (int i = 0; i < MAX_PAUSES; i++) {
		atomic_store(&is_in_loader, true);
		if (!atomic_load(&n_forking))
			return;
		atomic_store(&is_in_loader, false);
		wait_a_little();
	}
	atomic_store(&is_in_loader, true);
}

void seam_self_loader_leave(void)
{
	atomic_store(&is_in_loader, false);
}

int seam_self_loader_list(int (*on_image)(struct dl_phdr_info *image,
					  size_t size, void *context),
			  void *context)
{
	int r;

	seam_self_loader_enter();
	r = dl_iterate_phdr(on_image, context);
	seam_self_loader_leave();
	return r;
}

/* All images have the same counts: the first is enough. */
static int read_loads(struct dl_phdr_info *image, size_t size, void *context)
{
	(void)size;
	*(struct seam_self_loads *)context = seam_self_loads_of(image);
	return 1;
}

struct seam_self_loads seam_self_loads_now(void)
{
	struct seam_self_loads loads = { 0 };

	seam_self_loader_list(read_loads, &loads);
	return loads;
}

static void before_fork(void)
{
	atomic_fetch_add(&n_forking, 1);
	for (int i = 0; i < MAX_PAUSES && atomic_load(&is_in_loader) &&
	     !pthread_equal(atomic_load(&owner), pthread_self()); i++)
		wait_a_little();
}

static void after_fork(void)
{
	atomic_fetch_sub(&n_forking, 1);
}

static void begin_child(void)
{
	atomic_store(&n_forking, 0);
	atomic_store(&is_in_loader, false);
}

int seam_self_fork_init(void)
{
	return -pthread_atfork(before_fork, after_fork, begin_child);
}
