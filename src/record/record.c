/* SPDX-License-Identifier: MIT */
/*
 * record.c - a recording from its first event to its last byte
 *
 *	prepare   events are parsed, the command forked, its events opened;
 *	          nothing is on disk yet, so a refusal leaves no trace
 *	begin     the bundle, the head of "data", the first manifest
 *	run       the command starts; rounds of draining until it ends
 *	finish    loss that no record told of, features, the last manifest
 *
 * Whatever takes time and can wait is in finish: a recording of a command
 * that does nothing must cost next to nothing before that command runs.
 */
#include "record/record.h"

#include "base/clock.h"
#include "record/recording.h"
#include "record/synth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The longest time between two rounds.  A killed recorder loses at most what
 * came in since.  Where programs start and files are mapped it is short, so
 * that those files are met before they can be gone; else it doubles.
 */
enum {
	SHORTEST_WAIT_MS = 8,
	LONGEST_WAIT_MS = 256,
};

__attribute__((format(printf, 3, 4)))
static void note(const struct seam_recording *s, bool verbose,
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

/* --- prepare --- */

static int add_event(struct seam_recording *s, const char *text, size_t size,
		     struct seam_err *err)
{
	struct seam_event *event = SEAM_ARRAY_PUSH(&s->events);

	if (!event)
		return seam_err_set(err, -ENOMEM, "out of memory");
	return seam_event_parse(event, text, size, err);
}

static int add_list(struct seam_recording *s, const char *list,
		    struct seam_err *err)
{
	int r;

	do {
		size_t size = strcspn(list, ",");

		r = add_event(s, list, size, err);
		list += size;
	} while (r == 0 && *list++ == ',');
	return r;
}

static uint64_t frequency(const struct seam_recording *s)
{
	uint64_t wanted = s->options->frequency_hz;
	long most = seam_machine_sysctl("perf_event_max_sample_rate", 100000);

	if (most <= 0 || wanted <= (uint64_t)most)
		return wanted;
	if (wanted != UINT64_MAX)
		note(s, false, "%" PRIu64 " Hz is more than this machine "
		     "allows: sampling at %ld Hz "
		     "(kernel.perf_event_max_sample_rate)", wanted, most);
	return (uint64_t)most;
}

static void set_rate(const struct seam_recording *s, struct seam_event *event)
{
	struct perf_event_attr *attr = &event->attr;

	if (s->options->callchains)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (event->each_time)
		attr->sample_type |= PERF_SAMPLE_RAW;
	if (s->options->period || event->each_time) {
		attr->sample_period = s->options->period ?
				      s->options->period : 1;
	} else {
		attr->freq = 1;
		attr->sample_freq = s->hz;
	}
}

/* @otherwise: what to sample when the user has not said; or NULL. */
static int list_events(struct seam_recording *s, const char *otherwise,
		       struct seam_err *err)
{
	struct seam_event *sideband;
	int r = 0;

	s->events.n = 0;
	for (size_t i = 0; r == 0 && i < s->options->n_events; i++)
		r = add_list(s, s->options->events[i], err);
	if (r == 0 && s->options->n_events == 0)
		r = add_event(s, otherwise, strlen(otherwise), err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->events.n; i++)
		set_rate(s, &s->events.items[i]);
	sideband = SEAM_ARRAY_PUSH(&s->events);
	if (!sideband)
		return seam_err_set(err, -ENOMEM, "out of memory");
	seam_sources_sideband(sideband);
	return 0;
}

static int list_threads(struct seam_recording *s, struct seam_err *err)
{
	int *slot;

	if (s->options->pid)
		return seam_machine_threads(&s->sources.tids, s->options->pid,
					    err);
	slot = SEAM_ARRAY_PUSH(&s->sources.tids);
	if (!slot)
		return seam_err_set(err, -ENOMEM, "out of memory");
	*slot = s->child.pid;
	return 0;
}

static int open_sources(struct seam_recording *s, const char *otherwise,
			struct seam_err *err)
{
	int r = list_events(s, otherwise, err);

	if (r < 0)
		return r;
	s->sources = (struct seam_sources) {
		.events = s->events.items,
		.n_events = s->events.n,
		.on_exec = !s->options->pid,
		.ring_bytes = s->options->ring_bytes,
	};
	r = seam_machine_cpus(&s->sources.cpus, err);
	if (r == 0)
		r = list_threads(s, err);
	if (r == 0)
		r = seam_sources_open(&s->sources, err);
	return r;
}

/* cycles where the machine has them, else the clock that every one has. */
static int open_what_there_is(struct seam_recording *s, struct seam_err *err)
{
	int r = open_sources(s, "cycles:P", err);

	if (r == -ENOENT && s->options->n_events == 0) {
		*err = (struct seam_err) { 0 };
		r = open_sources(s, "cpu-clock", err);
	}
	if (r == 0)
		note(s, true, "sampling '%s'", s->events.items[0].name);
	return r;
}

static void tell_what_is_left_out(const struct seam_recording *s)
{
	unsigned int out = s->sources.left_out;

	if (out & SEAM_LEFT_OUT_KERNEL)
		note(s, false, "user code only: samples of the kernel need "
		     "CAP_PERFMON or 'sysctl kernel.perf_event_paranoid=1' "
		     "(it is %ld)",
		     seam_machine_sysctl("perf_event_paranoid", 2));
	if (out & SEAM_LEFT_OUT_RING_SPACE)
		note(s, false, "rings of %zu KiB in place of %zu: more needs "
		     "CAP_IPC_LOCK, 'ulimit -l' or "
		     "'sysctl kernel.perf_event_mlock_kb' (it is %ld)",
		     s->sources.ring_bytes / 1024,
		     s->options->ring_bytes / 1024,
		     seam_machine_sysctl("perf_event_mlock_kb", 516));
	if (out & SEAM_LEFT_OUT_BUILD_IDS)
		note(s, false, "no build ids of mapped files: they need "
		     "Linux 5.12");
	if (out & SEAM_LEFT_OUT_LOST_COUNTS)
		note(s, true, "no exact count of lost records: it needs "
		     "Linux 6.0");
}

/* All the descriptors that we may have; the command keeps what it had. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int prepare(struct seam_recording *s, struct seam_err *err)
{
	int r = seam_loop_init(&s->loop, err);

	if (r == 0 && s->options->command)
		r = seam_child_prepare(&s->child, s->options->command,
				       &s->loop.old_mask, err);
	/* From here on nothing is the command's any more. */
	seam_loop_take_signals();
	raise_descriptors();
	s->hz = s->options->period ? 0 : frequency(s);
	if (r == 0)
		r = open_what_there_is(s, err);
	for (size_t i = 0; r == 0 && i < s->sources.n; i++)
		r = seam_loop_add_ring(&s->loop, s->sources.items[i].fd, err);
	if (r == 0 && s->options->pid)
		r = seam_loop_add_process(&s->loop, s->options->pid, err);
	return r;
}

/* --- begin --- */

/* Say for each event which ids its records carry. */
static int describe_events(struct seam_recording *s, struct seam_err *err)
{
	size_t n_ids = 0;

	s->described = calloc(s->events.n, sizeof(*s->described));
	s->ids = calloc(s->sources.n, sizeof(*s->ids));
	if (!s->described || !s->ids)
		return seam_err_set(err, -ENOMEM, "out of memory");
	for (size_t e = 0; e < s->events.n; e++) {
		struct seam_perf_event *event = &s->described[e];

		event->attr = &s->events.items[e].attr;
		event->name = s->events.items[e].name;
		event->ids = s->ids + n_ids;
		for (size_t i = 0; i < s->sources.n; i++)
			if (s->sources.items[i].event == e)
				s->ids[n_ids + event->n_ids++] =
					s->sources.items[i].id;
		n_ids += event->n_ids;
	}
	return 0;
}

static int append(struct seam_recording *s, struct seam_synth *synth,
		  struct seam_err *err)
{
	struct iovec piece = {
		.iov_base = synth->bytes.items, .iov_len = synth->bytes.n,
	};
	int r = synth->no_memory ?
		seam_err_set(err, -ENOMEM, "out of memory") :
		seam_perf_writer_append(&s->writer, &piece, 1, err);

	seam_synth_fini(synth);
	return r;
}

/* What stands before the first event: the kernel, and who is there. */
static int write_what_stands(struct seam_recording *s, struct seam_err *err)
{
	struct seam_synth synth = { .id = s->ids[s->sources.n - 1] };
	char name[64];

	if (!(s->sources.left_out & SEAM_LEFT_OUT_KERNEL))
		seam_synth_kernel(&synth, &s->kernel);
	if (s->options->pid) {
		seam_synth_process(&synth, s->options->pid);
	} else {
		/* until its exec the command bears our name */
		seam_machine_text("/proc/self/comm", name, sizeof(name));
		seam_synth_comm(&synth, s->child.pid, s->child.pid, name);
	}
	seam_synth_end(&synth);
	return append(s, &synth, err);
}

static void see_sideband(void *context, const struct seam_ring_header *record)
{
	seam_keep_see(context, record);
}

static int begin(struct seam_recording *s, struct seam_err *err)
{
	struct timespec wall;
	int r = seam_bundle_create(&s->bundle, s->options->output, err);

	if (r < 0)
		return r;
	seam_running_read(&s->kernel);
	clock_gettime(CLOCK_REALTIME, &wall);
	s->start_wall_ns = (uint64_t)wall.tv_sec * SEAM_NS_PER_S +
			   (uint64_t)wall.tv_nsec;
	s->start_ns = seam_clock_ns();
	s->data = seam_bundle_file(&s->bundle, "data", err);
	r = s->data < 0 ? s->data : describe_events(s, err);
	if (r == 0)
		r = seam_perf_writer_begin(&s->writer, s->data, "data",
					   s->described, s->events.n, err);
	/* Events go into the rings while /proc is read: nothing is missed. */
	if (r == 0 && s->options->pid)
		seam_sources_enable(&s->sources);
	if (r == 0)
		r = write_what_stands(s, err);
	if (r == 0)
		r = seam_bundle_publish(&s->bundle, "data", err);
	if (r == 0)
		r = seam_recording_reserve_manifest(s, err);
	if (r == 0)
		r = seam_recording_write_manifest(s, false, err);
	if (r == 0)
		r = seam_recording_reserve_manifest(s, err);
	s->drain.sources = &s->sources;
	s->drain.writer = &s->writer;
	s->drain.on_sideband = see_sideband;
	s->drain.context = &s->keep;
	if (r == 0)
		r = seam_drain_init(&s->drain, err);
	return r;
}

/* --- run --- */

static int drain(struct seam_recording *s, struct seam_err *err)
{
	ssize_t r;

	if (s->result->cut_short) {
		seam_drain_discard(&s->drain);
		return 0;
	}
	r = seam_drain_round(&s->drain, err);
	if (r >= 0)
		return 0;
	s->result->cut_short = true;
	seam_sources_disable(&s->sources);
	return (int)r;
}

/* True when the command has ended. */
static bool reap(struct seam_recording *s)
{
	int status;

	if (!s->child.pid || waitpid(s->child.pid, &status, WNOHANG) <= 0)
		return false;
	s->result->command_ended = true;
	s->result->wait_status = status;
	return true;
}

/*
 * True when the signal ends the recording.  The first one is for the
 * command, which has got it from the terminal or gets it from us, and the
 * recording ends with it; a second one does not wait any longer.
 */
static bool ends_on_signal(struct seam_recording *s,
			   const struct seam_loop_signal *signal)
{
	bool first = s->result->signal == 0;

	s->result->signal = signal->number;
	if (!s->child.pid)
		return true;
	if (!signal->from_terminal)
		kill(s->child.pid, signal->number);
	return !first;
}

static int next_wait_ms(int wait_ms, bool saw_sideband)
{
	if (saw_sideband)
		return SHORTEST_WAIT_MS;
	return wait_ms < LONGEST_WAIT_MS ? 2 * wait_ms : wait_ms;
}

static int run(struct seam_recording *s, struct seam_err *err)
{
	struct seam_loop_signal signal;
	int wait_ms = SHORTEST_WAIT_MS;
	bool ended = false;
	int r = 0;

	while (!ended) {
		unsigned int news = seam_loop_wait(&s->loop, wait_ms, &signal);
		uint64_t n_sideband = s->drain.n_sideband;
		int failed;

		if (news & SEAM_LOOP_CHILD && reap(s))
			ended = true;
		if (news & SEAM_LOOP_GONE)
			ended = true;
		if (news & SEAM_LOOP_SIGNAL && ends_on_signal(s, &signal))
			ended = true;
		failed = drain(s, err);
		if (failed < 0)
			r = failed;
		wait_ms = next_wait_ms(wait_ms,
				       s->drain.n_sideband != n_sideband);
	}
	return r;
}

/* --- finish --- */

/*
 * Loss is told by a LOST record in front of the next record that fits; what
 * no record follows is only in the kernel's counts, which are exact.
 */
static int write_losses(struct seam_recording *s, struct seam_err *err)
{
	struct seam_synth synth = { 0 };
	uint64_t now_ns = seam_clock_ns();

	for (size_t i = 0; i < s->sources.n; i++) {
		const struct seam_source *source = &s->sources.items[i];
		uint64_t lost = seam_sources_lost(&s->sources, i);

		if (!lost)
			continue;
		s->result->n_lost += lost;
		seam_synth_lost(&synth, source->id, (uint32_t)
				s->sources.rings[source->ring].cpu, now_ns,
				lost);
	}
	if (s->sources.left_out & SEAM_LEFT_OUT_LOST_COUNTS)
		for (size_t i = 0; i < s->sources.n_rings; i++)
			s->result->n_lost += s->sources.rings[i].n_lost;
	if (s->result->cut_short || synth.bytes.n == 0) {
		seam_synth_fini(&synth);
		return 0;
	}
	return append(s, &synth, err);
}

/*
 * What symbols will be looked up in: the kernel's, which a reboot renames,
 * and files that no path leads to.
 */
static void keep_symbols(struct seam_recording *s)
{
	struct seam_err err = { 0 };

	if (s->drain.n_kernel_samples &&
	    seam_kernel_capture(s->bundle.dir, "kernel.sym.zst", &err) < 0)
		note(s, false, "the kernel's symbols were not kept: %s",
		     err.cause[0]);
	seam_keep_finish(&s->keep, &s->bundle);
	if (s->keep.n_copied)
		note(s, true, "%" PRIu64 " files that are gone were kept",
		     s->keep.n_copied);
	if (s->keep.n_missed)
		note(s, false, "%" PRIu64 " mapped files were gone before "
		     "they could be kept: their symbols may be missing",
		     s->keep.n_missed);
	if (s->keep.n_too_large)
		note(s, false, "%" PRIu64 " mapped files that are gone are "
		     "too large to be kept", s->keep.n_too_large);
}

/* The first failure is the one to tell of; the rest is tried all the same. */
static void keep_first(int *r, int next)
{
	if (*r == 0)
		*r = next;
}

static int finish(struct seam_recording *s, int r, struct seam_err *err)
{
	seam_sources_disable(&s->sources);
	keep_first(&r, drain(s, r < 0 ? NULL : err));
	s->result->duration_ns = seam_clock_ns() - s->start_ns;
	keep_first(&r, write_losses(s, r < 0 ? NULL : err));
	keep_first(&r, seam_recording_write_features(s,
						     r < 0 ? NULL : err));
	if (!s->result->cut_short)
		keep_symbols(s);
	keep_first(&r, seam_recording_write_manifest(s, true,
						     r < 0 ? NULL : err));
	s->result->n_samples = s->drain.n_samples;
	s->result->n_unwritten = s->drain.n_unwritten;
	s->result->n_throttled = s->drain.n_throttled;
	s->result->file_bytes = s->writer.data_offset + s->writer.data_bytes;
	s->result->cut_short |= r < 0;
	return r;
}

static void fini(struct seam_recording *s)
{
	seam_drain_fini(&s->drain);
	seam_keep_fini(&s->keep);
	seam_sources_fini(&s->sources);
	seam_child_close(&s->child);
	if (s->data >= 0)
		close(s->data);
	if (s->meta >= 0)
		close(s->meta);
	seam_bundle_close(&s->bundle);
	free(s->described);
	free(s->ids);
	free(s->events.items);
	seam_loop_fini(&s->loop);
}

int seam_record(const struct seam_record_options *options,
		struct seam_record_result *result, struct seam_err *err)
{
	struct seam_recording s = {
		.options = options, .result = result, .data = -1, .meta = -1,
		.bundle.dir = -1, .child = { .go = -1, .failure = -1 },
	};
	int r;

	*result = (struct seam_record_result) { 0 };
	r = prepare(&s, err);
	if (r == 0)
		r = begin(&s, err);
	if (r == 0)
		tell_what_is_left_out(&s);
	if (r == 0 && options->command) {
		r = seam_child_start(&s.child, options->command[0], err);
		result->start_error = r;
	}
	if (r == 0)
		r = finish(&s, run(&s, err), err);
	else if (s.bundle.dir >= 0)
		seam_bundle_remove(&s.bundle);
	fini(&s);
	return r;
}
