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
#include "record/perf/synth.h"
#include "record/plan.h"
#include "record/proc/targets.h"
#include "record/programs.h"
#include "record/rounds.h"
#include "record/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WAIT_MS = 20,		/* between two checks for overdue jobs */
	MAX_WAITING = 64,	/* processes whose records are in memory */
};

/* How long files may be copied, or /proc be read at the start. */
#define MAX_COPY_NS (60 * SEAM_NS_PER_S)
/* Bytes of records of all processes that ran before; others are left out. */
#define MAX_EXISTING_BYTES (UINT64_C(256) << 20)

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

/* ---- processes that ran before ---- */

/*
 * Their names, mappings and namespaces are synthesized as records (synth.h),
 * which are appended to the file and processed like the side-band, so that the
 * files of these processes are copied like those of a command.  A helper
 * thread reads /proc, one process at a time.  The rings are drained meanwhile,
 * but without FINISHED_ROUND, because these records are older.
 */

/* Only the recorder's thread uses it. */
struct existing {
	struct seam_session *s;
	uint64_t n_bytes;
	size_t n_waiting;
	uint64_t n_stuck;	/* processes */
	uint64_t n_too_large;	/* processes, beyond MAX_EXISTING_BYTES */
	uint64_t n_left_out;	/* mappings of the others */
	int r;			/* -errno of the first write that failed */
	struct seam_err *err;
};

struct read_job {
	struct seam_helper_job job;
	int pid;
	bool namespaces;
	struct seam_synth synth;	/* the result */
};

static void read_run(struct seam_helper_job *job)
{
	struct read_job *r = (struct read_job *)job;

	seam_synth_process(&r->synth, r->pid, r->namespaces);
}

static void track_files(struct seam_session *s, const struct seam_synth *synth)
{
	for (size_t pos = 0; pos < synth->bytes.n;) {
		const uint8_t *at = synth->bytes.items + pos;
		struct seam_perf_sideband record;

		if (seam_sources_read_sideband(at, &record))
			seam_session_track_files(s, &record, false);
		pos += SEAM_PERF_HEADER_BYTES +
		       seam_perf_record_at(at).payload.size;
	}
}

static void read_done(struct seam_helper_job *job, void *context)
{
	struct read_job *r = (struct read_job *)job;
	struct existing *e = context;

	e->n_waiting--;
	if (e->n_bytes + r->synth.bytes.n > MAX_EXISTING_BYTES) {
		e->n_too_large++;
		return;
	}
	e->n_left_out += r->synth.n_left_out;
	e->n_bytes += r->synth.bytes.n;
	track_files(e->s, &r->synth);
	if (e->r == 0)
		e->r = seam_data_file_append(&e->s->recording.data, &r->synth,
					     e->err);
}

static void read_given_up(void *context, uint64_t tag)
{
	struct existing *e = context;

	(void)tag;
	e->n_waiting--;
	e->n_stuck++;
}

static void read_free(struct seam_helper_job *job)
{
	struct read_job *r = (struct read_job *)job;

	seam_synth_fini(&r->synth);
	free(r);
}

static int submit(struct existing *e, int pid)
{
	struct read_job *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->job = (struct seam_helper_job) {
		.run = read_run, .done = read_done,
		.given_up = read_given_up, .free = read_free, .context = e,
		.user = seam_helper_user_of(pid),
	};
	r->pid = pid;
	r->namespaces = e->s->options->namespaces;
	r->synth.data_mappings = e->s->sources.events[
		e->s->sources.sideband].attr.mmap_data;
	r->synth.id = seam_sources_sideband_id(&e->s->sources);
	if (seam_helper_submit(e->s->kept_files.helper, &r->job) < 0)
		e->n_stuck++;
	else
		e->n_waiting++;
	return 0;
}

/* Wait until at most @max jobs are left.  False: a signal, or an error. */
static bool wait_for_jobs(struct existing *e, size_t max)
{
	struct seam_helper *helper = e->s->kept_files.helper;
	int fd = seam_helper_fd(helper);
	bool goes_on = true;

	while (goes_on && seam_helper_collect(helper) && e->n_waiting > max) {
		goes_on = seam_session_wait(e->s, fd, WAIT_MS) &&
			  seam_rounds_drain(e->s) == 0;
	}
	return goes_on && e->r == 0;
}

static void report_existing(const struct existing *e)
{
	if (e->n_stuck)
		seam_session_note(e->s, false, "%" PRIu64 " processes that "
			"ran before were not recorded: reading /proc took too "
			"long; symbols may be missing", e->n_stuck);
	if (e->n_too_large)
		seam_session_note(e->s, false, "%" PRIu64 " processes that "
			"ran before were not recorded: all have too many "
			"mappings; symbols may be missing", e->n_too_large);
	if (e->n_left_out)
		seam_session_note(e->s, false, "%" PRIu64 " mappings of "
			"processes that ran before were left out: too many",
			e->n_left_out);
}

static int read_all(struct seam_session *s,
		    const struct seam_number_list *pids, struct seam_err *err)
{
	struct existing e = { .s = s, .err = err };
	bool goes_on = true;

	if (!pids->n)
		return 0;
	if (!s->kept_files.helper)
		s->kept_files.helper = seam_helper_new(err);
	if (!s->kept_files.helper)
		return err ? err->code : -ENOMEM;
	s->drain.unordered = true;
	s->stacks.is_starting = true;
	for (size_t i = 0; goes_on && e.r == 0 && i < pids->n; i++) {
		e.r = submit(&e, pids->items[i]);
		goes_on = wait_for_jobs(&e, MAX_WAITING);
	}
	if (goes_on && e.r == 0)
		wait_for_jobs(&e, 0);
	if (e.n_waiting)
		seam_helper_abandon(s->kept_files.helper);
	s->drain.unordered = false;
	s->stacks.is_starting = false;
	report_existing(&e);
	return e.r;
}

/* The processes that ran before and may be sampled. */
static int list_processes(const struct seam_session *s,
			  struct seam_number_list *pids)
{
	const struct seam_number_list *tids = &s->sources.tids;

	if (seam_plan_is_system_wide(s->options))
		return seam_procfs_processes(pids);
	if (seam_plan_records_command(s->options))
		return 0;
	for (size_t i = 0; i < tids->n; i++) {
		int pid = seam_targets_process(tids->items[i]);

		if (pid && !seam_number_list_has(pids, pid) &&
		    seam_number_list_add(pids, pid) < 0)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Append the records of the kernel, and of those processes to be sampled that
 * run already.  What was left out is reported to the user.
 */
static int write_existing(struct seam_session *s, struct seam_err *err)
{
	struct seam_synth synth = {
		.id = seam_sources_sideband_id(&s->sources),
	};
	struct seam_number_list pids = { 0 };
	int r;

	seam_auxtrace_describe(&s->sources, &synth);
	if (!(s->sources.left_out & SEAM_LEFT_OUT_KERNEL))
		seam_synth_kernel(&synth, &s->kernel);
	if (list_processes(s, &pids) < 0)
		synth.no_memory = true;
	if (s->options->cgroups)
		seam_synth_cgroups(&synth);
	/* until its exec(), the command's process has our name */
	if (s->child.pid && seam_plan_records_command(s->options))
		seam_synth_threads(&synth, s->child.pid,
				   s->options->namespaces);
	r = seam_data_file_append(&s->recording.data, &synth, err);
	if (r == 0)
		r = read_all(s, &pids, err);
	free(pids.items);
	seam_synth_end(&synth);
	return r == 0 ? seam_data_file_append(&s->recording.data, &synth, err) :
	       r;
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
	s->drain.see_task = s->services.is_open ? see_task : NULL;
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
		r = write_existing(s, err);
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
		if (s->events.items[i].has_names)
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
