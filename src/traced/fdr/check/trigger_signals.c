/* SPDX-License-Identifier: MIT */
/* trigger_signals.c - see trigger_signals.h */
#include "traced/fdr/check/trigger_signals.h"

#include "traced/fdr/check/triggers.h"
#include "traced/fdr/record/system.h"
#include "traced/interpose/signal_front.h"

#include <errno.h>
#include <pthread.h>

/* Of each signal: its trigger. */
static uint8_t trigger_of[NSIG];

static bool take(int signal, siginfo_t *info, ucontext_t *context)
{
	(void)info;
	(void)context;
	seam_fdr_triggers_signal(trigger_of[signal], signal);
	return false;
}

/* Not those that stop, nor the two that no program receives. */
static bool is_possible(int signal)
{
	switch (signal) {
	case SIGKILL: case SIGSTOP: case SIGTSTP: case SIGTTIN: case SIGTTOU:
		return false;
	default:
		return signal > 0 && signal < NSIG;
	}
}

static int watch(unsigned int trigger, int signal)
{
	static const struct seam_signal_front front = {
		.take = take, .flags_without = SA_ONSTACK,
	};

	if (!is_possible(signal))
		return -EINVAL;
	trigger_of[signal] = (uint8_t)trigger;
	return seam_signal_front_is_on(signal) ? 0 :
	       seam_signal_front_begin(signal, &front);
}

static void begin_child(void)
{
	if (seam_fdr_may_call_system())
		seam_signal_front_begin_child();
}

int seam_fdr_trigger_signals_init(const struct seam_fdr_options *o)
{
	static bool has_fork_handler;
	int r = 0;

	if (!has_fork_handler)
		r = -pthread_atfork(NULL, NULL, begin_child);
	has_fork_handler = r == 0;
	for (uint32_t i = 0; i < o->n_triggers; i++)
		if (o->triggers[i].kind == SEAM_TRIGGER_SIGNAL)
			r = watch(i, o->triggers[i].signal) ?: r;
	return r;
}

void seam_fdr_trigger_signals_fini(void)
{
	for (int i = 1; i < NSIG; i++)
		if (seam_signal_front_is_on(i))
			seam_signal_front_end(i);
}
