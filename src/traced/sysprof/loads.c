/* SPDX-License-Identifier: MIT */
/* loads.c - the thread for files that are loaded later; see loads.h */
#include "traced/sysprof/loads.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "unwind/in_process/self_images.h"

/* Between two scans: code of no file may run all the time. */
enum { MIN_PAUSE_NS = 50000000 };

static struct {
	pthread_t thread;
	bool is_started;
	atomic_bool is_ending;
	sem_t end;
	struct seam_sysprof_run *run;
	struct seam_native_symbols *symbols;
} loads;

/* ---- events ---- */

struct events {
	struct seam_sysprof_out out;
	SEAM_ARRAY(uint8_t) bytes;
	uint8_t scratch[16 << 10];
};

static size_t collect(const void **data, size_t n, void *context)
{
	struct events *events = context;

	return SEAM_ARRAY_EXTEND(&events->bytes, *(const uint8_t **)data, n) ?
	       n : 0;
}

static void put_native(void *context, uint64_t addr, const char *name,
		       size_t n)
{
	struct events *events = context;

	seam_sysprof_stream_native(&events->out, true, addr, name, n);
}

static void push(struct seam_sysprof_run *run, const uint8_t *bytes, size_t n)
{
	struct seam_sysprof_late *late = malloc(sizeof(*late) + n);

	if (!late)
		return;
	late->n = n;
	memcpy(late->bytes, bytes, n);
	late->next = atomic_load(&run->late);
	/* release: pairs with the acquire in seam_sysprof_write_late() */
	while (!atomic_compare_exchange_weak_explicit(&run->late, &late->next,
						      late,
						      memory_order_release,
						      memory_order_relaxed))
		;
}

void seam_sysprof_loads_push(struct seam_sysprof_run *run,
			     struct seam_native_symbols *symbols)
{
	struct events events = { .bytes = { .items = NULL } };

	events.out = (struct seam_sysprof_out) {
		.writer = collect, .ctx = &events,
		.data = events.scratch, .size = sizeof(events.scratch) };
	seam_native_symbols_put(symbols, NULL, put_native, &events);
	seam_sysprof_out_flush(&events.out);
	if (events.bytes.n && !events.out.is_halted)
		push(run, events.bytes.items, events.bytes.n);
	free(events.bytes.items);
}

/* ---- the thread ---- */

static void pause_or_end(void)
{
	uint64_t end_ns = seam_clock_ns() + MIN_PAUSE_NS;
	struct timespec until = {
		.tv_sec = (time_t)(end_ns / SEAM_NS_PER_S),
		.tv_nsec = (long)(end_ns % SEAM_NS_PER_S),
	};

	while (sem_clockwait(&loads.end, CLOCK_MONOTONIC, &until) < 0 &&
	       errno == EINTR)
		;
}

static void *work(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "seam-sysprof");
	for (;;) {
		while (sem_wait(&loads.run->wake) < 0)
			;
		if (atomic_load(&loads.is_ending))
			return NULL;
		/* what is loaded from here on wakes it again */
		atomic_store(&loads.run->is_woken, false);
		seam_self_refresh();
		seam_guest_refresh();
		if (loads.symbols)
			seam_sysprof_loads_push(loads.run, loads.symbols);
		pause_or_end();
	}
}

void seam_sysprof_loads_begin(struct seam_sysprof_run *run,
			      struct seam_native_symbols *symbols)
{
	sigset_t all, before;

	loads.run = run;
	loads.symbols = symbols;
	atomic_store(&loads.is_ending, false);
	sem_init(&run->wake, 0, 0);
	atomic_store(&run->is_woken, false);
	sem_init(&loads.end, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	loads.is_started = !pthread_create(&loads.thread, NULL, work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void seam_sysprof_loads_end(void)
{
	if (!loads.is_started)
		return;
	atomic_store(&loads.is_ending, true);
	sem_post(&loads.end);
	sem_post(&loads.run->wake);
	pthread_join(loads.thread, NULL);
	loads.is_started = false;
}

void seam_sysprof_loads_forget(void)
{
	loads.is_started = false;
}
