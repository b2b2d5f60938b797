/* SPDX-License-Identifier: MIT */
/* rounds.c - signals, limits, snapshots, CPU; see session.h */
#include "record/session.h"

#include "base/clock.h"
#include "record/plan.h"
#include "record/snapshot.h"
#include "record/stack_plan.h"

#include <errno.h>
#include <sys/wait.h>

/*
 * The longest time between two rounds: a killed recorder loses at most the
 * records of this time.  After side-band records it is short, so that mapped
 * files are opened before they are deleted; else it doubles.
 */
enum {
	SHORTEST_WAIT_MS = 8,
	LONGEST_WAIT_MS = 256,	/* where stacks are copied: stack_plan.h */
	/* A flood: a ring is above its watermark again within this time. */
	FLOOD_NS = 20 * 1000 * 1000,
	DRAIN_NS = 8 * 1000 * 1000,	/* between rounds of long work */
	KEPT_PART = 4,	/* of --max-size, at most 1/4 is for kept files */
};

/* The same as a status of waitpid(). */
static int wait_status_of(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED ? W_EXITCODE(info->si_status, 0) :
	       info->si_status |
	       (info->si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

/*
 * True when the command has ended.  It stays a zombie to the end of the
 * recording: its files are opened with the rights of its owner in /proc.
 */
static bool check_command(struct seam_session *s)
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
	s->result->command_ended = true;
	s->result->wait_status = r == 0 ? wait_status_of(&info) : 0;
	return true;
}

/*
 * True when the signal ends the recording.  The first signal is for the
 * command: the terminal has sent it there too, or we do, and the recording ends
 * when the command does.  A second one ends the recording at once.  So does the
 * first if it was ignored at our start: the command ignores it too.
 */
static bool ends_on_signal(struct seam_session *s,
			   const struct seam_loop_signal *signal)
{
	bool first = s->result->signal == 0;

	s->result->signal = signal->number;
	if (!s->child.pid)
		return true;
	if (!signal->from_terminal)
		kill(s->child.pid, signal->number);
	return !first || signal->was_ignored;
}

void seam_rounds_allow(struct seam_session *s, uint64_t ns)
{
	s->rounds.wait_end_ns = seam_clock_ns() + ns;
}

bool seam_rounds_wait(void *session, int fd, int timeout_ms)
{
	struct seam_session *s = session;
	struct seam_loop_signal signal;
	unsigned int events = seam_loop_wait_for(&s->loop, fd, timeout_ms,
					       &signal);

	if (events & SEAM_LOOP_CHILD && !s->result->command_ended &&
	    check_command(s))
		s->rounds.must_end = true;
	s->rounds.wants_snapshot |= (events & SEAM_LOOP_SNAPSHOT) != 0;
	if (!(events & SEAM_LOOP_SIGNAL))
		return seam_clock_ns() < s->rounds.wait_end_ns;
	if (s->result->command_ended)
		s->result->signal = signal.number;
	else if (ends_on_signal(s, &signal))
		s->rounds.must_end = true;
	return false;
}

int seam_rounds_drain(struct seam_session *s)
{
	int r;

	/* programs may wait to be connected */
	s->services.is_ready = true;
	r = seam_session_drain(s, s->rounds.failed ? NULL : &s->rounds.why);
	s->rounds.failed = s->rounds.failed ? s->rounds.failed : r;
	s->rounds.drained_ns = seam_clock_ns();
	return r;
}

bool seam_rounds_wait_and_drain(struct seam_session *s, int fd,
				int timeout_ms)
{
	bool goes_on = seam_rounds_wait(s, fd, timeout_ms);

	if (seam_clock_ns() - s->rounds.drained_ns < DRAIN_NS)
		return goes_on;
	return seam_rounds_drain(s) == 0 && goes_on;
}

/* Short after side-band records, and never beyond the next due time. */
static int next_wait_ms(const struct seam_session *s, int wait_ms,
			bool had_sideband)
{
	uint64_t now_ns = seam_clock_ns(), due_ns = s->rounds.end_ns;

	int longest_ms = s->copies.bytes ? SEAM_STACK_PLAN_WAIT_MS :
			 LONGEST_WAIT_MS;

	if (s->services.server.is_behind)
		return 0;
	/* after a round that was due at once it is 0 */
	wait_ms = had_sideband || !wait_ms ? SHORTEST_WAIT_MS :
		  2 * wait_ms < longest_ms ? 2 * wait_ms : longest_ms;
	if (s->rounds.is_delayed && s->rounds.enable_ns < due_ns)
		due_ns = s->rounds.enable_ns;
	if (s->rounds.snapshot_ns < due_ns)
		due_ns = s->rounds.snapshot_ns;
	if (seam_trigger_hits_due_ns(&s->triggers) < due_ns)
		due_ns = seam_trigger_hits_due_ns(&s->triggers);
	if (due_ns <= now_ns)
		return 0;
	due_ns = (due_ns - now_ns + SEAM_NS_PER_MS - 1) / SEAM_NS_PER_MS;
	return due_ns < (uint64_t)wait_ms ? (int)due_ns : wait_ms;
}

/* Set the times that count from now, when the target runs. */
static void set_times(struct seam_session *s)
{
	const struct seam_record_options *o = s->options;
	uint64_t now_ns = seam_clock_ns();

	s->rounds.is_delayed = s->sources.delayed;
	s->sources.is_sampling = !s->rounds.is_delayed;
	s->rounds.enable_ns = now_ns + o->delay_ms * SEAM_NS_PER_MS;
	s->guest.guest.from_ns = o->delay_ms ? s->rounds.enable_ns : 0;
	s->rounds.end_ns = o->duration_ns ? now_ns + o->duration_ns :
			   UINT64_MAX;
	s->rounds.snapshot_ns = o->snapshot_ns ? now_ns + o->snapshot_ns :
				UINT64_MAX;
}

/* Enable what was delayed.  True when a limit ends the recording. */
static bool reached_limit(struct seam_session *s)
{
	uint64_t max_bytes = s->options->max_bytes;

	max_bytes -= seam_kept_files_reserved_bytes(&s->kept_files,
						    max_bytes / KEPT_PART);
	if (s->rounds.is_delayed && seam_clock_ns() >= s->rounds.enable_ns) {
		s->rounds.is_delayed = s->sources.delayed = false;
		s->sources.is_sampling = true;
		seam_sources_enable(&s->sources);
	}
	if (seam_clock_ns() >= s->rounds.end_ns)
		s->result->limit = "--duration";
	else if (max_bytes &&
		 seam_session_bytes(s, &s->recording.data) +
		 seam_perf_map_watch_bytes(s->kept_files.jit.maps) >= max_bytes)
		s->result->limit = "--max-size";
	return s->result->limit != NULL;
}

/* @r, or else what failed in the middle of the round. */
static int failure_of(const struct seam_session *s, int r,
		      struct seam_err *err)
{
	if (r < 0 || !s->rounds.failed)
		return r;
	if (err)
		*err = s->rounds.why;
	return s->rounds.failed;
}

/* After a failure the recording goes on.  True: there is one more. */
static bool make_snapshot(struct seam_session *s)
{
	struct seam_err err = { 0 };

	if (!s->options->overwrite && !s->sources.aux_snapshots) {
		seam_session_note(s, false, "snapshots need --overwrite, "
				  "-S or --flight-recorder");
		return false;
	}
	if (seam_snapshot_make(s, s->rounds.n_snapshots + 1, &err) < 0) {
		seam_session_note(s, false, "%s: %s",
				  err.cause[err.n_causes - 1], err.cause[0]);
		return false;
	}
	s->rounds.n_snapshots++;
	return true;
}

/* Whether a snapshot is due, by the clock or because it is @requested. */
static bool wants_snapshot(struct seam_session *s, bool requested)
{
	uint64_t now_ns = seam_clock_ns();

	requested |= s->rounds.wants_snapshot;
	s->rounds.wants_snapshot = false;
	if (s->rounds.snapshot_ns <= now_ns) {
		s->rounds.snapshot_ns = now_ns + s->options->snapshot_ns;
		return true;
	}
	return requested;
}

/* True when one of @events, enum seam_loop_events, ends the recording. */
static bool ends_on(struct seam_session *s, unsigned int events,
		    const struct seam_loop_signal *signal)
{
	return (events & SEAM_LOOP_CHILD && check_command(s)) ||
	       events & SEAM_LOOP_EXITS ||
	       (events & SEAM_LOOP_SIGNAL && ends_on_signal(s, signal));
}

/* Run on the CPU of a flood, until no ring causes a wakeup any more. */
static void choose_cpu(struct seam_session *s, unsigned int events)
{
	uint64_t now_ns;

	if (s->drain.fullest_cpu < 0) {
		if (!(events & SEAM_LOOP_RINGS))
			seam_sched_move(&s->rounds.sched, -1);
		return;
	}
	now_ns = seam_clock_ns();
	if (now_ns - s->rounds.full_ns < FLOOD_NS)
		seam_sched_move(&s->rounds.sched, s->drain.fullest_cpu);
	s->rounds.full_ns = now_ns;
}

/* Whether all processes ended while their events were opened. */
static bool is_over(const struct seam_session *s)
{
	return (s->options->pids.n || s->options->tids.n) &&
	       s->loop.processes.n == 0;
}

/* Drain first, for the records that programs have written by now. */
static int take_snapshot(struct seam_session *s, struct seam_err *err)
{
	int r = s->services.server.n_targets ? seam_session_drain(s, err) : 0;

	if (r == 0)
		make_snapshot(s);
	return r;
}

/* A trigger that no function is for, once known; at the end the others. */
static void report_unknown_triggers(struct seam_session *s, bool at_end)
{
	const struct seam_flight_options *o = &s->options->flight;
	int i;

	while ((i = seam_trigger_hits_unknown(&s->triggers, seam_clock_ns(),
					      at_end)) >= 0)
		seam_session_note(s, false, "trigger '%s': "
				  SEAM_TRIGGER_NO_FUNCTION, o->triggers[i]);
}

static bool has_due_trigger(const struct seam_session *s, uint64_t now_ns)
{
	return s->triggers.waiting.n &&
	       seam_trigger_hits_due_ns(&s->triggers) <= now_ns;
}

/*
 * If a snapshot for triggers is due.  At the end of the recording it is: also
 * for what programs met before they ended, while the last one was made.
 */
static int snapshot_triggers(struct seam_session *s, bool at_end,
			     struct seam_err *err)
{
	uint64_t now_ns = at_end ? UINT64_MAX : seam_clock_ns();
	int r;

	report_unknown_triggers(s, at_end);
	if (!has_due_trigger(s, now_ns) && !(at_end && s->triggers.n_triggers))
		return 0;
	/* also for the triggers that were met meanwhile */
	r = seam_session_drain(s, err);
	if (r == 0 && seam_trigger_hits_take(&s->triggers, now_ns))
		seam_trigger_hits_done(&s->triggers, make_snapshot(s));
	return r;
}

int seam_rounds_run(struct seam_session *s, struct seam_err *err)
{
	struct seam_loop_signal signal;
	int wait_ms = SHORTEST_WAIT_MS;
	bool ended = is_over(s) || s->rounds.must_end;
	int r = 0;

	set_times(s);
	while (!ended) {
		unsigned int events = seam_loop_wait(&s->loop, wait_ms,
						     &signal);
		uint64_t n_sideband = s->drain.n_sideband;
		int failed;

		ended = ends_on(s, events, &signal);
		s->services.is_ready |= (events & SEAM_LOOP_LINK) != 0;
		failed = seam_session_drain(s, err);
		choose_cpu(s, events);
		if (failed < 0)
			r = failed;
		if (wants_snapshot(s, events & SEAM_LOOP_SNAPSHOT) && r == 0)
			r = take_snapshot(s, err);
		if (r == 0)
			r = snapshot_triggers(s, false, err);
		r = failure_of(s, r, err);
		ended |= reached_limit(s) || s->rounds.must_end;
		wait_ms = next_wait_ms(s, wait_ms,
				       s->drain.n_sideband != n_sideband);
	}
	if (r == 0)
		r = snapshot_triggers(s, true, err);
	return failure_of(s, r, err);
}

void seam_rounds_wait_for_command(struct seam_session *s)
{
	struct seam_loop_signal signal;

	if (s->child.pid && !s->result->command_ended && !s->result->limit &&
	    !s->result->signal && !seam_plan_is_system_wide(s->options) &&
	    !seam_plan_records_command(s->options)) {
		s->result->stopped_command = true;
		kill(s->child.pid, SIGTERM);
	}
	while (s->child.pid && !s->result->command_ended &&
	       !s->result->signal) {
		unsigned int events = seam_loop_wait(&s->loop, -1, &signal);

		if (events & SEAM_LOOP_CHILD && check_command(s))
			return;
		if (events & SEAM_LOOP_SIGNAL)
			ends_on_signal(s, &signal);
	}
}
