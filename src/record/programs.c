/* SPDX-License-Identifier: MIT */
/* programs.c - add, open, fork, report; see programs.h */
#include "record/programs.h"

#include "base/text.h"
#include "record/plan.h"
#include "record/preload/preload.h"
#include "record/services/guest_service.h"
#include "record/services/jit_service.h"
#include "record/tracing.h"

#include <inttypes.h>
#include <stdlib.h>

struct seam_programs {
	struct seam_preload preload;
	struct seam_jit_service jit;
	struct seam_guest_service guest;	/* if preload.is_used */
	struct seam_tracing *tracing;	/* NULL: without --trace */
};

/* ---- the agent ---- */

/*
 * Why there are no Lua stacks: an option that agents cannot follow.  NULL:
 * there is none.
 */
static const char *without_agents(const struct seam_record_options *o,
				  const struct seam_plan_clock *clock)
{
	/* rings that overwrite are not drained: all would be sampled twice */
	if (o->overwrite)
		return "with --overwrite";
	/* an agent samples its thread on all CPUs */
	if (o->cpus.n)
		return "with -C";
	/* and is in all that the command starts */
	if (o->no_inherit)
		return "with -i";
	/* the clock of AUX data is not the program's */
	if (clock->has_aux)
		return "with AUX data";
	/* most ticks would be skipped: a signal alone takes 10 to 30 us */
	if (clock->period_ns && clock->period_ns < SEAM_GUEST_MIN_NS)
		return "at more than 10000 Hz";
	/* who asks for other events did not ask for samples of time */
	if (!clock->period_ns && o->layers != SEAM_LAYERS_GUEST)
		return "without an event of CPU time, such as cpu-clock, or "
		       "--layers=guest";
	return NULL;
}

/* Decide whether the command gets an agent, and have its services. */
static void add_guest(struct seam_session *s, struct seam_programs *p)
{
	struct seam_plan_clock clock = { 0 };
	const char *why = NULL;
	char message[512];

	seam_preload_decide(&p->preload, s->options->layers,
			    s->options->command, message, sizeof(message));
	if (p->preload.is_used && !seam_plan_clock(s, &clock)) {
		p->preload.is_used = false;
		return;
	}
	if (p->preload.is_used)
		why = without_agents(s->options, &clock);
	if (why) {
		p->preload.is_used = false;
		snprintf(message, sizeof(message), "no Lua stacks %s", why);
	}
	if (message[0])
		seam_session_note(s, false, "%s", message);
	if (!p->preload.is_used)
		return;
	seam_guest_service_init(&p->guest);
	if (clock.period_ns)
		seam_guest_service_set_period(&p->guest, clock.period_ns);
	seam_services_add(&s->services, &p->guest.guest);
	seam_services_add(&s->services, &p->guest.symtab);
}

void seam_programs_report_running(const struct seam_session *s)
{
	if (!s->options->command && s->options->layers == SEAM_LAYERS_GUEST)
		seam_session_note(s, false, "no Lua stacks: a process that "
				  "runs cannot have libseam-agent.so; start it "
				  "as COMMAND");
}

/* A VM was found or asked for, and there is nothing of it: say so. */
static void report_no_agent(const struct seam_session *s)
{
	const struct seam_programs *p = s->programs;
	const uint64_t *n = p->guest.counts.n;

	if (p->preload.is_used && !n[SEAM_COUNT_GUEST_PROCESSES] &&
	    !n[SEAM_COUNT_GUEST_SAMPLES] && !p->guest.guest.n_bad &&
	    !p->guest.symtab.n_bad && !s->services.n_notes)
		seam_session_note(s, false, "no Lua stacks: no program ran "
			"LuaJIT for long enough to be sampled, or its agent "
			"could not connect, as one of another user cannot");
}

/* ---- JITs ---- */

static void add_jit(struct seam_session *s, struct seam_jit_service *jit)
{
	seam_jit_service_init(jit, s->options->jit_ring_bytes);
	jit->dumps.on_code = seam_session_take_code;
	jit->dumps.context = s;
	seam_services_add(&s->services, &jit->service);
}

/* ---- all ---- */

/*
 * In the order in which a snapshot copies them: programs of a trigger wait for
 * the copy of their calls, and the rings are drained in it.
 */
static int add_all(struct seam_session *s, struct seam_err *err)
{
	struct seam_programs *p = calloc(1, sizeof(*p));
	int r;

	s->programs = p;
	if (!p)
		return seam_err_no_memory(err);
	add_guest(s, p);
	r = seam_tracing_new(&p->tracing, s, &p->preload, err);
	add_jit(s, &p->jit);
	for (size_t i = 0; i < s->options->n_services; i++)
		seam_services_add(&s->services, s->options->services[i]);
	return r;
}

static int fork_command(struct seam_session *s, struct seam_err *err)
{
	struct seam_programs *p = s->programs;
	int r;

	seam_preload_set(&p->preload);
	if (p->tracing)
		seam_tracing_set(p->tracing);
	r = seam_child_prepare(&s->child, s->options->command,
			       &s->loop.old_mask, err);
	if (p->tracing)
		seam_tracing_restore(p->tracing);
	seam_preload_restore(&p->preload);
	seam_services_forked(&s->services);
	return r;
}

int seam_programs_fork_command(struct seam_session *s, struct seam_err *err)
{
	struct seam_err why = { 0 };
	int r = add_all(s, err);

	if (r < 0)
		return r;
	seam_services_open(&s->services, &why);
	/* the program would make a bundle of its own */
	if (!s->services.is_open && s->programs->tracing)
		return seam_err_set(err, why.code, "cannot record calls "
				    "(--trace): %s", why.cause[0]);
	if (!s->services.is_open)
		seam_session_note(s, true, "JITs write files: %s",
				  why.cause[0]);
	r = fork_command(s, err);
	return r == 0 && s->services.is_open ?
	       seam_loop_add_link(&s->loop, s->services.server.epoll_fd, err) :
	       r;
}

/* What agents have to report: the last of them, which may correct another. */
static void report_note(const struct seam_session *s)
{
	char text[SEAM_LINK_NOTE_BYTES], others[64] = "";

	if (!s->services.n_notes)
		return;
	seam_text_copy(text, sizeof(text), s->services.note,
		       SEAM_TEXT_TERMINAL);
	if (s->services.n_notes > 1)
		snprintf(others, sizeof(others), "; %" PRIu64 " more messages "
			 "of programs", s->services.n_notes - 1);
	seam_session_note(s, false, "%s%s", text, others);
}

void seam_programs_finish(struct seam_session *s)
{
	seam_services_close(&s->services);
	if (!s->programs)
		return;
	report_note(s);
	seam_services_finish(&s->services);
	report_no_agent(s);
	if (s->services.n_failed)
		seam_session_note(s, false, "%" PRIu64 " programs got no "
			"ring, so JITs write files: %s",
			s->services.n_failed, s->services.why.cause[0]);
}

void seam_programs_fini(struct seam_session *s)
{
	struct seam_programs *p = s->programs;

	seam_services_fini(&s->services);
	if (!p)
		return;
	seam_jit_service_fini(&p->jit);
	seam_guest_service_fini(&p->guest);
	seam_tracing_free(p->tracing);
	free(p);
}
