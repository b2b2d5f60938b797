/* SPDX-License-Identifier: MIT */
/*
 * tracing.c - what --trace needs, from the start to the end; see session.h
 *
 * With --flight-recorder the calls of each thread are in a buffer that the
 * recorder holds and that overwrites itself.  The calls are written only to a
 * snapshot, and to the recording itself at its end:
 *
 *	of a thread that runs	copied while it goes on (ring/aux.h)
 *	of one that has ended	copied at its end, kept in memory with a limit
 *				(record/trace/ended_threads.h)
 *
 * Threads are copied one after another, and each writes into the oldest of its
 * chunks meanwhile: a buffer of SIZE bytes gives between SIZE - 2 chunks and
 * SIZE - 1 chunk, of 64 KiB each.
 */
#include "record/session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/preload/preload.h"
#include "record/services/fdr_service.h"
#include "record/trace/ended_threads.h"
#include "record/trace/trigger_hits.h"
#include "wire/manifest.h"
#include "wire/xray/trace_service.h"

/* How long logs may be joined, at the disk's speed. */
#define JOIN_NS (3600 * SEAM_NS_PER_S)
/*
 * A function that was called once takes 8 bytes of records and 200 of a map.
 * So much may be written beside logs that have reached --max-size.
 */
enum { LEAST_MAP_BYTES = 64 << 20 };

#define BUILD_HINT "build it with clang -fxray-instrument " \
		   "-fxray-instruction-threshold=1, or with gcc " \
		   "-finstrument-functions"

struct seam_tracing {
	struct seam_session *s;
	struct seam_fdr_service fdr;
	struct seam_trace_logs logs;	/* of the recording */
	char *options;			/* value of SEAM_TRACE; owned */

	/* Of a flight recorder. */
	struct seam_ended_threads ended;
	struct seam_trace_logs *snapshot;	/* being made; NULL: none */
	struct seam_trigger_hits triggers;
	struct seam_manifest_trigger described[SEAM_TRIGGER_MAX_HITS];
};

/* ---- before the command ---- */

/* Separators in it, and a backslash at its end, are part of the text. */
static void put_escaped(FILE *out, const char *text, const char *separators)
{
	for (; *text; text++) {
		if (strchr(separators, *text) || (*text == '\\' && !text[1]))
			fputc('\\', out);
		fputc(*text, out);
		/* what the user has escaped stays so */
		if (*text == '\\' && text[1])
			fputc(*++text, out);
	}
}

/* "KEY=a,b;" of the @lists that are not empty; @separators are escaped. */
static void put_list(FILE *out, const char *key, const char *const *lists,
		     size_t n, const char *separators)
{
	bool is_first = true;

	for (size_t i = 0; i < n; i++) {
		if (!lists[i][0])
			continue;
		fprintf(out, "%s%s", is_first ? key : ",", is_first ? "=" : "");
		is_first = false;
		put_escaped(out, lists[i], separators);
	}
	if (!is_first)
		fputc(';', out);
}

/*
 * The value of SEAM_TRACE, which tells programs what to record: "KEY=VALUE;"
 * again and again.  seam-fdr(3) has its form; traced/fdr/options.h reads it.
 */
static char *compose(const struct seam_record_options *options)
{
	const struct seam_trace_options *o = &options->trace;
	const struct { const char *key; uint64_t value; const char *unit; }
	numbers[] = {
		{ "min", o->min_ns, "ns" }, { "depth", o->depth, "" },
		{ "args", o->n_arguments, "" },
		{ "flight", options->flight.is_used, "" },
		{ "after", options->flight.after_ns, "ns" },
	};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	put_list(out, "functions", o->only, o->n_only, ";");
	put_list(out, "except", o->except, o->n_except, ";");
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(numbers); i++)
		if (numbers[i].value)
			fprintf(out, "%s=%" PRIu64 "%s;", numbers[i].key,
				numbers[i].value, numbers[i].unit);
	put_list(out, "trigger", options->flight.triggers,
		 options->flight.n_triggers, ",;");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* A command that is a script or a wrapper may start one that has calls. */
static void report_command(const struct seam_session *s)
{
	struct seam_program_file file;
	char path[PATH_MAX];

	if (!seam_file_find_program(s->options->command[0], path) ||
	    !seam_program_file_read(&file, path, true))
		return;
	if (!file.is_dynamic)
		seam_session_note(s, false, "--trace: '%s' is linked "
			"statically, so " SEAM_FDR_LIBRARY " cannot be loaded "
			"into it: link it dynamically", path);
	else if (!file.has_calls)
		seam_session_note(s, false, "--trace: '%s' has no instrumented "
			"function: " BUILD_HINT "; what it loads and starts is "
			"recorded", path);
}

/* ---- logs ---- */

static void note(void *context, const char *text)
{
	seam_session_note(context, false, "%s", text);
}

/* A signal ends what can be left out. */
static bool goes_on(void *context)
{
	return seam_session_wait(context, -1, 0);
}

/*
 * Complete @logs, of the recording or of a snapshot, in whose bundle the map
 * of functions is written too.  Returns how many functions it has.  The first
 * failure is reported to the user.
 */
static uint64_t complete(struct seam_tracing *t, struct seam_trace_logs *logs)
{
	const struct seam_trace_logs_caller caller = {
		.note = note, .context = t->s,
		/* programs go on while a snapshot is written */
		.goes_on = logs == &t->logs ? goes_on :
			   seam_rounds_wait_and_drain,
	};
	uint64_t max = t->s->options->max_bytes, used, n_functions;
	struct seam_err err = { 0 };

	seam_tsc_clock_end(&t->fdr.clock);
	seam_session_allow(t->s, JOIN_NS);
	seam_trace_logs_finish(logs, &caller);
	used = seam_session_bytes(t->s, &t->s->recording.data);
	if (max)
		max = used + LEAST_MAP_BYTES < max ? max - used :
		      LEAST_MAP_BYTES;
	if (seam_trace_functions_write(&t->fdr.known, logs, max, &n_functions,
				       &err) < 0)
		note(t->s, err.cause[0]);
	if (logs->why.n_causes)
		note(t->s, logs->why.cause[0]);
	return n_functions;
}

static struct seam_tracing *tracing_of(const struct seam_service *service)
{
	const struct seam_fdr_service *fdr = service->context;

	return fdr->context;
}

/* ---- the flight recorder: calls ---- */

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
	for (const struct seam_ended_thread *thread = ended->first; thread;
	     thread = thread->next) {
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

static uint64_t due_ns(const struct seam_service *service)
{
	return seam_trigger_hits_due_ns(&tracing_of(service)->triggers);
}

/*
 * Report triggers that no function is for, once known; at the end the others.
 * Then make a snapshot for triggers if one is due.  At the end of the recording
 * it is: also for what programs met before they ended, while the last one was
 * made.
 */
static void after_round(struct seam_service *service, bool at_end)
{
	struct seam_tracing *t = tracing_of(service);
	uint64_t now_ns = at_end ? UINT64_MAX : seam_clock_ns();
	bool is_due = t->triggers.waiting.n &&
		      seam_trigger_hits_due_ns(&t->triggers) <= now_ns;
	int i;

	while ((i = seam_trigger_hits_unknown(&t->triggers, seam_clock_ns(),
					      at_end)) >= 0)
		seam_session_note(t->s, false, "trigger '%s': "
				  SEAM_TRIGGER_NO_FUNCTION,
				  t->s->options->flight.triggers[i]);
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
	complete(t, &logs);
	seam_trace_logs_fini(&logs);
	return 0;
}

/* Add the triggers of the snapshot which is being made to its manifest. */
static void describe_triggers(struct seam_tracing *t, struct seam_manifest *m)
{
	const struct seam_tsc_clock *clock = &t->fdr.clock;
	uint64_t hz = seam_tsc_clock_hz(clock);

	m->triggers = t->described;
	m->n_triggers = t->triggers.taken.n;
	for (size_t i = 0; i < m->n_triggers; i++) {
		const struct seam_trigger_hit *hit =
			&t->triggers.taken.items[i];
		const struct seam_xray_trigger *met = &hit->met;

		t->described[i] = (struct seam_manifest_trigger) {
			.text = t->s->options->flight.triggers[met->trigger],
			.pid = hit->pid, .tid = met->tid, .tsc = met->tsc,
			.time_ns = seam_tsc_clock_ns(clock, met->tsc),
			.duration_ns = !hz ? 0 :
				(uint64_t)((__uint128_t)met->ticks *
					   SEAM_NS_PER_S / hz),
			.function = met->function,
		};
	}
}

/* ---- the services ---- */

static void start(struct seam_service *service,
		  const struct seam_bundle *bundle, uint64_t sideband_id)
{
	struct seam_tracing *t = tracing_of(service);

	(void)sideband_id;
	seam_trace_logs_init(&t->logs, bundle, &t->fdr.clock);
	t->fdr.logs = &t->logs;
}

static void finish_round(struct seam_service *service, struct seam_synth *round)
{
	struct seam_tracing *t = tracing_of(service);

	(void)round;
	seam_fdr_service_step(&t->fdr);
}

static uint64_t n_bytes(const struct seam_service *service)
{
	return seam_trace_logs_bytes(&tracing_of(service)->logs);
}

static void describe(struct seam_service *service, struct seam_manifest *m,
		     bool is_snapshot)
{
	struct seam_tracing *t = tracing_of(service);

	seam_counts_add(&m->counts, &t->fdr.counts);
	m->ties = t->fdr.clock.ties;
	m->n_ties = t->fdr.clock.n;
	if (is_snapshot)
		describe_triggers(t, m);
}

static const char *why_no_calls(const struct seam_tracing *t)
{
	const struct seam_trace_options *o = &t->s->options->trace;

	if (!t->fdr.counts.n[SEAM_COUNT_CALLS_PROCESSES])
		return "no program with instrumented functions ran, or it "
		       "could not load " SEAM_FDR_LIBRARY ", or not connect, "
		       "as one of another user cannot";
	if (o->n_only && o->only[0][0])
		return "none of a function whose name --trace matches; it may "
		       "be inlined, and of a stripped program only the debug "
		       "file has names";
	if (o->min_ns)
		return "no function that can be recorded was called, or no "
		       "call took as long as --trace-min";
	return "no function that can be recorded was called";
}

/* The rings are closed: complete the logs, and count. */
static void finish(struct seam_service *service)
{
	struct seam_tracing *t = tracing_of(service);
	const struct seam_trigger_hits *hits = &t->triggers;
	struct seam_record_result *result = t->s->result;
	const uint64_t *n = t->fdr.counts.n;

	/* of a flight recorder: what is kept goes to the recording's logs */
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
	seam_fdr_service_count(&t->fdr, &t->logs, &t->s->services,
			       complete(t, &t->logs));
	/* none, and nothing else says why; snapshots may have all calls */
	result->has_no_calls = !n[SEAM_COUNT_CALLS_RECORDS] &&
		!n[SEAM_COUNT_CALLS_FULL] &&
		!n[SEAM_COUNT_CALLS_WITHOUT_RING] &&
		!n[SEAM_COUNT_CALLS_UNWRITTEN] &&
		!n[SEAM_COUNT_CALLS_REFUSED] && !n[SEAM_COUNT_CALLS_FROZEN] &&
		!t->s->rounds.n_snapshots;
	result->has_calls = true;
	result->calls_bytes = seam_trace_logs_bytes(&t->logs);
	result->tsc_hz = seam_tsc_clock_hz(&t->fdr.clock);
	if (result->has_no_calls)
		seam_session_note(t->s, false, "no calls were recorded: %s",
				  why_no_calls(t));
}

/* --keep-files: the file that has these functions. */
static void keep_file(void *context, uint64_t address)
{
	struct seam_session *s = context;

	seam_kept_files_address(&s->kept_files, address);
}

int seam_tracing_new(struct seam_tracing **made, struct seam_session *s,
		     struct seam_preload *preload, struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	const struct seam_flight_options *flight = &o->flight;
	struct seam_tracing *t;
	int r;

	*made = NULL;
	if (!o->trace.is_used && !flight->is_used)
		return 0;
	if (!seam_tsc_is_there())
		return seam_err_set(err, -ENOTSUP, "--trace records calls on "
				    "x86-64 only");
	r = seam_preload_add_fdr(preload, err);
	if (r < 0)
		return seam_err_add(err, r, "cannot record calls (--trace)");
	t = calloc(1, sizeof(*t));
	if (!t)
		return seam_err_no_memory(err);
	t->s = s;
	t->options = compose(o);
	if (!t->options) {
		free(t);
		return seam_err_no_memory(err);
	}
	report_command(s);
	seam_fdr_service_init(&t->fdr, flight->is_used ? flight->bytes : 0);
	t->fdr.context = t;
	t->fdr.known.found = o->keep_files ? keep_file : NULL;
	t->fdr.known.context = s;
	t->fdr.calls.start = start;
	t->fdr.calls.finish_round = finish_round;
	t->fdr.calls.n_bytes = n_bytes;
	t->fdr.calls.finish = finish;
	t->fdr.calls.describe = describe;
	if (flight->is_used) {
		t->ended.max_bytes = SEAM_ENDED_THREADS_BYTES;
		t->triggers.n_triggers = flight->n_triggers;
		t->triggers.after_ns = flight->after_ns;
		t->triggers.max_snapshots = flight->max_snapshots;
		t->triggers.resume = resume;
		t->triggers.context = t;
		t->fdr.on_trigger = take_trigger;
		t->fdr.on_end = keep_ended;
		t->fdr.on_snapshot = copy_running;
		t->fdr.calls.after_round = after_round;
		t->fdr.calls.due_ns = due_ns;
		t->fdr.calls.copy = copy;
	}
	seam_services_add(&s->services, &t->fdr.functions);
	seam_services_add(&s->services, &t->fdr.calls);
	*made = t;
	return 0;
}

const char *seam_tracing_options(const struct seam_tracing *t)
{
	return t->options;
}

void seam_tracing_free(struct seam_tracing *t)
{
	if (!t)
		return;
	seam_trace_logs_fini(&t->logs);
	seam_fdr_service_fini(&t->fdr);
	seam_ended_threads_fini(&t->ended);
	seam_trigger_hits_fini(&t->triggers);
	free(t->options);
	free(t);
}
