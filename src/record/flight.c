/* SPDX-License-Identifier: MIT */
/* flight.c - keep, copy, resume; see flight.h */
#include "record/flight.h"

#include <inttypes.h>

#include "base/clock.h"
#include "record/session.h"
#include "wire/manifest.h"

/* ---- calls ---- */

static void write_area(struct seam_trace_logs *logs,
		       const struct seam_trace_program *program, uint32_t tid,
		       struct seam_bytes area)
{
	struct seam_program_log *log;

	if (!area.size)
		return;
	log = seam_trace_logs_enter(logs, program);
	for (size_t at = 0; at < area.size; at += SEAM_XRAY_CHUNK_BYTES) {
		size_t left = area.size - at;
		size_t size = left < SEAM_XRAY_CHUNK_BYTES ? left :
			      SEAM_XRAY_CHUNK_BYTES;

		if (log)
			seam_trace_logs_add(log, tid, area.data + at, size);
		else
			seam_trace_logs_drop(logs, area.data + at, size);
	}
	if (log)
		seam_trace_logs_leave(log);
}

static void write_ended(const struct seam_ended_threads *ended,
			struct seam_trace_logs *logs)
{
	for (size_t i = 0; i < seam_ended_threads_n(ended); i++) {
		const struct seam_ended_thread *thread =
			seam_ended_threads_at(ended, i);
		const struct seam_trace_program program = {
			.pid = thread->pid, .since_ns = thread->since_ns,
		};

		write_area(logs, &program, thread->tid, (struct seam_bytes) {
				thread->bytes, thread->size });
	}
}

/* A thread ends: these are its newest calls. */
static void keep_ended(void *context, const struct seam_service_stream *stream,
		       const uint8_t *bytes, size_t size)
{
	struct seam_session *s = context;
	const struct seam_ended_thread thread = {
		.pid = stream->pid, .tid = stream->tid,
		.since_ns = stream->since_ns, .size = size,
	};

	seam_ended_threads_add(&s->flight.ended, &thread, bytes);
}

static void copy_running(void *context,
			 const struct seam_service_stream *stream,
			 const uint8_t *bytes, size_t size)
{
	struct seam_session *s = context;
	struct seam_trace_program program = seam_fdr_service_program(stream);

	if (s->flight.snapshot)
		write_area(s->flight.snapshot, &program, stream->tid,
			   (struct seam_bytes) { bytes, size });
}

/* ---- triggers ---- */

static void take_trigger(void *context,
			 const struct seam_service_stream *stream,
			 const struct seam_xray_announcement *a)
{
	struct seam_session *s = context;

	if (a->kind == SEAM_XRAY_ANNOUNCED_TRIGGER)
		seam_trigger_hits_add(&s->triggers, stream->pid, &a->trigger);
	else if (a->kind == SEAM_XRAY_ANNOUNCED_MATCH)
		seam_trigger_hits_functions(&s->triggers,
					    a->match.trigger,
					    a->match.n_functions);
}

/* A process that has ended, or runs another program, has no such ring. */
static void resume(void *context, uint32_t pid, uint32_t number)
{
	struct seam_session *s = context;
	struct seam_ring_control *control =
		seam_services_control(&s->services, &s->tracing.fdr.functions,
				      pid);

	/* release: the copy comes before what the program overwrites now */
	if (control)
		atomic_store_explicit(&control->program.n_resumed, number,
				      memory_order_release);
}

/*
 * A thread that waits has recorded nothing since: what was before that is in
 * the snapshot just made, and not in later ones, which would show calls of both
 * times as if they were nested.
 */
static void skip_gaps(struct seam_session *s)
{
	for (size_t i = 0; i < s->triggers.taken.n; i++)
		seam_services_skip_gaps(&s->services, &s->tracing.fdr.calls,
					s->triggers.taken.items[i].pid,
					SEAM_TRACE_SKIPPED_FROZEN);
}

/* Resume the programs; what they met until then is in this snapshot. */
static void go_on(struct seam_session *s)
{
	if (!s->triggers.taken.n)
		return;
	if (seam_rounds_drain(s) == 0)
		seam_trigger_hits_join(&s->triggers);
	/* twice: a thread may begin to wait in between */
	skip_gaps(s);
	seam_trigger_hits_resume(&s->triggers, seam_tsc_now());
	skip_gaps(s);
	/* what they met since the last drain */
	seam_rounds_drain(s);
}

/* ---- from begin to end ---- */

void seam_flight_begin(struct seam_session *s)
{
	const struct seam_flight_options *o = &s->options->flight;

	if (!o->is_used)
		return;
	s->flight.ended.max_bytes = SEAM_ENDED_THREADS_BYTES;
	s->triggers.n_triggers = o->n_triggers;
	s->triggers.after_ns = o->after_ns;
	s->triggers.max_snapshots = o->max_snapshots;
	s->triggers.resume = resume;
	s->triggers.context = s;
	s->tracing.fdr.on_trigger = take_trigger;
	s->tracing.fdr.on_end = keep_ended;
	s->tracing.fdr.on_snapshot = copy_running;
	s->tracing.fdr.context = s;
}

struct seam_manifest_trigger seam_flight_trigger(const struct seam_session *s,
						 size_t i)
{
	const struct seam_trigger_hit *hit = &s->triggers.taken.items[i];
	const struct seam_xray_trigger *met = &hit->met;
	const struct seam_tsc_clock *clock = &s->tracing.fdr.clock;
	uint64_t hz = seam_tsc_clock_hz(clock);

	return (struct seam_manifest_trigger) {
		.text = s->options->flight.triggers[met->trigger],
		.pid = hit->pid, .tid = met->tid, .tsc = met->tsc,
		.time_ns = seam_tsc_clock_ns(clock, met->tsc),
		.duration_ns = hz ? (uint64_t)((__uint128_t)met->ticks *
					       SEAM_NS_PER_S / hz) : 0,
		.function = met->function, .signal = met->signal,
	};
}

void seam_flight_copy(struct seam_session *s, const struct seam_bundle *bundle)
{
	struct seam_trace_name_counts names;
	struct seam_trace_logs logs;

	if (!s->options->flight.is_used)
		return;
	seam_trace_logs_init(&logs, bundle, &s->tracing.fdr.clock);
	s->flight.snapshot = &logs;
	seam_services_snapshot_aux(&s->services);
	s->flight.snapshot = NULL;
	/* before go_on(), in which threads end that were just copied */
	write_ended(&s->flight.ended, &logs);
	go_on(s);
	seam_tracing_complete(s, &logs, &names);
	seam_trace_logs_fini(&logs);
}

/* What is in no snapshot, and why. */
static void report(const struct seam_session *s)
{
	const struct seam_trigger_hits *t = &s->triggers;

	if (t->n_beyond && t->n_snapshots >= t->max_snapshots)
		seam_session_note(s, false, "%" PRIu64 " trigger%s met "
				  "after the last of %u snapshots (more: "
				  "--max-snapshots)", t->n_beyond,
				  t->n_beyond == 1 ? " was" : "s were",
				  t->n_snapshots);
	else if (t->n_beyond && t->n_failed)
		seam_session_note(s, false, "%" PRIu64 " triggers have no "
				  "snapshot, as the last %u failed",
				  t->n_beyond, t->n_failed);
	if (s->flight.ended.n_dropped)
		seam_session_note(s, false, "the calls of %" PRIu64 " threads "
				  "that ended early were not kept: beyond %d "
				  "MiB", s->flight.ended.n_dropped,
				  SEAM_ENDED_THREADS_BYTES >> 20);
}

void seam_flight_finish(struct seam_session *s)
{
	if (!s->options->flight.is_used)
		return;
	write_ended(&s->flight.ended, &s->tracing.logs);
	report(s);
}

void seam_flight_fini(struct seam_flight *flight)
{
	seam_ended_threads_fini(&flight->ended);
}
