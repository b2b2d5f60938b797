/* SPDX-License-Identifier: MIT */
/*
 * record.c - a recording from its first event to its last byte
 *
 *	prepare   parse events, fork the command, open its events; nothing is
 *	          on disk yet, so a failure leaves no trace
 *	begin     create the bundle, the head of "data", the first manifest
 *	run       start the command; rounds of draining until it ends
 *	finish    the last records, losses, features, the last manifest
 *
 * Slow work that can wait is in finish: recording a command that does nothing
 * must cost next to nothing before that command runs.
 */
#include "record/record.h"

#include "base/clock.h"
#include "record/perf/auxtrace.h"
#include "record/perf/hotplug.h"
#include "record/plan.h"
#include "record/existing.h"
#include "record/programs.h"
#include "record/rounds.h"
#include "record/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 20 };	/* between two checks for overdue jobs */

/* How long files may be copied, or /proc be read at the start. */
#define MAX_COPY_NS (60 * SEAM_NS_PER_S)

/* ---- prepare ---- */

/* As many descriptors as permitted; the command keeps its limit. */
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
	int r = seam_session_watch(s, err);

	for (size_t i = 0; r == 0 && i < pids->n; i++)
		r = seam_loop_add_process(&s->loop, pids->items[i], false,
					  err);
	for (size_t i = 0; r == 0 && i < tids->n; i++)
		r = seam_loop_add_process(&s->loop, tids->items[i], true, err);
	return r;
}

static int prepare(struct seam_session *s, struct seam_err *err)
{
	int r = seam_loop_init(&s->loop, err);

	seam_programs_report_running(s);
	if (r == 0 && s->options->command)
		r = seam_programs_fork_command(s, err);
	/* from here on the command inherits nothing */
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

/* ---- begin ---- */

static bool read_sideband(void *context,
			  const struct seam_perf_sideband *record, size_t size)
{
	struct seam_session *s = context;

	if (!seam_user_shares_take(&s->shares, record, size,
				   s->drain.begin_ns))
		return false;
	seam_session_track_files(s, record, true);
	seam_services_see(&s->services, record);
	seam_sparse_see(&s->sparse, record);
	if (s->sources.per_thread && !s->sources.no_inherit)
		seam_new_threads_read(&s->new_threads, record);
	if (!seam_sources_is_system_wide(&s->sources))
		seam_stopped_read(&s->stopped, record);
	return true;
}

static void copy_programs(void *context, bool is_last)
{
	struct seam_session *s = context;

	seam_services_copy(&s->services, is_last);
}

static void see_task(void *context, const struct seam_perf_sideband *record)
{
	struct seam_session *s = context;

	seam_services_see_task(&s->services, record);
}

static void learn_owners(void *context, bool is_last)
{
	struct seam_session *s = context;

	seam_services_learn(&s->services, is_last);
}

static struct seam_bytes take_programs(void *context, bool is_last)
{
	struct seam_session *s = context;

	return seam_services_take(&s->services, is_last);
}

/* Samples of other events have no weight in common with the agents'. */
static bool is_superseded(void *context, uint64_t id, uint32_t event,
			  uint32_t tid, uint64_t time_ns)
{
	struct seam_session *s = context;
	struct seam_service *service = seam_services_superseder(&s->services);
	bool is_one = seam_event_is_cpu_time(&s->events.items[event]) &&
		      service->supersedes(service, tid, time_ns);

	seam_sparse_sample(&s->sparse, id, is_one);
	return is_one;
}

static void read_sample(void *context, uint32_t event, const void *record)
{
	struct seam_session *s = context;

	seam_kept_hits_sample(&s->kept_hits,
			      &s->recording.data.events[event].attr,
			      seam_perf_record_at(record).payload);
}

/* Of events whose samples are unwound while they are drained. */
static int init_stacks(struct seam_session *s, struct seam_err *err)
{
	long max_chain = seam_procfs_sysctl("perf_event_max_stack", 127);
	struct seam_perf_attr *attrs = calloc(s->events.n, sizeof(*attrs));
	int r;

	if (!attrs)
		return seam_err_no_memory(err);
	for (size_t e = 0; e < s->events.n; e++)
		if (s->events.items[e].is_unwound)
			attrs[e] = seam_perf_attr_of(&s->events.items[e].attr);
	r = seam_live_stacks_init(&s->stacks, attrs, s->events.n,
				  (size_t)max_chain, &s->recording.data.stacks,
				  err);
	free(attrs);
	s->stacks.on_sample = s->drain.on_sample;
	s->stacks.context = s;
	s->drain.stacks = s->stacks.is_used ? &s->stacks : NULL;
	if (s->drain.stacks)
		s->kept_files.follow.on_code = seam_session_take_code;
	return r;
}

/* Connect the readers of records with each other. */
static void connect_readers(struct seam_session *s)
{
	bool may_supersede = seam_services_superseder(&s->services);

	s->drain.sources = &s->sources;
	s->drain.file = &s->recording.data;
	s->drain.on_sideband = read_sideband;
	s->drain.on_sample = s->options->keep_files ? read_sample : NULL;
	s->drain.context = s;
	s->kept_files.follow.bundle = &s->recording.bundle;
	s->kept_files.follow.max_bytes = s->options->max_bytes;
	s->kept_files.follow.context = s;
	s->drain.copy_programs = copy_programs;
	s->drain.see_task = see_task;
	s->drain.learn_owners = learn_owners;
	s->drain.take_programs = take_programs;
	s->drain.is_superseded = may_supersede ? is_superseded : NULL;
	seam_services_start(&s->services, &s->recording.bundle,
			    seam_sources_sideband_id(&s->sources));
	s->services.other_clock = seam_sources_has_aux(&s->sources);
	s->services.is_unordered = s->options->overwrite;
	s->new_threads.sources = &s->sources;
	s->new_threads.file = &s->recording.data;
	s->sparse.sources = may_supersede ? &s->sources : NULL;
	s->sparse.file = &s->recording.data;
}

static void set_start(struct seam_session *s)
{
	s->start_wall_ns = seam_clock_now(CLOCK_REALTIME);
	s->start_ns = seam_clock_ns();
}

/* Write "data" up to the first record from a ring. */
static int begin_data(struct seam_session *s, struct seam_err *err)
{
	int fd = seam_bundle_file(&s->recording.bundle, "data", err);
	int r = fd < 0 ? fd : seam_data_file_begin(&s->recording.data, fd,
						   &s->sources, err);

	connect_readers(s);
	s->recording.data.stacks.dump_bytes = s->copies.bytes;
	if (r == 0)
		r = seam_drain_init(&s->drain, err);
	if (r == 0)
		r = init_stacks(s, err);
	if (r == 0 && s->options->compress_level)
		r = seam_compress_init(&s->recording.data.compress,
				       s->options->compress_level, err);
	/* the rings fill while /proc is read: nothing is missed in between */
	if (r == 0 && !seam_plan_records_command(s->options))
		seam_sources_enable(&s->sources);
	if (r == 0)
		r = seam_existing_write(s, err);
	if (r == 0)
		r = seam_rounds_failure(s, err);
	return r == 0 ? seam_bundle_publish(&s->recording.bundle, "data", err) :
	       r;
}

/* The bundle gets its name last, when all of this has succeeded. */
static int begin(struct seam_session *s, struct seam_err *err)
{
	int r = seam_bundle_create(&s->recording.bundle, s->options->output,
				   err);

	if (r < 0)
		return r;
	seam_kernel_identify(&s->kernel, NULL);
	set_start(s);
	r = begin_data(s, err);
	if (r == 0)
		r = seam_recording_reserve_manifest(&s->recording, s, err);
	if (r == 0)
		r = seam_recording_write_manifest(&s->recording, s, false, err);
	if (r == 0)
		r = seam_recording_reserve_manifest(&s->recording, s, err);
	return r == 0 ? seam_bundle_place(&s->recording.bundle, err) : r;
}

/* ---- finish ---- */

/* All steps are taken; the first failure is reported. */
static void keep_first(int *r, int next)
{
	if (*r == 0)
		*r = next;
}

/* Set was_moved and was_removed.  -ENOENT: it was removed. */
static int check_place(struct seam_session *s, struct seam_err *err)
{
	struct seam_record_result *result = s->result;
	enum seam_bundle_place place = seam_bundle_find(&s->recording.bundle,
							result->place,
							sizeof(result->place));
	struct stat st;

	result->was_moved = place == SEAM_BUNDLE_MOVED;
	result->was_removed = place == SEAM_BUNDLE_REMOVED ||
			      (fstat(s->recording.data.fd, &st) == 0 &&
			       st.st_nlink == 0);
	if (!result->was_removed)
		return 0;
	result->cut_short = true;
	seam_data_file_lost(&s->recording.data);
	return seam_err_set(err, -ENOENT, "'%s' was removed while it was "
			    "written", place == SEAM_BUNDLE_REMOVED ?
			    s->recording.bundle.path : "data");
}

/* Wait for the files that samples wait for. */
static void finish_stacks(struct seam_session *s)
{
	bool goes_on = true;
	int fd = -1;

	if (!s->drain.stacks || s->result->cut_short)
		return;
	seam_rounds_drain(s);
	while (goes_on && seam_live_stacks_is_busy(&s->stacks, &fd)) {
		goes_on = seam_session_wait(s, fd, WAIT_MS);
		seam_rounds_drain(s);
	}
}

/* Why stacks end early that has its cause here, not in the files. */
static void report_stacks(const struct seam_session *s)
{
	const struct seam_cfi_files *files = &s->stacks.files;

	if (files->shortage)
		seam_session_note(s, false, "files for stacks could not be "
			"opened: %s%s", strerror(-files->shortage),
			files->shortage == -EMFILE ? " ('ulimit -n')" : "");
	if (files->n_left_out)
		seam_session_note(s, false, "%" PRIu64 " mapped files were "
			"not read for stacks: too many", files->n_left_out);
	if (s->stacks.jit.n_forgotten)
		seam_session_note(s, false, "the code of JITs did not fit %"
			PRIu64 " times: what came before is by frame pointers",
			s->stacks.jit.n_forgotten);
}

/* Write the last records, and count losses that no record reports. */
static int finish_data(struct seam_session *s, int r, struct seam_err *err)
{
	struct seam_data_file *data = &s->recording.data;

	seam_session_allow(s, MAX_COPY_NS);
	finish_stacks(s);
	report_stacks(s);
	s->drain.is_last = true;
	seam_rounds_drain(s);
	keep_first(&r, seam_rounds_failure(s, r < 0 ? NULL : err));
	seam_programs_finish(s);
	if (s->options->overwrite && !s->result->cut_short)
		keep_first(&r, seam_snapshot_append(s, data,
						    r < 0 ? NULL : err));
	if (s->sources.aux_snapshots && !s->result->cut_short)
		keep_first(&r, seam_auxtrace_snapshot_all(&s->sources, data,
						       r < 0 ? NULL : err));
	s->recording.duration_ns = seam_clock_ns() - s->start_ns;
	keep_first(&r, seam_data_file_write_losses(data, &s->sources,
						   s->result->cut_short,
						   r < 0 ? NULL : err));
	if (data->writer.was_cut)
		seam_rounds_cut_short(s);
	return r;
}

static int list_events(struct seam_session *s, struct seam_err *err)
{
	struct seam_record_result *result = s->result;

	result->events = calloc(s->events.n, sizeof(*result->events));
	if (!result->events)
		return seam_err_no_memory(err);
	for (size_t i = 0; i < s->events.n; i++) {
		struct seam_record_event *event =
			&result->events[result->n_events];

		if (i == s->sources.sideband)
			continue;
		snprintf(event->name, sizeof(event->name), "%s",
			 s->events.items[i].name);
		event->n_samples = s->recording.data.by_event[i].n_samples;
		event->n_lost = s->recording.data.by_event[i].n_lost;
		if (s->events.items[i].aux_kind)
			result->aux_event = event->name;
		result->n_events++;
	}
	return 0;
}

/* Samples that are names for others. */
static uint64_t n_names(const struct seam_session *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->events.n; i++)
		if (seam_services_is_name(&s->services,
					  s->events.items[i].program_id))
			n += s->recording.data.by_event[i].n_samples;
	return n;
}

static int fill_result(struct seam_session *s, struct seam_err *err)
{
	struct seam_record_result *result = s->result;
	const struct seam_data_file *data = &s->recording.data;

	result->n_samples = data->counts.n_samples - n_names(s);
	result->counts = seam_recording_describe(&s->recording, s).counts;
	result->stacks = data->stacks;
	result->duration_ns = s->recording.duration_ns;
	result->skipped = s->recording.skipped;
	result->bundle_bytes = seam_bundle_bytes(&s->recording.bundle);
	return list_events(s, err);
}

static int finish(struct seam_session *s, int r, struct seam_err *err)
{
	seam_sources_disable(&s->sources);
	seam_hotplug_count(&s->sources, &s->recording.data.losses);
	r = finish_data(s, r, err);
	keep_first(&r, check_place(s, r < 0 ? NULL : err));
	if (!s->result->was_removed)
		keep_first(&r, seam_recording_write_features(&s->recording,
			s, r < 0 ? NULL : err));
	if (!s->result->cut_short)
		seam_recording_add_files(&s->recording, s);
	if (!s->result->was_removed)
		keep_first(&r, seam_recording_write_manifest(&s->recording, s,
			true, r < 0 ? NULL : err));
	keep_first(&r, fill_result(s, r < 0 ? NULL : err));
	s->result->cut_short |= r < 0;
	return r;
}

/*
 * After the recording: wait until the command has ended, for its exit status.
 * A command that is not recorded itself, with -p or -t, is terminated.
 */
static void wait_for_command(struct seam_session *s)
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

		if (events & SEAM_LOOP_CHILD && seam_session_check_command(s))
			return;
		if (events & SEAM_LOOP_SIGNAL)
			seam_session_ends_on(s, &signal);
	}
}

static void fini(struct seam_session *s)
{
	seam_drain_fini(&s->drain);
	seam_live_stacks_fini(&s->stacks);
	seam_kept_files_fini(&s->kept_files);
	seam_kept_hits_fini(&s->kept_hits);
	if (s->kernel_fd > 0)
		close(s->kernel_fd);
	seam_programs_fini(s);
	seam_new_threads_fini(&s->new_threads);
	seam_stopped_fini(&s->stopped);
	seam_sched_fini(&s->rounds.sched);
	seam_sources_fini(&s->sources);
	seam_child_close(&s->child);
	seam_recording_fini(&s->recording);
	seam_event_list_fini(&s->events);
	seam_loop_fini(&s->loop);
}

int seam_record(const struct seam_record_options *options,
		struct seam_record_result *result, struct seam_err *err)
{
	struct seam_session s = {
		.options = options, .result = result,
		.child = { .go = -1, .failure = -1 },
	};
	int r;

	*result = (struct seam_record_result) { 0 };
	seam_recording_init(&s.recording);
	seam_session_allow(&s, MAX_COPY_NS);
	r = prepare(&s, err);
	if (r == 0)
		r = begin(&s, err);
	if (r == 0)
		seam_plan_report(&s);
	if (r == 0 && options->command) {
		r = seam_child_start(&s.child, options->command[0], err);
		result->start_error = r;
	}
	if (r == 0) {
		r = finish(&s, seam_rounds_run(&s, err), err);
		/* last: removing a large file takes time */
		seam_bundle_settle(&s.recording.bundle);
		wait_for_command(&s);
	} else {
		seam_recording_remove(&s.recording);
	}
	fini(&s);
	return r;
}

void seam_record_result_fini(struct seam_record_result *result)
{
	free(result->events);
	*result = (struct seam_record_result) { 0 };
}
