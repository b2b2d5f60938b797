/* SPDX-License-Identifier: MIT */
/* programs.c - add, open, fork, report; see session.h */
#include "record/session.h"

#include "base/file.h"
#include "record/preload/preload.h"
#include "record/services/guest_service.h"
#include "record/services/jit_service.h"
#include "wire/xray/trace_service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	EXIT_NOT_STARTED = 127,
	OWN_SERVICES = 5,	/* jit; guest and its names; functions, calls */
};

_Static_assert(OWN_SERVICES + SEAM_RECORD_MORE_SERVICES <=
	       SEAM_LINK_MAX_SERVICES, "a link has room for all services");

struct seam_programs {
	struct seam_preload preload;
	struct seam_jit_service jit;
	struct seam_guest_service guest;	/* if preload.is_used */
	struct seam_tracing *tracing;	/* NULL: without --trace */
};

/* ---- the sampler ---- */

/*
 * Why there are no Lua stacks: an option that samplers cannot follow.  NULL:
 * there is none.
 */
static const char *without_samplers(const struct seam_record_options *o,
				    uint64_t period_ns, bool has_aux)
{
	/* a sampler samples its thread on all CPUs */
	if (o->cpus.n)
		return "with -C";
	/* and is in all that the command starts */
	if (o->no_inherit)
		return "with -i";
	/* the clock of AUX data is not the program's */
	if (has_aux)
		return "with AUX data";
	/* most ticks would be skipped: a signal alone takes 10 to 30 us */
	if (period_ns && period_ns < SEAM_GUEST_MIN_NS)
		return "at more than 10000 Hz";
	/* who asks for other events did not ask for samples of time */
	if (!period_ns && o->layers != SEAM_LAYERS_GUEST)
		return "without an event of CPU time, such as cpu-clock, or "
		       "--layers=guest";
	return NULL;
}

/* Decide whether the command gets a sampler, and have its services. */
static void add_guest(struct seam_session *s, struct seam_programs *p)
{
	const char *why = NULL;
	uint64_t period_ns = 0;
	bool has_aux = false;
	char message[512];

	seam_preload_decide(&p->preload, s->options->layers,
			    s->options->command, message, sizeof(message));
	if (p->preload.is_used && !seam_plan_clock(s, &period_ns, &has_aux)) {
		p->preload.is_used = false;
		return;
	}
	if (p->preload.is_used)
		why = without_samplers(s->options, period_ns, has_aux);
	if (why) {
		p->preload.is_used = false;
		snprintf(message, sizeof(message), "no Lua stacks %s", why);
	}
	if (message[0])
		seam_session_note(s, false, "%s", message);
	if (!p->preload.is_used)
		return;
	seam_guest_service_init(&p->guest, period_ns);
	seam_services_add(&s->services, &p->guest.guest);
	seam_services_add(&s->services, &p->guest.symtab);
}

/* ---- the command's process ---- */

/* In the command's process: the link's address, libraries, what to trace. */
static void set_environment(const struct seam_session *s)
{
	/* the address of a recorder above us is not for our command */
	unsetenv(SEAM_LINK_VARIABLE);
	if (s->services.is_open)
		setenv(SEAM_LINK_VARIABLE, s->services.server.address, 1);
	seam_preload_set(&s->programs->preload);
	if (s->programs->tracing)
		setenv(SEAM_TRACE_VARIABLE,
		       seam_tracing_options(s->programs->tracing), 1);
}

/* In the command's process.  Does not return. */
static void wait_and_exec(const struct seam_session *s, int parent)
{
	char byte;
	ssize_t n;
	int code;

	set_environment(s);
	do
		n = read(parent, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_NOT_STARTED);	/* the recorder has ended */
	sigprocmask(SIG_SETMASK, &s->loop.old_mask, NULL);
	execvp(s->options->command[0], s->options->command);
	code = errno;
	/* fails only if the recorder has ended */
	(void)!send(parent, &code, sizeof(code), MSG_NOSIGNAL);
	_exit(EXIT_NOT_STARTED);
}

static int fork_child(struct seam_session *s, struct seam_err *err)
{
	int ends[2], pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return seam_err_errno(err, "cannot start the command: "
				      "socketpair");
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		wait_and_exec(s, ends[1]);
	}
	close(ends[1]);
	s->child.socket = ends[0];
	if (pid < 0)
		return seam_err_errno(err, "cannot fork");
	s->child.pid = pid;
	return 0;
}

int seam_programs_start_command(struct seam_session *s, struct seam_err *err)
{
	struct seam_child *child = &s->child;
	int code = 0;
	ssize_t n;

	if (send(child->socket, "", 1, MSG_NOSIGNAL) != 1)
		return seam_err_errno(err, "cannot start the command");
	/* a successful exec() closes the other end: no bytes */
	do
		n = read(child->socket, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	if (n != sizeof(code) || code <= 0) {
		child->started = true;
		return 0;
	}
	waitpid(child->pid, NULL, 0);
	child->pid = 0;
	return seam_err_set(err, -code, "cannot start '%s': %s",
			    s->options->command[0], strerror(code));
}

/* Close the socket, and reap the process if it has ended or never started. */
static void end_child(const struct seam_child *child)
{
	seam_file_close_fd(child->socket);
	/* a process that was not started exits: its socket is closed */
	if (child->pid > 0)
		waitpid(child->pid, NULL, child->started ? WNOHANG : 0);
}

/* ---- all ---- */

int seam_programs_fork_command(struct seam_session *s, struct seam_err *err)
{
	struct seam_programs *p = calloc(1, sizeof(*p));
	struct seam_err why = { 0 };
	int r;

	s->programs = p;
	if (!p)
		return seam_err_no_memory(err);
	if (s->options->sink)
		return fork_child(s, err);
	/*
	 * In the order in which a snapshot copies them: programs of a trigger
	 * wait for the copy of their calls, and the rings are drained in it.
	 */
	add_guest(s, p);
	r = seam_tracing_new(&p->tracing, s, &p->preload, err);
	seam_jit_service_init(&p->jit, s->options->jit_ring_bytes);
	p->jit.on_code = seam_session_take_code;
	p->jit.context = s;
	seam_services_add(&s->services, &p->jit.service);
	for (size_t i = 0; i < SEAM_RECORD_MORE_SERVICES; i++)
		if (s->options->services[i])
			seam_services_add(&s->services,
					  s->options->services[i]);
	if (r < 0)
		return r;
	seam_services_open(&s->services, &why);
	/* the program would make a bundle of its own */
	if (!s->services.is_open && p->tracing)
		return seam_err_set(err, why.code, "cannot record calls "
				    "(--trace): %s", why.cause[0]);
	if (!s->services.is_open)
		seam_session_note(s, true, "JITs write files: %s",
				  why.cause[0]);
	r = fork_child(s, err);
	if (r < 0 || !s->services.is_open)
		return r;
	s->loop.link = s->services.server.epoll_fd;
	return seam_loop_add_fd(&s->loop, s->loop.link, err);
}

void seam_programs_finish(struct seam_session *s)
{
	const struct seam_programs *p = s->programs;
	const struct seam_services *services = &s->services;
	const uint64_t *n;
	char others[64] = "";

	seam_services_close(&s->services);
	if (!p)
		return;
	/* of what samplers report, the last, which may correct another */
	if (services->n_notes > 1)
		snprintf(others, sizeof(others), "; %" PRIu64 " more messages "
			 "of programs", services->n_notes - 1);
	if (services->n_notes)
		seam_session_note(s, false, "%s%s", services->note, others);
	SEAM_SERVICES_CALL(&s->services, finish);
	n = p->guest.counts.n;
	if (p->preload.is_used && !n[SEAM_COUNT_GUEST_PROCESSES] &&
	    !n[SEAM_COUNT_GUEST_SAMPLES] && !p->guest.guest.n_bad &&
	    !p->guest.symtab.n_bad && !services->n_notes)
		seam_session_note(s, false, "no Lua stacks: no program ran "
			"LuaJIT for long enough to be sampled, or its sampler "
			"could not connect, as one of another user cannot");
	if (services->n_failed)
		seam_session_note(s, false, "%" PRIu64 " programs got no "
			"ring, so JITs write files: %s",
			services->n_failed, services->why.cause[0]);
}

void seam_programs_fini(struct seam_session *s)
{
	struct seam_programs *p = s->programs;

	seam_services_fini(&s->services);
	end_child(&s->child);
	if (!p)
		return;
	seam_jit_service_fini(&p->jit);
	seam_guest_service_fini(&p->guest);
	seam_tracing_free(p->tracing);
	free(p);
}
