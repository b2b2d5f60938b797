/* SPDX-License-Identifier: MIT */
/* session.c - steps that all stages of a recording share; see session.h */
#include "record/session.h"

#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/wait.h>

void seam_session_note(const struct seam_session *s, bool verbose,
		       const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (!s->options->note)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	s->options->note(s->options->context, verbose, text);
}

int seam_session_watch(struct seam_session *s, struct seam_err *err)
{
	int r = 0;

	for (; r == 0 && s->n_watched < s->sources.list.n; s->n_watched++) {
		int fd = s->sources.list.items[s->n_watched].fd;

		if (fd >= 0)
			r = seam_loop_add_fd(&s->loop, fd, err);
	}
	return r;
}

void seam_session_take_code(void *context, uint32_t pid,
			    struct seam_bytes group)
{
	struct seam_session *s = context;

	/* without a common clock no code can be found by its time */
	if (s->drain.stacks && !s->services.other_clock)
		seam_live_jit_add(&s->stacks.jit, (int32_t)pid, group);
}

void seam_session_track_files(struct seam_session *s,
			      const struct seam_perf_sideband *record,
			      bool is_new)
{
	if (s->stacks.is_used)
		seam_live_stacks_sideband(&s->stacks, record, is_new);
	if (!s->options->sink)
		seam_kept_files_sideband(&s->kept_files, record);
}

uint64_t seam_session_bytes(const struct seam_session *s,
			    const struct seam_data_file *file)
{
	return file->writer.data_offset + file->writer.data_bytes +
	       seam_services_bytes(&s->services);
}

/*
 * The command stays a zombie to the end of the recording: its files are opened
 * with the rights of its owner in /proc.
 */
bool seam_session_check_command(struct seam_session *s)
{
	siginfo_t info = { 0 };
	int r;

	if (!s->child.pid)
		return false;
	do
		r = waitid(P_PID, (id_t)s->child.pid, &info,
			   WEXITED | WNOHANG | WNOWAIT);
	while (r < 0 && errno == EINTR);
	if (r == 0 && info.si_pid == 0)
		return false;
	/* -ECHILD: it was reaped elsewhere, and its status is unknown */
	s->result->command.has_ended = true;
	if (r == 0)
		s->result->command.wait_status = info.si_code == CLD_EXITED ?
			W_EXITCODE(info.si_status, 0) : info.si_status |
			(info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
	return true;
}

bool seam_session_ends_on(struct seam_session *s,
			  const struct seam_loop_signal *signal)
{
	bool first = s->result->command.signal == 0;

	s->result->command.signal = signal->number;
	if (!s->child.pid)
		return true;
	if (!signal->from_terminal)
		kill(s->child.pid, signal->number);
	return !first || signal->was_ignored;
}

void seam_session_allow(struct seam_session *s, uint64_t ns)
{
	s->rounds.wait_end_ns = seam_clock_ns() + ns;
}

bool seam_session_wait(void *session, int fd, int timeout_ms)
{
	struct seam_session *s = session;
	struct seam_loop_signal signal;
	unsigned int events = seam_loop_wait_for(&s->loop, fd, timeout_ms,
					       &signal);

	if (events & SEAM_LOOP_CHILD && !s->result->command.has_ended &&
	    seam_session_check_command(s))
		s->rounds.must_end = true;
	s->rounds.wants_snapshot |= (events & SEAM_LOOP_SNAPSHOT) != 0;
	if (!(events & SEAM_LOOP_SIGNAL))
		return seam_clock_ns() < s->rounds.wait_end_ns;
	if (s->result->command.has_ended)
		s->result->command.signal = signal.number;
	else if (seam_session_ends_on(s, &signal))
		s->rounds.must_end = true;
	return false;
}
