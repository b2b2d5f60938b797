/* SPDX-License-Identifier: MIT */
/* flight.c - keep, copy, resume; see flight.h */
#include "record/flight.h"

#include <inttypes.h>

#include "base/clock.h"
#include "record/rounds.h"

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
	struct seam_tracing *t = context;
	const struct seam_ended_thread thread = {
		.pid = stream->pid, .tid = stream->tid,
		.since_ns = stream->since_ns, .size = size,
	};

	seam_ended_threads_add(&t->ended, &thread, bytes);
}

static void copy_running(void *context,
			 const struct seam_service_stream *stream,
			 const uint8_t *bytes, size_t size)
{
	struct seam_tracing *t = context;
	struct seam_trace_program program = seam_fdr_service_program(stream);

	if (t->snapshot)
		write_area(t->snapshot, &program, stream->tid,
			   (struct seam_bytes) { bytes, size });
}

/* ---- triggers ---- */

static void take_trigger(void *context,
			 const struct seam_service_stream *stream,
			 const struct seam_xray_announcement *a)
{
	struct seam_tracing *t = context;

	if (a->kind == SEAM_XRAY_ANNOUNCED_TRIGGER)
		seam_trigger_hits_add(&t->triggers, stream->pid, &a->trigger);
	else if (a->kind == SEAM_XRAY_ANNOUNCED_MATCH)
		seam_trigger_hits_functions(&t->triggers, a->match.trigger,
					    a->match.n_functions);
}

/* A process that has ended, or runs another program, has no such ring. */
static void resume(void *context, uint32_t pid, uint32_t number)
{
	struct seam_tracing *t = context;
	struct seam_ring_control *control =
		seam_services_control(&t->s->services, &t->fdr.functions, pid);

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
static void skip_gaps(struct seam_tracing *t)
{
	for (size_t i = 0; i < t->triggers.taken.n; i++)
		seam_services_skip_gaps(&t->s->services, &t->fdr.calls,
					t->triggers.taken.items[i].pid,
					SEAM_TRACE_SKIPPED_FROZEN);
}

/* Resume the programs; what they met until then is in this snapshot. */
static void go_on(struct seam_tracing *t)
{
	if (!t->triggers.taken.n)
		return;
	if (seam_rounds_drain(t->s) == 0)
		seam_trigger_hits_join(&t->triggers);
	/* twice: a thread may begin to wait in between */
	skip_gaps(t);
	seam_trigger_hits_resume(&t->triggers, seam_tsc_now());
	skip_gaps(t);
	/* what they met since the last drain */
	seam_rounds_drain(t->s);
}

/* ---- snapshots ---- */

static struct seam_tracing *tracing_of(const struct seam_service *service)
{
	const struct seam_fdr_service *fdr = service->context;

	return fdr->context;
}

static uint64_t due_ns(const struct seam_service *service)
{
	return seam_trigger_hits_due_ns(&tracing_of(service)->triggers);
}

/* A trigger that no function is for, once known; at the end the others. */
static void report_unknown(struct seam_tracing *t, bool at_end)
{
	const struct seam_session *s = t->s;
	int i;

	while ((i = seam_trigger_hits_unknown(&t->triggers, seam_clock_ns(),
					      at_end)) >= 0)
		seam_session_note(s, false, "trigger '%s': "
				  SEAM_TRIGGER_NO_FUNCTION,
				  s->options->flight.triggers[i]);
}

/*
 * Make a snapshot for triggers if one is due.  At the end of the recording it
 * is: also for what programs met before they ended, while the last one was
 * made.
 */
static void after_round(struct seam_service *service, bool at_end)
{
	struct seam_tracing *t = tracing_of(service);
	uint64_t now_ns = at_end ? UINT64_MAX : seam_clock_ns();
	bool is_due = t->triggers.waiting.n &&
		      seam_trigger_hits_due_ns(&t->triggers) <= now_ns;

	report_unknown(t, at_end);
	if (!is_due && !(at_end && t->triggers.n_triggers))
		return;
	/* also for the triggers that were met meanwhile */
	if (seam_rounds_drain(t->s) == 0 &&
	    seam_trigger_hits_take(&t->triggers, now_ns))
		seam_trigger_hits_done(&t->triggers,
				       seam_rounds_snapshot(t->s));
}

/*
 * The newest calls of all threads go to xray/ of a snapshot; then the programs
 * of the triggers that it is for are resumed.
 */
static int copy(struct seam_service *service, const struct seam_bundle *bundle,
		struct seam_err *err)
{
	struct seam_tracing *t = tracing_of(service);
	struct seam_trace_logs logs;

	(void)err;
	seam_trace_logs_init(&logs, bundle, &t->fdr.clock);
	t->snapshot = &logs;
	seam_services_snapshot_aux(&t->s->services);
	t->snapshot = NULL;
	/* before go_on(), in which threads end that were just copied */
	write_ended(&t->ended, &logs);
	go_on(t);
	seam_tracing_complete(t, &logs);
	seam_trace_logs_fini(&logs);
	return 0;
}

static struct seam_manifest_trigger describe(const struct seam_tracing *t,
					     const struct seam_trigger_hit *hit)
{
	const struct seam_xray_trigger *met = &hit->met;
	const struct seam_tsc_clock *clock = &t->fdr.clock;
	uint64_t hz = seam_tsc_clock_hz(clock);

	return (struct seam_manifest_trigger) {
		.text = t->s->options->flight.triggers[met->trigger],
		.pid = hit->pid, .tid = met->tid, .tsc = met->tsc,
		.time_ns = seam_tsc_clock_ns(clock, met->tsc),
		.duration_ns = hz ? (uint64_t)((__uint128_t)met->ticks *
					       SEAM_NS_PER_S / hz) : 0,
		.function = met->function,
	};
}

void seam_flight_describe(struct seam_tracing *t, struct seam_manifest *m)
{
	m->triggers = t->described;
	m->n_triggers = t->triggers.taken.n;
	for (size_t i = 0; i < m->n_triggers; i++)
		t->described[i] = describe(t, &t->triggers.taken.items[i]);
}

/* ---- from begin to end ---- */

void seam_flight_init(struct seam_tracing *t,
		      const struct seam_flight_options *o)
{
	t->ended.max_bytes = SEAM_ENDED_THREADS_BYTES;
	t->triggers.n_triggers = o->n_triggers;
	t->triggers.after_ns = o->after_ns;
	t->triggers.max_snapshots = o->max_snapshots;
	t->triggers.resume = resume;
	t->triggers.context = t;
	t->fdr.on_trigger = take_trigger;
	t->fdr.on_end = keep_ended;
	t->fdr.on_snapshot = copy_running;
	t->fdr.calls.after_round = after_round;
	t->fdr.calls.due_ns = due_ns;
	t->fdr.calls.copy = copy;
}

void seam_flight_finish(struct seam_tracing *t)
{
	const struct seam_trigger_hits *hits = &t->triggers;

	write_ended(&t->ended, &t->logs);
	if (hits->n_beyond && hits->n_snapshots >= hits->max_snapshots)
		seam_session_note(t->s, false, "%" PRIu64 " trigger%s met "
				  "after the last of %u snapshots (more: "
				  "--max-snapshots)", hits->n_beyond,
				  hits->n_beyond == 1 ? " was" : "s were",
				  hits->n_snapshots);
	else if (hits->n_beyond && hits->n_failed)
		seam_session_note(t->s, false, "%" PRIu64 " triggers have no "
				  "snapshot, as the last %u failed",
				  hits->n_beyond, hits->n_failed);
	if (t->ended.n_dropped)
		seam_session_note(t->s, false, "the calls of %" PRIu64
				  " threads that ended early were not kept: "
				  "beyond %d MiB", t->ended.n_dropped,
				  SEAM_ENDED_THREADS_BYTES >> 20);
}
