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
#include "record/events/tracepoint.h"
#include "record/perf/aux_buffers.h"
#include "record/plan.h"
#include "record/existing.h"
#include "record/session.h"
#include "record/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
	/* From one full ring to the next; three times that, and it is lost. */
	FLOOD_NS = 20 * 1000 * 1000,
	/* Of --max-size, at most this part is left for kept files. */
	KEPT_PART = 4,
};

/* How long files may be copied, in a snapshot and at the end. */
#define SNAPSHOT_KEEP_NS (2 * SEAM_NS_PER_S)
#define END_KEEP_NS (60 * SEAM_NS_PER_S)

/* --- prepare --- */

/* All the descriptors that we may have; the command keeps what it had. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int watch(struct seam_session *s, struct seam_err *err)
{
	const struct seam_number_list *pids = &s->options->pids;
	const struct seam_number_list *tids = &s->options->tids;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->sources.list.n; i++)
		r = seam_loop_add_ring(&s->loop, s->sources.list.items[i].fd,
				       err);
	for (size_t i = 0; r == 0 && i < pids->n; i++)
		r = seam_loop_add_process(&s->loop, pids->items[i], false,
					  err);
	for (size_t i = 0; r == 0 && i < tids->n; i++)
		r = seam_loop_add_process(&s->loop, tids->items[i], true, err);
	return r;
}

static int watch_link(struct seam_session *s, struct seam_err *err)
{
	const int fds[2] = {
		s->link.server.epoll_fd, s->link.server.wakeup_fd,
	};

	return s->link.is_open ? seam_loop_add_link(&s->loop, fds, err) : 0;
}

/* The command, with the address of our link in its environment. */
static int prepare_command(struct seam_session *s, struct seam_err *err)
{
	struct seam_err why = { 0 };
	int r;

	seam_record_link_open(&s->link, s->options->jit_ring_bytes, &why);
	if (!s->link.is_open)
		seam_session_note(s, true, "JITs write files: %s",
				    why.cause[0]);
	r = seam_child_prepare(&s->child, s->options->command,
			       &s->loop.old_mask, err);
	seam_record_link_forked(&s->link);
	return r == 0 ? watch_link(s, err) : r;
}

static int prepare(struct seam_session *s, struct seam_err *err)
{
	int r = seam_loop_init(&s->loop, err);

	if (r == 0 && s->options->command)
		r = prepare_command(s, err);
	/* From here on nothing is the command's any more. */
	seam_loop_take_signals();
	raise_descriptors();
	if (!s->options->realtime)
		seam_sched_request();
	else if (r == 0)
		r = seam_sched_realtime(s->options->realtime, err);
	if (r == 0)
		r = seam_plan_open(s, err);
	return r == 0 ? watch(s, err) : r;
}

/* --- begin --- */

/* Say for each event which ids its records carry. */
static int describe_events(struct seam_session *s, struct seam_err *err)
{
	const struct seam_sources *sources = &s->sources;
	size_t later = sources->per_thread ? SEAM_SOURCES_MOST_THREADS : 0;

	s->described = calloc(s->events.n, sizeof(*s->described));
	if (!s->described)
		return seam_err_set(err, -ENOMEM, "out of memory");
	for (size_t e = 0; e < s->events.n; e++) {
		struct seam_perf_event *event = &s->described[e];

		event->attr = seam_perf_attr_of(&s->events.items[e].attr);
		event->name = s->events.items[e].name;
		event->max_ids = later;
		event->ids = calloc(sources->list.n + later,
				    sizeof(*event->ids));
		if (!event->ids)
			return seam_err_set(err, -ENOMEM, "out of memory");
		for (size_t i = 0; i < sources->list.n; i++)
			if (sources->list.items[i].event == e)
				event->ids[event->n_ids++] =
					sources->list.items[i].id;
	}
	return 0;
}

static void see_sideband(void *context, const struct seam_ring_header *record)
{
	struct seam_session *s = context;

	seam_session_track_files(s, record);
	seam_record_link_see(&s->link, record);
	if (s->sources.per_thread && !s->sources.no_inherit)
		seam_new_threads_see(&s->follow, record);
	if (!s->system_wide)
		seam_stopped_see(&s->stopped, record);
}

static void see_sample(void *context, uint32_t event,
		       const struct seam_ring_header *record)
{
	struct seam_session *s = context;

	seam_kept_hits_sample(&s->hits, &s->events.items[event].attr, record);
}

/* Whether sampling goes on from here, and not from the command's exec. */
static bool starts_now(const struct seam_session *s)
{
	return !seam_plan_follows_command(s);
}

/* What is drained, and what it is shown to. */
static int begin_drain(struct seam_session *s, struct seam_err *err)
{
	int r;

	s->drain.sources = &s->sources;
	s->drain.writer = &s->writer;
	s->drain.compress = &s->compress;
	s->drain.aux = &s->aux;
	s->aux.writer = &s->writer;
	s->aux.most_bytes = s->options->aux_snapshot_bytes;
	s->drain.on_sideband = see_sideband;
	s->drain.on_sample = s->options->keep_files ? see_sample : NULL;
	s->drain.context = s;
	s->keep->jit.bundle = &s->bundle;
	s->link.bundle = &s->bundle;
	s->link.writer = &s->writer;
	s->link.sideband_id = seam_session_sideband_id(s);
	s->link.other_clock = seam_aux_buffers_are_there(s);
	s->follow.sources = &s->sources;
	s->follow.writer = &s->writer;
	s->follow.loop = &s->loop;
	s->follow.aux = &s->aux;
	s->follow.other_clock = seam_aux_buffers_are_there(s);
	r = seam_drain_init(&s->drain, err);
	if (r == 0 && s->options->compress_level)
		r = seam_compress_init(&s->compress,
				       s->options->compress_level, err);
	return r;
}

static void take_time(struct seam_session *s)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	s->start_wall_ns = (uint64_t)wall.tv_sec * SEAM_NS_PER_S +
			   (uint64_t)wall.tv_nsec;
	s->start_ns = seam_clock_ns();
}

/* What tracepoints' samples hold: no reader knows without. */
static int write_formats(struct seam_session *s, struct seam_err *err)
{
	uint8_t *formats;
	size_t size;
	int r = seam_tracepoint_data(s->events.items, s->events.n, &formats,
				     &size, err);

	if (r == 0)
		r = seam_perf_writer_formats(&s->writer, (struct seam_bytes) {
					     formats, size }, err);
	free(formats);
	return r;
}

/* "data", up to its first record of an event. */
static int begin_data(struct seam_session *s, struct seam_err *err)
{
	int r = describe_events(s, err);

	if (r < 0)
		return r;
	s->data = seam_bundle_file(&s->bundle, "data", err);
	if (s->data < 0)
		return s->data;
	r = seam_perf_writer_begin(&s->writer, s->data, "data", s->described,
				   s->events.n, err);
	if (r == 0)
		r = write_formats(s, err);
	if (r == 0)
		r = begin_drain(s, err);
	/* Events go into the rings while /proc is read: nothing is missed. */
	if (r == 0 && starts_now(s))
		seam_sources_enable(&s->sources);
	if (r == 0)
		r = seam_existing_write(s, err);
	return r == 0 ? seam_bundle_publish(&s->bundle, "data", err) : r;
}

/* The bundle gets its name when all that can fail early has not. */
static int begin(struct seam_session *s, struct seam_err *err)
{
	int r = seam_bundle_create(&s->bundle, s->options->output, err);

	if (r < 0)
		return r;
	seam_running_read(&s->kernel);
	take_time(s);
	r = begin_data(s, err);
	if (r == 0)
		r = seam_session_reserve_manifest(s, err);
	if (r == 0)
		r = seam_session_write_manifest(s, false, err);
	if (r == 0)
		r = seam_session_reserve_manifest(s, err);
	return r == 0 ? seam_bundle_place(&s->bundle, err) : r;
}

/* --- run --- */

/*
 * Somebody else has cut the file, a program that was to start a log anew
 * perhaps.  What is left is kept, and the rest counts as not written.
 */
static void salvage(struct seam_session *s)
{
	struct seam_perf_writer_left left;
	int r = seam_perf_writer_salvage(&s->writer, &left, NULL);

	if (r == -ENODATA && ftruncate(s->data, 0) == 0 &&
	    seam_perf_writer_begin(&s->writer, s->data, "data", s->described,
				   s->events.n, NULL) == 0 &&
	    write_formats(s, NULL) == 0)
		seam_existing_write(s, NULL);
	s->drain.n_unwritten = s->drain.n_records < left.n_records ? 0 :
			       s->drain.n_records - left.n_records;
	s->drain.in_file = (struct seam_drain_counts) {
		.n_samples = left.n_samples,
	};
	memset(s->drain.n_by_event, 0,
	       s->events.n * sizeof(*s->drain.n_by_event));
	if (s->events.n <= 2)
		s->drain.n_by_event[0] = left.n_samples;
}

/* Nothing is written any more, but what there is ends as it should. */
static void cut_short(struct seam_session *s)
{
	s->result->cut_short = true;
	seam_sources_disable(&s->sources);
	if (s->writer.was_cut)
		salvage(s);
}

int seam_session_drain(struct seam_session *s, struct seam_err *err)
{
	ssize_t r;

	if (s->result->cut_short) {
		seam_drain_discard(&s->drain);
		seam_record_link_finish(&s->link);
		return 0;
	}
	r = seam_drain_round(&s->drain, err);
	if (r >= 0)
		r = seam_new_threads_act(&s->follow, err);
	seam_stopped_round(&s->stopped, s->drain.is_last);
	seam_record_link_round(&s->link);
	seam_kept_files_collect(s->keep);
	if (r >= 0)
		return 0;
	cut_short(s);
	return (int)r;
}

/* As waitpid() would have it. */
static int wait_status_of(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED ? W_EXITCODE(info->si_status, 0) :
	       info->si_status |
	       (info->si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

/*
 * True when the command has ended.  It stays a zombie to the end of the
 * recording: /proc says whose it was, and so whose rights its files need.
 */
static bool see_end(struct seam_session *s)
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
	/* somebody else has had its status: it ended all the same */
	s->result->command_ended = true;
	s->result->wait_status = r == 0 ? wait_status_of(&info) : 0;
	return true;
}

/*
 * True when the signal ends the recording.  The first one is for the
 * command, which has got it from the terminal or gets it from us, and the
 * recording ends with it; a second one does not wait any longer.  A command
 * that was started with the signal ignored would not end by it.
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

/*
 * While files are read: see recording.h.  The child's end and a signal are
 * dealt with as in the loop, which sees that they came.
 */
static bool wait_for_files(void *context, int fd, int timeout_ms)
{
	struct seam_session *s = context;
	struct seam_loop_signal signal;
	unsigned int news = seam_loop_wait_for(&s->loop, fd, timeout_ms,
					       &signal);

	if (news & SEAM_LOOP_CHILD && !s->result->command_ended && see_end(s))
		s->must_end = true;
	if (!(news & SEAM_LOOP_SIGNAL))
		return seam_clock_ns() < s->wait_end_ns;
	if (s->result->command_ended)
		s->result->signal = signal.number;
	else if (ends_on_signal(s, &signal))
		s->must_end = true;
	return false;
}

/*
 * Where names come in, the next round is soon; but never later than the
 * next thing that is to be done at its time.
 */
static int next_wait_ms(const struct seam_session *s, int wait_ms,
			bool saw_sideband)
{
	uint64_t now_ns = seam_clock_ns(), due_ns = s->end_ns;

	wait_ms = saw_sideband ? SHORTEST_WAIT_MS :
		  wait_ms < LONGEST_WAIT_MS ? 2 * wait_ms : wait_ms;
	if (s->delayed && s->enable_ns < due_ns)
		due_ns = s->enable_ns;
	if (s->snapshot_ns < due_ns)
		due_ns = s->snapshot_ns;
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

	s->delayed = s->sources.delayed;
	s->sources.is_sampling = !s->delayed;
	s->enable_ns = now_ns + o->delay_ms * SEAM_NS_PER_MS;
	s->end_ns = o->duration_ns ? now_ns + o->duration_ns : UINT64_MAX;
	s->snapshot_ns = o->snapshot_ns ? now_ns + o->snapshot_ns : UINT64_MAX;
}

/* What is due by the clock or the size.  True when the recording ends. */
static bool reached_limit(struct seam_session *s)
{
	uint64_t most = s->options->max_bytes;

	most -= seam_kept_files_reserved_bytes(s->keep, most / KEPT_PART);
	if (s->delayed && seam_clock_ns() >= s->enable_ns) {
		s->delayed = s->sources.delayed = false;
		s->sources.is_sampling = true;
		seam_sources_enable(&s->sources);
	}
	if (seam_clock_ns() >= s->end_ns)
		s->result->limit = "--duration";
	else if (most && seam_session_bytes(s) +
			 seam_kept_jit_map_bytes(&s->keep->jit) >= most)
		s->result->limit = "--max-size";
	return s->result->limit != NULL;
}

/* A snapshot that fails is told, and the recording goes on. */
static void snapshot(struct seam_session *s)
{
	struct seam_err err = { 0 };

	s->wait_end_ns = seam_clock_ns() + SNAPSHOT_KEEP_NS;
	if (!s->options->overwrite && !s->sources.free_running)
		seam_session_note(s, false, "snapshots are made of "
				    "recordings with --overwrite or -S");
	else if (seam_snapshot_snapshot(s, &err) < 0)
		seam_session_note(s, false, "%s: %s",
				    err.cause[err.n_causes - 1],
				    err.cause[0]);
}

/* Whether a snapshot is due, by the clock or because somebody @asks. */
static bool wants_snapshot(struct seam_session *s, bool asks)
{
	uint64_t now_ns = seam_clock_ns();

	if (s->snapshot_ns <= now_ns) {
		s->snapshot_ns = now_ns + s->options->snapshot_ns;
		return true;
	}
	return asks;
}

/* True when what @news tells of ends the recording. */
static bool ends_on(struct seam_session *s, unsigned int news,
		    const struct seam_loop_signal *signal)
{
	return (news & SEAM_LOOP_CHILD && see_end(s)) || news & SEAM_LOOP_GONE ||
	       (news & SEAM_LOOP_SIGNAL && ends_on_signal(s, signal));
}

/*
 * There while a ring fills again and again in no time; home again when none
 * has woken us for a while.
 */
static void go_where_the_flood_is(struct seam_session *s, unsigned int news)
{
	uint64_t now_ns;

	if (s->drain.fullest_cpu < 0) {
		if (!(news & SEAM_LOOP_RINGS))
			seam_sched_move(&s->prompt, -1);
		return;
	}
	now_ns = seam_clock_ns();
	if (now_ns - s->full_ns < FLOOD_NS)
		seam_sched_move(&s->prompt, s->drain.fullest_cpu);
	s->full_ns = now_ns;
}

/* All that was to be watched has ended while its events were opened. */
static bool is_over(const struct seam_session *s)
{
	return (s->options->pids.n || s->options->tids.n) &&
	       s->loop.processes.n == 0;
}

/* What JITs told of is used a round after it came: record/services/link_service.h. */
static int take_snapshot(struct seam_session *s, struct seam_err *err)
{
	int r = s->link.server.n_targets ? seam_session_drain(s, err) : 0;

	if (r == 0)
		snapshot(s);
	return r;
}

static int run(struct seam_session *s, struct seam_err *err)
{
	struct seam_loop_signal signal;
	int wait_ms = SHORTEST_WAIT_MS;
	bool ended = is_over(s) || s->must_end;
	int r = 0;

	set_times(s);
	while (!ended) {
		unsigned int news = seam_loop_wait(&s->loop, wait_ms, &signal);
		uint64_t n_sideband = s->drain.n_sideband;
		int failed;

		ended = ends_on(s, news, &signal);
		s->link.has_news |= (news & SEAM_LOOP_LINK) != 0;
		failed = seam_session_drain(s, err);
		go_where_the_flood_is(s, news);
		if (failed < 0)
			r = failed;
		if (wants_snapshot(s, news & SEAM_LOOP_SNAPSHOT) && r == 0)
			r = take_snapshot(s, err);
		ended |= reached_limit(s) || s->must_end;
		wait_ms = next_wait_ms(s, wait_ms,
				       s->drain.n_sideband != n_sideband);
	}
	return r;
}

/*
 * A limit ended the recording, and not the command: it goes on, and its
 * status is what we end with.  But a command beside -p or -t only says how
 * long to record: where those have ended first it is of no use any more.
 */
static void wait_for_command(struct seam_session *s)
{
	struct seam_loop_signal signal;

	if (s->child.pid && !s->result->command_ended && !s->result->limit &&
	    !s->result->signal && !s->system_wide &&
	    !seam_plan_follows_command(s)) {
		s->result->stopped_command = true;
		kill(s->child.pid, SIGTERM);
	}
	while (s->child.pid && !s->result->command_ended &&
	       !s->result->signal) {
		unsigned int news = seam_loop_wait(&s->loop, -1, &signal);

		if (news & SEAM_LOOP_CHILD && see_end(s))
			return;
		if (news & SEAM_LOOP_SIGNAL)
			ends_on_signal(s, &signal);
	}
}

/* --- finish --- */

/* The first failure is the one to tell of; the rest is tried all the same. */
static void keep_first(int *r, int next)
{
	if (*r == 0)
		*r = next;
}

static void finish_link(struct seam_session *s)
{
	seam_record_link_finish(&s->link);
	s->result->n_jit = s->link.dumps.n_written;
	s->result->n_jit_lost = seam_record_link_lost(&s->link);
	if (s->link.n_failed)
		seam_session_note(s, false, "%" PRIu64 " programs with a "
			"JIT got no ring and write files: %s",
			s->link.n_failed, s->link.why.cause[0]);
	if (s->link.n_unproven)
		seam_session_note(s, false, "%" PRIu64 " JIT streams "
			"ignored: owning process not verified", s->link.n_unproven);
}

/* Whether there is still a recording to be finished. */
static int check_place(struct seam_session *s, struct seam_err *err)
{
	struct seam_record_result *result = s->result;
	enum seam_bundle_place place = seam_bundle_find(&s->bundle,
							result->place,
							sizeof(result->place));
	struct stat st;

	result->was_moved = place == SEAM_BUNDLE_MOVED;
	result->was_removed = place == SEAM_BUNDLE_REMOVED ||
			      (fstat(s->data, &st) == 0 && st.st_nlink == 0);
	if (!result->was_removed)
		return 0;
	result->cut_short = true;
	s->drain.n_unwritten = s->drain.n_records;
	s->drain.in_file = (struct seam_drain_counts) { 0 };
	return seam_err_set(err, -ENOENT, "'%s' was removed while it was "
			    "written", place == SEAM_BUNDLE_REMOVED ?
			    s->bundle.path : "data");
}

/* What is counted while the recording goes on. */
static void take_counts(struct seam_session *s)
{
	struct seam_record_result *result = s->result;

	result->n_samples = s->drain.in_file.n_samples;
	result->n_unwritten = s->drain.n_unwritten;
	result->n_throttled = s->drain.n_throttled;
	result->area_bytes = s->aux.n_bytes;
	result->n_truncated = s->aux.n_truncated;
	result->n_partial = s->aux.n_partial;
	result->n_collision = s->aux.n_collision;
	result->bundle_bytes = seam_bundle_bytes(&s->bundle);
	result->n_stopped = s->stopped.n_programs;
	memcpy(result->stopped, s->stopped.first, sizeof(result->stopped));
	result->n_cpus_back = s->hotplug.n_back;
	result->n_cpus_new = s->hotplug.n_new;
	result->first_cpu = s->hotplug.first;
	result->cpu_ns = s->hotplug.longest_ns;
}

/* The last records, and what no record tells of. */
static int finish_data(struct seam_session *s, int r, struct seam_err *err)
{
	s->drain.is_last = true;
	s->wait_end_ns = seam_clock_ns() + END_KEEP_NS;
	keep_first(&r, seam_session_drain(s, r < 0 ? NULL : err));
	finish_link(s);
	if (s->options->overwrite && !s->result->cut_short)
		keep_first(&r, seam_snapshot_append(s, r < 0 ? NULL : err));
	if (s->sources.free_running && !s->result->cut_short)
		keep_first(&r, seam_aux_buffers_append(s, r < 0 ? NULL : err));
	keep_first(&r, seam_recording_list_results(s, r < 0 ? NULL : err));
	s->result->duration_ns = seam_clock_ns() - s->start_ns;
	keep_first(&r, seam_session_write_losses(s, r < 0 ? NULL : err));
	if (s->writer.was_cut)
		cut_short(s);
	return r;
}

static int finish(struct seam_session *s, int r, struct seam_err *err)
{
	seam_sources_disable(&s->sources);
	seam_hotplug_look(&s->hotplug, &s->sources);
	r = finish_data(s, r, err);
	keep_first(&r, check_place(s, r < 0 ? NULL : err));
	if (!s->result->was_removed)
		keep_first(&r, seam_session_write_features(s, r < 0 ? NULL :
							     err));
	if (!s->result->cut_short)
		seam_session_finish_bundle(s);
	if (!s->result->was_removed)
		keep_first(&r, seam_session_write_manifest(s, true, r < 0 ?
							     NULL : err));
	take_counts(s);
	s->result->cut_short |= r < 0;
	return r;
}

static void fini(struct seam_session *s)
{
	seam_drain_fini(&s->drain);
	seam_compress_fini(&s->compress);
	seam_auxtrace_fini(&s->aux);
	seam_kept_files_fini(s->keep);
	seam_kept_hits_fini(&s->hits);
	seam_record_link_fini(&s->link);
	seam_new_threads_fini(&s->follow);
	seam_stopped_fini(&s->stopped);
	seam_sched_fini(&s->prompt);
	seam_sources_fini(&s->sources);
	seam_child_close(&s->child);
	if (s->data >= 0)
		close(s->data);
	if (s->meta >= 0)
		close(s->meta);
	seam_bundle_close(&s->bundle);
	for (size_t e = 0; s->described && e < s->events.n; e++)
		free(s->described[e].ids);
	free(s->described);
	seam_event_list_fini(&s->events);
	seam_loop_fini(&s->loop);
}

int seam_record(const struct seam_record_options *options,
		struct seam_record_result *result, struct seam_err *err)
{
	struct seam_kept_kernel kernel_copy = { 0 };
	struct seam_kept_files keep = { 0 };
	struct seam_session s = {
		.kernel_copy = &kernel_copy,
		.keep = &keep, .wait = wait_for_files, .wait_context = &s,
		.wait_end_ns = seam_clock_ns() + END_KEEP_NS,
		.options = options, .result = result, .data = -1, .meta = -1,
		.bundle.dir = -1, .child = { .go = -1, .failure = -1 },
	};
	int r;

	*result = (struct seam_record_result) { 0 };
	r = prepare(&s, err);
	if (r == 0)
		r = begin(&s, err);
	if (r == 0)
		seam_plan_tell(&s);
	if (r == 0 && options->command) {
		r = seam_child_start(&s.child, options->command[0], err);
		result->start_error = r;
	}
	if (r == 0) {
		r = finish(&s, run(&s, err), err);
		/* not before: a large file takes its time to go */
		seam_bundle_settle(&s.bundle);
		wait_for_command(&s);
	} else if (s.bundle.dir >= 0) {
		seam_bundle_remove(&s.bundle);
	}
	fini(&s);
	seam_kept_kernel_fini(&kernel_copy);
	return r;
}

void seam_record_result_fini(struct seam_record_result *result)
{
	free(result->events);
	*result = (struct seam_record_result) { 0 };
}
