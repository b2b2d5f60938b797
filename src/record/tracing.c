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
#include "wire/manifest.h"
#include "wire/xray/trace_service.h"
#include "wire/xray/trigger_text.h"
#include "wire/xray/xray_functions.h"

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

/*
 * Triggers that programs have hit, and their snapshots.
 *
 * A program sends a hit at once, with a number that grows from 1.  Until the
 * recorder has copied its calls ("resume"), --after later, each of its threads
 * uses half of its memory at most (traced/fdr/check/checked.h).
 *
 * One snapshot is for all hits that are due, and for all others of the same
 * process.  After max_snapshots, or as many that failed one after another (the
 * disk is full), the programs are resumed for good; later hits are only
 * counted.
 */
enum {
	MAX_HITS = 256,		/* waiting; others are only counted */
	NO_MORE = UINT32_MAX,	/* never wait again */
};

struct trigger_hit {
	struct seam_xray_trigger met;	/* trigger: index in the options */
	uint32_t pid;
	uint64_t due_ns;	/* of its snapshot; CLOCK_MONOTONIC */
};

/* Of one trigger. */
struct trigger_counts {
	uint64_t n_functions;	/* that it is for, in all programs */
	uint64_t since_ns;	/* first announcement of n_functions; 0: none */
	bool was_reported;	/* that there are none */
};

struct trigger_resumed {
	uint32_t pid;
	uint64_t tsc;
};

struct trigger_hits {
	/* Set by the caller; max_snapshots 0: none. */
	size_t n_triggers;	/* at most SEAM_TRIGGER_MAX */
	uint64_t after_ns;
	unsigned int max_snapshots;
	void (*resume)(void *context, uint32_t pid, uint32_t number);
	void *context;

	SEAM_ARRAY(struct trigger_hit) waiting;	/* as they came */
	SEAM_ARRAY(struct trigger_hit) taken;	/* of this snapshot */
	/* when each process was resumed last */
	SEAM_ARRAY(struct trigger_resumed) resumed;
	struct trigger_counts counts[SEAM_TRIGGER_MAX];
	unsigned int n_snapshots;
	unsigned int n_failed;	/* since the last snapshot */
	/* without a snapshot: after the last, too many, or left out */
	uint64_t n_beyond;
};

/*
 * The newest calls of threads that have ended: a thread's own memory goes to
 * another thread.  Beyond a number of bytes in all, those of the threads that
 * ended first are dropped, and counted.
 */
enum { MAX_ENDED_BYTES = 128 << 20 };

/* Of one thread: chunks (wire/xray/xray_chunk.h). */
struct ended_thread {
	struct ended_thread *next;	/* that ended after it */
	uint32_t pid, tid;
	uint64_t since_ns;		/* with pid, its program */
	size_t size;
	uint8_t bytes[];
};

/* Zeroed with a limit is valid and empty. */
struct ended_threads {
	uint64_t max_bytes;		/* of calls, and of what each needs */
	struct ended_thread *first, *last;	/* in order of end */
	uint64_t n_bytes;
	uint64_t n_dropped;		/* threads */
};

struct seam_tracing {
	struct seam_session *s;
	struct seam_fdr_service fdr;
	struct seam_trace_logs logs;	/* of the recording */
	char *options;			/* value of SEAM_TRACE; owned */

	/* Of a flight recorder. */
	struct ended_threads ended;
	struct seam_trace_logs *snapshot;	/* while threads are copied */
	struct trigger_hits triggers;
	struct seam_manifest_trigger described[MAX_HITS];
};

/* ---- triggers that programs have hit ---- */

static bool is_over(const struct trigger_hits *hits)
{
	return hits->n_snapshots >= hits->max_snapshots ||
	       hits->n_failed >= hits->max_snapshots;
}

/* The first waiting hit of process @pid; NULL: none. */
static const struct trigger_hit *
waiting_of(const struct trigger_hits *hits, uint32_t pid)
{
	for (size_t i = 0; i < hits->waiting.n; i++)
		if (hits->waiting.items[i].pid == pid)
			return &hits->waiting.items[i];
	return NULL;
}

static struct trigger_resumed *resumed_of(struct trigger_hits *hits,
					  uint32_t pid)
{
	for (size_t i = 0; i < hits->resumed.n; i++)
		if (hits->resumed.items[i].pid == pid)
			return &hits->resumed.items[i];
	return NULL;
}

/* The last number of process @pid that is taken; 0: none. */
static uint32_t last_number(const struct trigger_hits *hits, uint32_t pid)
{
	uint32_t number = 0;

	for (size_t i = 0; i < hits->taken.n; i++)
		if (hits->taken.items[i].pid == pid &&
		    hits->taken.items[i].met.number > number)
			number = hits->taken.items[i].met.number;
	return number;
}

/* Into the snapshot that is being made, which is of that process too. */
static bool take_too(struct trigger_hits *hits, const struct trigger_hit *hit)
{
	return last_number(hits, hit->pid) &&
	       hits->taken.n < MAX_HITS &&
	       SEAM_ARRAY_ADD(&hits->taken, *hit);
}

static bool add_waiting(struct trigger_hits *hits,
			const struct trigger_hit *hit)
{
	const struct trigger_resumed *last = resumed_of(hits, hit->pid);

	if (is_over(hits))
		return false;
	if (!last || hit->met.tsc > last->tsc)
		return hits->waiting.n < MAX_HITS &&
		       SEAM_ARRAY_ADD(&hits->waiting, *hit);
	/* from before its process was resumed, and sent later */
	if (!take_too(hits, hit))
		return false;
	hits->resume(hits->context, hit->pid, hit->met.number);
	return true;
}

/* Process @pid has met @trigger; one that does not exist is ignored. */
static void hits_add(struct trigger_hits *hits, uint32_t pid,
		     const struct seam_xray_trigger *trigger)
{
	const struct trigger_hit hit = {
		*trigger, pid, seam_clock_ns() + hits->after_ns,
	};

	if (trigger->trigger >= hits->n_triggers || add_waiting(hits, &hit))
		return;
	/* there is no snapshot for this: its program must not wait for one */
	hits->n_beyond++;
	if (is_over(hits))
		hits->resume(hits->context, pid, NO_MORE);
	else if (!waiting_of(hits, pid))
		hits->resume(hits->context, pid, trigger->number);
}

/* A program has @n functions that @trigger is for. */
static void hits_add_functions(struct trigger_hits *hits, uint32_t trigger,
			       uint32_t n)
{
	struct trigger_counts *counts;

	if (trigger >= hits->n_triggers)
		return;
	counts = &hits->counts[trigger];
	counts->n_functions += n;
	if (!counts->since_ns)
		counts->since_ns = seam_clock_ns();
}

/* CLOCK_MONOTONIC of the next snapshot; UINT64_MAX: none is due. */
static uint64_t hits_due_ns(const struct trigger_hits *hits)
{
	uint64_t due_ns = UINT64_MAX;

	for (size_t i = 0; i < hits->waiting.n; i++)
		if (hits->waiting.items[i].due_ns < due_ns)
			due_ns = hits->waiting.items[i].due_ns;
	return due_ns;
}

/*
 * Fill hits->taken with what a snapshot at @now_ns is for (UINT64_MAX: all).
 * Returns how many; 0: none is to be made.
 */
static size_t hits_take(struct trigger_hits *hits, uint64_t now_ns)
{
	size_t n_left = 0, n = hits->waiting.n;

	hits->taken.n = 0;
	if (!SEAM_ARRAY_RESERVE(&hits->taken, n))
		return 0;
	/* of a process the first that came is due first */
	for (size_t i = 0; i < n; i++) {
		const struct trigger_hit hit = hits->waiting.items[i];

		if (hit.due_ns <= now_ns || last_number(hits, hit.pid))
			hits->taken.items[hits->taken.n++] = hit;
		else
			hits->waiting.items[n_left++] = hit;
	}
	hits->waiting.n = n_left;
	return hits->taken.n;
}

static void resume_all(const struct trigger_hits *hits)
{
	for (size_t i = 0; i < hits->taken.n; i++) {
		uint32_t pid = hits->taken.items[i].pid;

		hits->resume(hits->context, pid, last_number(hits, pid));
	}
}

/*
 * The calls of hits->taken are copied, at time @tsc.  Hits from before @tsc
 * that arrive later join them until hits_done(); after it they are only
 * counted.
 */
static void hits_resume(struct trigger_hits *hits, uint64_t tsc)
{
	resume_all(hits);
	for (size_t i = 0; i < hits->taken.n; i++) {
		uint32_t pid = hits->taken.items[i].pid;
		struct trigger_resumed *last = resumed_of(hits, pid);

		if (!last)
			last = SEAM_ARRAY_PUSH(&hits->resumed);
		if (last)
			*last = (struct trigger_resumed) { pid, tsc };
	}
}

/* Hits of the same processes, met during the copy: in the same snapshot. */
static void hits_join(struct trigger_hits *hits)
{
	size_t n = hits->waiting.n, n_left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct trigger_hit *hit = &hits->waiting.items[i];

		if (!take_too(hits, hit))
			hits->waiting.items[n_left++] = *hit;
	}
	hits->waiting.n = n_left;
}

static void resume_for_good(const struct trigger_hits *hits,
			    const struct trigger_hit *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hits->resume(hits->context, items[i].pid, NO_MORE);
}

/* The snapshot of hits->taken is complete, or could not be made. */
static void hits_done(struct trigger_hits *hits, bool has_snapshot)
{
	hits->n_snapshots += has_snapshot;
	hits->n_failed = has_snapshot ? 0 : hits->n_failed + 1;
	resume_all(hits);
	/* no snapshot will be made: neither for what waits, nor ever */
	if (is_over(hits)) {
		hits->n_beyond += hits->waiting.n;
		resume_for_good(hits, hits->taken.items, hits->taken.n);
		resume_for_good(hits, hits->waiting.items, hits->waiting.n);
		hits->waiting.n = 0;
	}
	hits->taken.n = 0;
}

/*
 * A trigger that no function is for, one second after a program announced its
 * functions or at the @end.  Returns its index, once; or -1.
 */
static int hits_unknown(struct trigger_hits *hits, uint64_t now_ns, bool at_end)
{
	for (size_t i = 0; i < hits->n_triggers; i++) {
		struct trigger_counts *c = &hits->counts[i];

		if (c->was_reported || c->n_functions || !c->since_ns ||
		    (!at_end && now_ns - c->since_ns < SEAM_NS_PER_S))
			continue;
		c->was_reported = true;
		return (int)i;
	}
	return -1;
}

static void hits_fini(struct trigger_hits *hits)
{
	free(hits->waiting.items);
	free(hits->taken.items);
	free(hits->resumed.items);
	*hits = (struct trigger_hits) { 0 };
}

/* ---- the newest calls of threads that have ended ---- */

/* What a thread counts for: its calls, and what is needed to keep them. */
static uint64_t cost(size_t size)
{
	return size + sizeof(struct ended_thread);
}

static void drop_first(struct ended_threads *ended)
{
	struct ended_thread *first = ended->first;

	ended->first = first->next;
	ended->n_bytes -= cost(first->size);
	ended->n_dropped++;
	free(first);
}

/*
 * Keep a copy of @thread, with @bytes, which are thread->size.  Without memory,
 * or beyond the limit, it is dropped.
 */
static void ended_add(struct ended_threads *ended,
		      const struct ended_thread *thread, const uint8_t *bytes)
{
	struct ended_thread *kept = NULL;
	uint64_t n_bytes = cost(thread->size);

	if (!thread->size)
		return;
	while (ended->first && ended->n_bytes + n_bytes > ended->max_bytes)
		drop_first(ended);
	if (n_bytes <= ended->max_bytes)
		kept = malloc(n_bytes);
	if (!kept) {
		ended->n_dropped++;
		return;
	}
	*kept = *thread;
	kept->next = NULL;
	memcpy(kept->bytes, bytes, kept->size);
	if (ended->first)
		ended->last->next = kept;
	else
		ended->first = kept;
	ended->last = kept;
	ended->n_bytes += n_bytes;
}

static void ended_fini(struct ended_threads *ended)
{
	while (ended->first)
		drop_first(ended);
	*ended = (struct ended_threads) { 0 };
}

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

static void write_ended(const struct ended_threads *ended,
			struct seam_trace_logs *logs)
{
	for (const struct ended_thread *thread = ended->first; thread;
	     thread = thread->next) {
		const struct seam_trace_program program = {
			.pid = thread->pid, .since_ns = thread->since_ns,
		};

		write_area(logs, &program, thread->tid, (struct seam_bytes) {
				thread->bytes, thread->size });
	}
}

/* A thread ends: these are its newest calls. */
static void keep_ended(struct seam_service_stream *stream,
		       const uint8_t *bytes, size_t size)
{
	const struct ended_thread thread = {
		.pid = stream->pid, .tid = stream->tid,
		.since_ns = stream->since_ns, .size = size,
	};

	ended_add(&tracing_of(stream->service)->ended, &thread, bytes);
}

static void copy_running(struct seam_service_stream *stream,
			 const uint8_t *bytes, size_t size)
{
	struct seam_trace_program program = seam_fdr_service_program(stream);

	write_area(tracing_of(stream->service)->snapshot, &program,
		   stream->tid, (struct seam_bytes) { bytes, size });
}

/* ---- triggers ---- */

static void take_trigger(void *context,
			 const struct seam_service_stream *stream,
			 const struct seam_xray_announcement *a)
{
	struct seam_tracing *t = context;

	if (a->kind == SEAM_XRAY_ANNOUNCED_TRIGGER)
		hits_add(&t->triggers, stream->pid, &a->trigger);
	else if (a->kind == SEAM_XRAY_ANNOUNCED_MATCH)
		hits_add_functions(&t->triggers, a->match.trigger,
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
		hits_join(&t->triggers);
	/* twice: a thread may begin to wait in between */
	skip_gaps(t);
	hits_resume(&t->triggers, seam_tsc_now());
	skip_gaps(t);
	/* what they met since the last drain */
	seam_rounds_drain(t->s);
}

/* ---- snapshots ---- */

static uint64_t due_ns(const struct seam_service *service)
{
	return hits_due_ns(&tracing_of(service)->triggers);
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
		      hits_due_ns(&t->triggers) <= now_ns;
	int i;

	while ((i = hits_unknown(&t->triggers, seam_clock_ns(), at_end)) >= 0)
		seam_session_note(t->s, false, "trigger '%s': "
				  SEAM_TRIGGER_NO_FUNCTION,
				  t->s->options->flight.triggers[i]);
	if (!is_due && !(at_end && t->triggers.n_triggers))
		return;
	/* also for the triggers that were met meanwhile */
	if (seam_rounds_drain(t->s) == 0 && hits_take(&t->triggers, now_ns))
		hits_done(&t->triggers, seam_rounds_snapshot(t->s));
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
		const struct trigger_hit *hit = &t->triggers.taken.items[i];
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
	const struct trigger_hits *hits = &t->triggers;
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
				  MAX_ENDED_BYTES >> 20);
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
	t->fdr.calls.n_bytes = n_bytes;
	t->fdr.calls.finish = finish;
	t->fdr.calls.describe = describe;
	if (flight->is_used) {
		t->ended.max_bytes = MAX_ENDED_BYTES;
		t->triggers.n_triggers = flight->n_triggers;
		t->triggers.after_ns = flight->after_ns;
		t->triggers.max_snapshots = flight->max_snapshots;
		t->triggers.resume = resume;
		t->triggers.context = t;
		t->fdr.on_trigger = take_trigger;
		t->fdr.calls.take_aux = keep_ended;
		t->fdr.calls.snapshot_aux = copy_running;
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
	ended_fini(&t->ended);
	hits_fini(&t->triggers);
	free(t->options);
	free(t);
}
