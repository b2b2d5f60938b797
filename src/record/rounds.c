/* SPDX-License-Identifier: MIT */
/* rounds.c - drain, limits, snapshots, CPU; see session.h */
#include "record/session.h"

#include "base/clock.h"

/*
 * The longest time between two rounds: a killed recorder loses at most the
 * records of this time.  After side-band records it is short, so that mapped
 * files are opened before they are deleted; else it doubles.
 */
enum {
	SHORTEST_WAIT_MS = 8,
	/* At a low rate few samples wait for what the side-band says. */
	SLOW_HZ = 50, SLOW_SHORTEST_WAIT_MS = 64,
	LONGEST_WAIT_MS = 256,	/* where stacks are copied: record.h */
	/* A flood: a ring is above its watermark again within this time. */
	FLOOD_NS = 20 * 1000 * 1000,
	DRAIN_NS = 8 * 1000 * 1000,	/* between rounds of long work */
	KEPT_PART = 4,	/* of --max-size, at most 1/4 is for kept files */
};

/* ---- drain ---- */

void seam_rounds_cut_short(struct seam_session *s)
{
	s->result->cut_short = true;
	seam_drain_drop_waiting(&s->drain);
	seam_sources_disable(&s->sources);
	if (s->recording.data.writer.was_cut)
		seam_data_file_lost(&s->recording.data);
}

/* One round of draining.  After a failure the recording is cut short. */
static int drain(struct seam_session *s)
{
	const struct seam_service *sampler = s->drain.superseder;
	struct seam_err why = { 0 };
	ssize_t r;

	if (s->result->cut_short) {
		seam_drain_discard(&s->drain);
		seam_services_close(&s->services);
		return 0;
	}
	/* first: code of JITs, for the samples of this round */
	seam_kept_files_collect(&s->kept_files);
	r = seam_drain_round(&s->drain, &why);
	seam_sparse_check(&s->sparse);
	if (s->options->off_cpu.is_used && s->sources.is_sampling)
		seam_switch_stacks_check(&s->switch_stacks, &s->sources,
					 seam_clock_ns());
	/* the command's own process is sampled by its sampler */
	if (r >= 0 && !s->drain.is_last && sampler && s->child.pid &&
	    sampler->first_pid == (uint32_t)s->child.pid &&
	    seam_sparse_open(&s->sparse)) {
		/* every fork before has its record now */
		r = seam_drain_round(&s->drain, &why);
		seam_sparse_begin(&s->sparse);
	}
	if (r >= 0)
		r = seam_new_threads_update(&s->new_threads, &why);
	if (r >= 0)
		r = seam_session_watch(s, &why);
	seam_stopped_round(&s->stopped, s->drain.is_last,
			   &s->recording.data.losses);
	if (r >= 0)
		return 0;
	s->rounds.failed = (int)r;
	s->rounds.why = why;
	seam_rounds_cut_short(s);
	return (int)r;
}

int seam_rounds_drain(struct seam_session *s)
{
	int r;

	/* programs may wait to be connected */
	s->services.is_ready = true;
	r = drain(s);
	s->rounds.drained_ns = seam_clock_ns();
	return r;
}

bool seam_rounds_wait_and_drain(void *session)
{
	struct seam_session *s = session;
	bool goes_on = seam_session_wait(s, -1, 0);

	if (seam_clock_ns() - s->rounds.drained_ns < DRAIN_NS)
		return goes_on;
	return seam_rounds_drain(s) == 0 && goes_on;
}

int seam_rounds_failure(const struct seam_session *s, struct seam_err *err)
{
	if (s->rounds.failed && err)
		*err = s->rounds.why;
	return s->rounds.failed;
}

/* ---- limits ---- */

static int shortest_wait_ms(const struct seam_record_options *o)
{
	return o->frequency_hz && o->frequency_hz < SLOW_HZ ?
	       SLOW_SHORTEST_WAIT_MS : SHORTEST_WAIT_MS;
}

/* Short after side-band records, and never beyond the next due time. */
static int next_wait_ms(struct seam_session *s, int wait_ms, bool had_sideband)
{
	uint64_t now_ns = seam_clock_ns(), due_ns = s->rounds.end_ns;

	int longest_ms = s->copies.bytes ? SEAM_STACK_PLAN_WAIT_MS :
			 LONGEST_WAIT_MS;
	int shortest_ms = shortest_wait_ms(s->options);

	if (s->services.server.is_behind)
		return 0;
	/* after a round that was due at once it is 0 */
	wait_ms = had_sideband || !wait_ms ? shortest_ms :
		  2 * wait_ms < longest_ms ? 2 * wait_ms : longest_ms;
	wait_ms = seam_blocked_stacks_wait_ms(&s->blocked, wait_ms);
	if (s->rounds.is_delayed && s->rounds.enable_ns < due_ns)
		due_ns = s->rounds.enable_ns;
	if (s->rounds.snapshot_ns < due_ns)
		due_ns = s->rounds.snapshot_ns;
	if (s->options->sink && s->options->sink->due_ns < due_ns)
		due_ns = s->options->sink->due_ns;
	if (seam_services_due_ns(&s->services) < due_ns)
		due_ns = seam_services_due_ns(&s->services);
	if (due_ns <= now_ns)
		return 0;
	due_ns = (due_ns - now_ns + SEAM_NS_PER_MS - 1) / SEAM_NS_PER_MS;
	return due_ns < (uint64_t)wait_ms ? (int)due_ns : wait_ms;
}

/* False: the sink ends the recording. */
static bool call_sink(struct seam_session *s)
{
	struct seam_sink *sink = s->options->sink;

	return !sink || sink->after_round(sink, s->drain.begin_ns, false);
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
		seam_drain_attached(s);
		seam_sources_enable(&s->sources);
	}
	if (seam_clock_ns() >= s->rounds.end_ns)
		s->result->limit = "--duration";
	else if (max_bytes &&
		 seam_session_bytes(s, &s->recording.data) +
		 seam_follow_bytes(&s->kept_files.follow) >= max_bytes)
		s->result->limit = "--max-size";
	return s->result->limit != NULL;
}

/* ---- snapshots ---- */

bool seam_rounds_snapshot(struct seam_session *s)
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

/* Make a snapshot if one is due, by the clock or because it is @requested. */
static void take_snapshot(struct seam_session *s, bool requested)
{
	uint64_t now_ns = seam_clock_ns();

	requested |= s->rounds.wants_snapshot;
	s->rounds.wants_snapshot = false;
	if (s->rounds.snapshot_ns <= now_ns) {
		s->rounds.snapshot_ns = now_ns + s->options->snapshot_ns;
		requested = true;
	}
	/* first the records that programs, or threads that wait, have by now */
	if (requested && !s->rounds.failed &&
	    ((!s->services.server.n_targets && !s->drain.history) ||
	     drain(s) == 0))
		seam_rounds_snapshot(s);
}

int seam_rounds_run(struct seam_session *s, struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	uint64_t now_ns = seam_clock_ns();
	struct seam_loop_signal signal;
	int wait_ms = SHORTEST_WAIT_MS;
	/* all processes may have ended while events were opened */
	bool ended = s->rounds.must_end ||
		     ((o->pids.n || o->tids.n || o->by_user) &&
		      s->loop.processes.n == 0);

	/* the times that count from now, when the target runs */
	s->rounds.is_delayed = s->sources.delayed;
	s->sources.is_sampling = !s->rounds.is_delayed;
	s->rounds.enable_ns = now_ns + o->delay_ms * SEAM_NS_PER_MS;
	seam_services_set_from(&s->services,
			       o->delay_ms ? s->rounds.enable_ns : 0);
	s->rounds.end_ns = o->duration_ns ? now_ns + o->duration_ns :
			   UINT64_MAX;
	s->rounds.snapshot_ns = o->snapshot_ns ? now_ns + o->snapshot_ns :
				UINT64_MAX;
	while (!ended) {
		unsigned int events = seam_loop_wait(&s->loop, wait_ms,
						     &signal);
		uint64_t n_sideband = s->drain.n_sideband;

		ended = (events & SEAM_LOOP_CHILD &&
			 seam_session_check_command(s)) ||
			events & SEAM_LOOP_EXITS ||
			(events & SEAM_LOOP_SIGNAL &&
			 seam_session_ends_on(s, &signal));
		s->services.is_ready |= (events & SEAM_LOOP_LINK) != 0;
		drain(s);
		/* on the CPU of a flood, until no ring causes a wakeup */
		now_ns = seam_clock_ns();
		if (s->drain.fullest_cpu >= 0) {
			if (now_ns - s->rounds.full_ns < FLOOD_NS)
				seam_sched_move(&s->rounds.sched,
						s->drain.fullest_cpu);
			s->rounds.full_ns = now_ns;
		} else if (!(events & SEAM_LOOP_RINGS)) {
			seam_sched_move(&s->rounds.sched, -1);
		}
		take_snapshot(s, events & SEAM_LOOP_SNAPSHOT);
		if (!s->rounds.failed)
			SEAM_SERVICES_CALL(&s->services, after_round, false);
		ended |= reached_limit(s) || s->rounds.must_end ||
			 !call_sink(s);
		wait_ms = next_wait_ms(s, wait_ms,
				       s->drain.n_sideband != n_sideband);
	}
	if (!s->rounds.failed)
		SEAM_SERVICES_CALL(&s->services, after_round, true);
	return seam_rounds_failure(s, err);
}
