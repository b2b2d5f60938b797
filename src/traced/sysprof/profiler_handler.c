/* SPDX-License-Identifier: MIT */
/* profiler_handler.c - from a signal to a sample; see profiler.h */
#include <sys/syscall.h>
#include <unistd.h>

#include "traced/sysprof/profiler.h"
#include "unwind/in_process/self_walk.h"

struct seam_sysprof_run seam_sysprof_run;

/* ---- the host's stack ---- */

static void *add_frame(int number, void *addr)
{
	struct seam_sysprof_host *host = &seam_sysprof_run.host;

	(void)number;
	/* it may go on after the end; and 0 would be the stack's */
	if (addr && host->n < SEAM_GUEST_MAX_HOST)
		host->pcs[host->n++] = (uint64_t)(uintptr_t)addr;
	return host->n < SEAM_GUEST_MAX_HOST ? host : NULL;
}

static void take_host(struct seam_sysprof_run *run)
{
	struct seam_sysprof_host *host = &run->host;
	const struct seam_unwind_stack *stack = &run->sample.stack;

	host->n = 0;
	if (run->backtracer)
		run->backtracer(add_frame);
	else
		for (; host->n < stack->n; host->n++)
			host->pcs[host->n] = stack->frames[host->n].pc;
}

/* ---- a sample ---- */

void seam_sysprof_write_late(struct seam_sysprof_run *run)
{
	/* acquire: the bytes are complete */
	struct seam_sysprof_late *late =
		atomic_exchange_explicit(&run->late, NULL,
					 memory_order_acquire), *next;
	struct seam_sysprof_late *first = NULL;

	/* the last that was pushed is the first in the list */
	for (; late; late = next) {
		next = late->next;
		late->next = first;
		first = late;
	}
	for (late = first; late; late = next) {
		next = late->next;
		seam_sysprof_out_bytes(&run->stream.out, late->bytes, late->n);
		late->next = run->written;
		run->written = late;
	}
}

static void sample(struct seam_sysprof_run *run, const ucontext_t *context,
		   uint64_t n_ticks)
{
	uint64_t n_unmapped;

	run->sample.with_c = true;
	seam_guest_take(context, &run->sample);
	n_unmapped = seam_self_n_unmapped();
	run->counts[seam_sysprof_state_of(&run->sample)] += n_ticks;
	/* a stack ended in code of no listed file: wake the thread */
	if (n_unmapped != run->n_unmapped &&
	    !atomic_exchange(&run->is_woken, true))
		sem_post(&run->wake);
	run->n_unmapped = n_unmapped;
	if (run->mode == LUAM_SYSPROF_DEFAULT)
		return;
	take_host(run);
	seam_sysprof_write_late(run);
	seam_sysprof_stream_sample(&run->stream, &run->sample, &run->host,
				   run->mode == LUAM_SYSPROF_LEAF, n_ticks);
	if (run->stream.out.is_halted)
		/* a stop that is under way has replaced it by BUSY */
		atomic_compare_exchange_strong(&run->state, &(uint32_t) {
			SEAM_SYSPROF_RUNNING }, SEAM_SYSPROF_HALTED);
}

/* ---- the signal ---- */

/* A signal of the tick that came late: its struct must not be read. */
static bool is_late(const struct seam_sysprof_run *run, const siginfo_t *info)
{
	if (info->si_code == SI_TIMER)
		return info->si_value.sival_ptr == &run->tick;
	return (info->si_code == POLL_IN || info->si_code == POLL_HUP) &&
	       info->si_fd == run->tick.fd;
}

bool seam_sysprof_on_signal(int signal, siginfo_t *info, ucontext_t *context)
{
	struct seam_sysprof_run *run = &seam_sysprof_run;
	struct seam_tick_taken taken = { .is_ours = false };
	int32_t tid = (int32_t)syscall(SYS_gettid);

	(void)signal;
	atomic_fetch_add(&run->n_in_handler, 1);
	if (atomic_load(&run->state) != SEAM_SYSPROF_RUNNING) {
		taken.is_ours = tid == run->tid && is_late(run, info);
	} else if (tid == run->tid) {
		run->is_sampling = true;
		seam_tick_take(&run->tick, info, run->record, &taken);
		if (taken.weight)
			sample(run, context, taken.weight);
		run->is_sampling = false;
	}
	atomic_fetch_sub(&run->n_in_handler, 1);
	return taken.is_ours;
}
