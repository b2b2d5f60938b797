/* SPDX-License-Identifier: MIT */
/* agent_profiler.c - ticks, windows, limits; see agent_profiler.h */
#include "cli/agent_profiler.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/live_stream.h"
#include "fleet/batch_build.h"
#include "fleet/budget.h"
#include "fleet/spool_notes.h"
#include "fleet/window.h"
#include "record/proc/procfs.h"
#include "wire/fleet/batch_file.h"

enum {
	/* Of all rings: 32 KiB of stack for a sample on 16 CPUs, 8 KiB on 64. */
	RINGS_BYTES = 16 << 20,
	MAX_RING_BYTES = 1 << 20,
	MIN_RING_BYTES = 256 << 10,
	MAX_UNWRITTEN = 16,
	/* Of the budget of CPU time: what reading names again may take. */
	PART_FOR_NAMES = 2,
};

#define STEP_NS SEAM_NS_PER_S

/* Counts of the recorder so far. */
struct agent_losses {
	uint64_t kernel, stream, damaged;
};

struct agent_profiler {
	const struct seam_agent_profiler_options *from;
	/* of the start, which say what is sampled, or reloaded ones */
	const struct seam_agent_options *options;
	struct seam_agent_options reloaded;
	struct seam_live_stream live;
	struct seam_spool spool;
	struct seam_fleet_build *build;	/* NULL: none is open */
	struct seam_batch_id next;	/* of the next build */
	struct seam_window window;
	struct seam_budget budget;
	struct agent_losses lost;
	SEAM_ARRAY(struct seam_bytes) unwritten;	/* notes */
	uint64_t last_cpu_ns;
	uint64_t forgot_ns, forgot_cpu_ns;	/* when, and .last_cpu_ns then */
	struct seam_stream_tick tick;	/* the last one */
	bool is_skipped;		/* the window that goes on */
	bool must_restart;		/* the recorder, for --max-memory */
	struct seam_agent_status *status;
	struct seam_stream_end end;
	bool has_end;
	int r;				/* the first failure that ends it */
	struct seam_err err;
};

static volatile sig_atomic_t must_end, must_reload;

static void on_signal(int signal)
{
	if (signal == SIGHUP)
		must_reload = 1;
	else
		must_end = 1;
}

/* ---- batches into the spool ---- */

/* It goes on; the next status has the reason. */
static void note_error(struct agent_profiler *p, const struct seam_err *err)
{
	char text[SEAM_ERR_TEXT];

	seam_err_text(err, text);
	if (strcmp(text, p->status->error) == 0)
		return;
	memcpy(p->status->error, text, sizeof(text));
	seam_command_say("%s", text);
}

/* What was in @file is counted by a later batch. */
static void keep_note(struct agent_profiler *p, struct seam_bytes file)
{
	struct seam_bytes note = { 0 };

	if (p->unwritten.n >= MAX_UNWRITTEN ||
	    seam_spool_note_losses((void *)(uintptr_t)SEAM_SPOOL_UNWRITTEN,
				   file, &note) < 0)
		return;
	if (!SEAM_ARRAY_ADD(&p->unwritten, note))
		free((void *)(uintptr_t)note.data);
	p->status->n_dropped++;
}

static int count_dropped(void *context, struct seam_bytes file,
			 struct seam_bytes *note)
{
	struct agent_profiler *p = context;

	p->status->n_dropped++;
	return seam_spool_note_losses((void *)(uintptr_t)SEAM_SPOOL_FULL, file,
				      note);
}

/* The sink of the builder. */
static int put_batch(void *context, const struct seam_batch *batch,
		     struct seam_err *err)
{
	struct agent_profiler *p = context;
	struct seam_native_buffer file = { 0 };
	int r = seam_batch_file_write(batch, &file, err);
	const struct seam_bytes bytes = { file.bytes.items, file.bytes.n };
	struct seam_err why = { 0 };

	p->status->n_batches++;
	p->status->n_rows += batch->samples.n;
	if (r == 0 && seam_spool_put(&p->spool, bytes, count_dropped, p,
				     &why) < 0) {
		note_error(p, &why);
		keep_note(p, bytes);
	}
	free(file.bytes.items);
	/* a full pipe has enough of them */
	if (r == 0 && write(p->from->wakeups, "!", 1) < 0 && errno == EPIPE)
		return 0;
	return r;
}

static int begin_build(struct agent_profiler *p, struct seam_err *err)
{
	const struct seam_agent_options *o = p->options;

	return seam_fleet_build_begin(&p->build, &(struct seam_fleet_source) {
			.service = o->service, .host = o->host,
			.labels = o->labels.items, .n_labels = o->labels.n,
		}, p->next, put_batch, p, err);
}

static int end_build(struct agent_profiler *p, struct seam_err *err)
{
	struct seam_fleet_build *build = p->build;
	int r;

	if (!build)
		return 0;
	p->build = NULL;
	r = seam_fleet_build_flush(build, err);
	p->next.seq += seam_fleet_build_n_batches(build);
	seam_fleet_build_free(build);
	return r;
}

static int take_note(void *context, struct seam_bytes note)
{
	struct agent_profiler *p = context;

	return seam_spool_note_add(p->build, seam_window_utc(&p->window,
				   p->window.from_ns), note, &p->err);
}

/* What was dropped so far is in the first batch of the window. */
static int add_notes(struct agent_profiler *p)
{
	struct seam_err why = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->unwritten.n; i++)
		r = take_note(p, p->unwritten.items[i]);
	for (size_t i = 0; i < p->unwritten.n; i++)
		free((void *)(uintptr_t)p->unwritten.items[i].data);
	p->unwritten.n = 0;
	if (r == 0 && seam_spool_notes(&p->spool, take_note, p, &why) < 0)
		note_error(p, &why);
	return r;
}

/* ---- losses ---- */

static const char *event_name(const struct agent_profiler *p)
{
	const struct seam_profile *profile = seam_live_profile(p->live.live);

	return profile->events.n ? seam_profile_text(profile,
			profile->events.items[0].name) : "";
}

/* @now is a count so far, *@was that of the last call. */
static int add_loss(struct agent_profiler *p, uint64_t now, uint64_t *was,
		    const char *cause)
{
	uint64_t n = now > *was ? now - *was : 0;

	*was = now;
	p->status->n_lost += n;
	return n ? seam_fleet_build_lost(p->build, seam_window_utc(&p->window,
			p->window.from_ns), cause, event_name(p), n, 0,
			&p->err) : 0;
}

static int add_losses(struct agent_profiler *p)
{
	int r = add_loss(p, p->tick.n_lost, &p->lost.kernel, "ring full");

	if (r == 0)
		r = add_loss(p, p->tick.n_dropped, &p->lost.stream,
			     "agent too slow");
	if (r == 0)
		r = add_loss(p, seam_live_n_damaged(p->live.live),
			     &p->lost.damaged, "record damaged");
	if (r == 0 && p->is_skipped)
		r = seam_fleet_build_lost(p->build, seam_window_utc(&p->window,
				p->window.from_ns), "window left out for "
				"--max-cpu", event_name(p), 0, 0, &p->err);
	return r;
}

/* ---- limits ---- */

/* Of the process @root, its children, and those that this one has. */
static uint64_t memory_of_all(const struct agent_profiler *p)
{
	struct seam_own_processes own = { { 0 } };
	uint64_t sum = 0;
	char path[64], parent[128], ours[16], roots[16];

	snprintf(ours, sizeof(ours), "%d", getpid());
	snprintf(roots, sizeof(roots), "%d", p->from->root);
	seam_own_processes_find(&own, p->from->root);
	for (size_t i = 0; i < own.pids.n; i++) {
		snprintf(path, sizeof(path), "/proc/%d/status",
			 own.pids.items[i]);
		seam_procfs_value(path, "PPid", parent, sizeof(parent));
		/* helpers of the recorder share its memory */
		if (own.pids.items[i] == p->from->root ||
		    strcmp(parent, ours) == 0 || strcmp(parent, roots) == 0)
			sum += seam_own_memory_bytes(own.pids.items[i]);
	}
	free(own.pids.items);
	return sum;
}

/*
 * Names that are forgotten are read again, which may take seconds for a large
 * program: not before the CPU time since the last time is a small share.
 */
static bool may_forget(const struct agent_profiler *p)
{
	double cpus = p->options->max_cpu > 0 ? p->options->max_cpu / 100 :
						0.01;
	uint64_t ns = p->tick.ns - p->forgot_ns;
	uint64_t used_ns = p->last_cpu_ns > p->forgot_cpu_ns ?
			   p->last_cpu_ns - p->forgot_cpu_ns : 0;

	return !p->forgot_ns || (double)used_ns <=
	       (double)ns * cpus / PART_FOR_NAMES;
}

static int check_memory(struct agent_profiler *p)
{
	struct seam_agent_status *s = p->status;
	bool was_forgotten = s->n_forgotten > 0;
	int r;

	s->memory_bytes = memory_of_all(p);
	if (s->memory_bytes > s->max_memory_bytes)
		s->max_memory_bytes = s->memory_bytes;
	if (s->memory_bytes <= p->options->max_memory || !may_forget(p))
		return 0;
	/* most of it are the tables of files, as a rule */
	s->n_forgotten++;
	seam_live_forget_files(p->live.live);
	p->forgot_ns = p->tick.ns;
	p->forgot_cpu_ns = p->last_cpu_ns;
	s->memory_bytes = memory_of_all(p);
	/* most stacks are new in the first window */
	if (s->memory_bytes <= p->options->max_memory || !was_forgotten)
		return 0;
	s->n_renewed++;
	r = seam_live_stream_renew(&p->live);
	if (r < 0)
		return seam_err_no_memory(&p->err);
	s->memory_bytes = memory_of_all(p);
	/* the recorder has tables too; of processes it would miss children */
	p->must_restart = s->memory_bytes > p->options->max_memory &&
			  p->from->options->record.system_wide &&
			  !p->from->options->record.command;
	return 0;
}

static void set_frequency(struct agent_profiler *p)
{
	p->is_skipped = !seam_budget_takes(&p->budget, p->status->n_windows);
	p->status->hz = p->is_skipped ? 0 : p->budget.hz;
	seam_stream_set_frequency(&p->live.stream, p->status->hz);
}

static void set_budget(struct agent_profiler *p)
{
	uint64_t hz = p->options->record.frequency_hz;

	p->budget = (struct seam_budget) {
		.max_cpus = p->options->max_cpu / 100, .full_hz = hz, .hz = hz,
	};
}

static void check_cpu(struct agent_profiler *p, uint64_t ns)
{
	uint64_t cpu_ns = seam_own_cpu_ns(p->from->root);
	uint64_t used_ns = cpu_ns > p->last_cpu_ns ? cpu_ns - p->last_cpu_ns :
						     0;

	p->last_cpu_ns = cpu_ns;
	p->status->cpus = ns ? (double)used_ns / (double)ns : 0;
	/* the first window has the start */
	if (p->status->n_windows > 1)
		seam_budget_add(&p->budget, used_ns, ns);
	set_frequency(p);
}

/* ---- windows ---- */

static void write_status(struct agent_profiler *p)
{
	struct seam_err err = { 0 };

	if (seam_agent_status_write(p->spool.folder, p->status, p->options,
				    &err) < 0)
		note_error(p, &err);
}

/* A change of names begins with a window. */
static int reload(struct agent_profiler *p)
{
	struct seam_agent_options next;
	int r = 0;

	must_reload = 0;
	if (p->from->reload(p->from->context, &next))
		goto out;
	r = end_build(p, &p->err);
	if (r < 0)
		goto out;
	seam_agent_options_fini(&p->reloaded);
	p->reloaded = next;
	p->options = &p->reloaded;
	p->spool.max_bytes = next.spool_max;
	set_budget(p);
	return begin_build(p, &p->err);
out:
	seam_agent_options_fini(&next);
	return r;
}

static int cut(struct agent_profiler *p)
{
	uint64_t length_ns = p->tick.ns - p->window.from_ns;
	int r = add_losses(p);

	if (r == 0)
		r = seam_fleet_build_flush(p->build, &p->err);
	if (r == 0 && must_reload)
		r = reload(p);
	if (r < 0)
		return r;
	p->status->n_windows++;
	p->status->n_skipped += p->is_skipped;
	p->window = seam_window_begin(p->options->window_ns, p->tick.ns,
				      seam_window_offset());
	check_cpu(p, length_ns);
	r = add_notes(p);
	if (r == 0)
		r = check_memory(p);
	write_status(p);
	return r;
}

static void count_samples(struct agent_profiler *p)
{
	const struct seam_samples *s =
		&seam_live_profile(p->live.live)->samples;

	for (size_t i = 0; i < s->n; i++)
		if (s->event[i] == 0)
			p->status->n_samples += seam_samples_count(s, i);
}

static int take_tick(struct agent_profiler *p)
{
	int r = seam_live_step(p->live.live, p->tick.ns);

	if (r < 0)
		return seam_err_no_memory(&p->err);
	count_samples(p);
	r = seam_fleet_build_add(p->build, seam_live_profile(p->live.live),
				 p->window.offset_ns, &p->err);
	if (r == 0 && seam_window_is_due(&p->window, p->tick.ns))
		r = cut(p);
	return r;
}

static int take_message(struct agent_profiler *p,
			const struct seam_stream_header *header,
			struct seam_bytes body)
{
	switch (header->kind) {
	case SEAM_STREAM_TICK:
		memcpy(&p->tick, body.data, sizeof(p->tick));
		return take_tick(p);
	case SEAM_STREAM_NOTE:
		seam_command_say("%.*s", (int)body.size,
				 (const char *)body.data);
		return 0;
	case SEAM_STREAM_END:
		memcpy(&p->end, body.data, sizeof(p->end));
		p->has_end = true;
		return 0;
	}
	return seam_live_stream_take(&p->live, header, body);
}

/* ---- the recorder ---- */

static size_t ring_bytes(void)
{
	size_t n_cpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	size_t bytes = MAX_RING_BYTES;

	while (bytes > MIN_RING_BYTES && bytes * n_cpus > RINGS_BYTES)
		bytes /= 2;
	return bytes;
}

static int open_recorder(struct agent_profiler *p)
{
	const struct seam_symbols_options symbols = { .no_lines = true };
	struct seam_record_options record = p->from->options->record;
	const struct seam_stream_ticks ticks = {
		.interval_ns = STEP_NS,
		/* whole seconds of UTC, and never 0 */
		.phase_ns = 2 * STEP_NS -
			    (uint64_t)seam_window_offset() % STEP_NS,
	};
	int r = seam_live_stream_open(&p->live, &symbols, &p->err);

	if (r < 0)
		return r;
	seam_live_without_sum(p->live.live);
	seam_live_set_min_wait(p->live.live, p->from->options->off_cpu_ns);
	record.ring_bytes = ring_bytes();
	if (p->budget.hz)
		record.frequency_hz = p->budget.hz;
	return seam_live_stream_start(&p->live, &record, &ticks, false,
				      p->from->root, &p->err);
}

/* The recorder has ended on request: another one goes on. */
static int restart(struct agent_profiler *p)
{
	p->must_restart = p->has_end = false;
	seam_live_stream_close(&p->live);
	p->tick = (struct seam_stream_tick) { .ns = p->tick.ns };
	p->lost = (struct agent_losses) { 0, 0, 0 };
	return open_recorder(p) ?:
	       seam_fleet_build_lost(p->build, seam_window_utc(&p->window,
			p->window.from_ns), "recorder started again for "
			"--max-memory", "", 0, 0, &p->err);
}

/* ---- the loop ---- */

static int run(struct agent_profiler *p, const sigset_t *mask)
{
	struct seam_stream_header header;
	struct seam_bytes body;
	bool is_asked = false, goes_on = true;
	int r = 0;

	while (r == 0 && goes_on && !p->has_end) {
		struct pollfd fd = { p->live.stream.fd, POLLIN, 0 };

		if ((must_end || p->must_restart) && !is_asked)
			kill(p->live.stream.pid, SIGTERM);
		is_asked = must_end || p->must_restart;
		if (ppoll(&fd, 1, NULL, mask) < 0 && errno != EINTR)
			return seam_err_errno(&p->err, "cannot wait");
		if (fd.revents)
			goes_on = seam_stream_read(&p->live.stream);
		while (r == 0 && seam_stream_next(&p->live.stream, &header,
						  &body))
			r = take_message(p, &header, body);
		if (r == 0 && p->has_end && p->must_restart && !must_end)
			r = restart(p);
	}
	return r;
}

static int start(struct agent_profiler *p)
{
	int64_t offset_ns = seam_window_offset();
	uint64_t now_ns = seam_clock_ns();
	int r = seam_spool_open(&p->spool, p->options->folder,
				p->options->spool_max, &p->err);

	if (r == 0)
		r = open_recorder(p);
	if (r < 0)
		return r;
	if (getrandom(&p->next.agent, sizeof(p->next.agent), 0) < 0)
		return seam_err_errno(&p->err, "cannot make an id");
	p->window = seam_window_begin(p->options->window_ns, now_ns,
				      offset_ns);
	set_budget(p);
	p->status->hz = p->budget.hz;
	p->status->pid = p->from->root;
	p->status->since_ns = seam_window_utc(&p->window, now_ns);
	p->last_cpu_ns = seam_own_cpu_ns(p->from->root);
	r = begin_build(p, &p->err);
	if (r == 0)
		r = add_notes(p);
	write_status(p);
	return r;
}

static int exit_status(const struct agent_profiler *p)
{
	struct seam_command_end end = p->end.command;

	if (!end.start_error && p->end.r < 0)
		return SEAM_EXIT_FAILED;
	end.was_stopped |= must_end;
	return seam_recorded_status(&p->options->record, &end, false);
}

static void handle_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

int seam_agent_profiler_run(const struct seam_agent_profiler_options *from)
{
	struct agent_profiler p = {
		.from = from, .options = from->options,
		.status = from->status,
		.live.stream = { .fd = -1, .control = -1 },
		.spool = { .folder = -1, .lock = -1 },
	};
	sigset_t blocked;
	int r, last;

	handle_signals();
	sigprocmask(SIG_SETMASK, from->mask, &blocked);
	/* COMMAND has this mask too */
	r = start(&p);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	if (r == 0)
		r = run(&p, from->mask);
	if (r == 0 && !p.has_end)
		r = seam_err_set(&p.err, -EPIPE, "the recorder was killed");
	if (r == 0 && p.end.r < 0) {
		p.err = p.end.err;
		r = p.end.r;
	}
	/* what was sampled is sent, whatever has ended it */
	if (p.build && r == 0)
		r = add_losses(&p);
	last = end_build(&p, r < 0 ? NULL : &p.err);
	if (r == 0)
		r = last;
	if (p.spool.folder >= 0)
		write_status(&p);
	seam_live_stream_close(&p.live);
	seam_spool_close(&p.spool);
	for (size_t i = 0; i < p.unwritten.n; i++)
		free((void *)(uintptr_t)p.unwritten.items[i].data);
	free(p.unwritten.items);
	seam_agent_options_fini(&p.reloaded);
	if (r < 0)
		return seam_command_failed(&p.err);
	return exit_status(&p);
}
