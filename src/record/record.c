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
#include "record/perf/synth.h"
#include "record/proc/procfs.h"
#include "record/session.h"

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

/* ---- prepare ---- */

static int prepare(struct seam_session *s, struct seam_err *err)
{
	const struct seam_number_list *pids = &s->options->pids;
	const struct seam_number_list *tids = &s->options->tids;
	int r = seam_loop_init(&s->loop, err);
	struct rlimit limit;

	if (!s->options->command && s->options->layers == SEAM_LAYERS_GUEST)
		seam_session_note(s, false, "no Lua stacks: a process that "
				  "runs cannot have libseam-sampler.so; start "
				  "it as COMMAND");
	if (r == 0 && s->options->command)
		r = seam_programs_fork_command(s, err);
	/* from here on the command inherits nothing */
	seam_loop_take_signals();
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (r == 0)
		r = seam_sched_request(s->options->realtime, err);
	if (r == 0)
		r = seam_plan_open(s, err);
	if (r == 0)
		r = seam_session_watch(s, err);
	for (size_t i = 0; r == 0 && i < pids->n; i++)
		r = seam_loop_add_process(&s->loop, pids->items[i], false, err);
	for (size_t i = 0; r == 0 && i < tids->n; i++)
		r = seam_loop_add_process(&s->loop, tids->items[i], true, err);
	tids = &s->sources.tids;
	for (size_t i = 0; s->options->by_user && r == 0 && i < tids->n; i++)
		if (seam_targets_process(tids->items[i]) == tids->items[i])
			r = seam_loop_add_process(&s->loop, tids->items[i],
						  false, err);
	if (r == 0 && s->options->sink && s->options->sink->fd >= 0)
		r = seam_loop_add_fd(&s->loop, s->options->sink->fd, err);
	return r;
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
	size_t n_waiting;
	uint64_t n_stuck;	/* processes */
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

static void read_done(struct seam_helper_job *job, void *context)
{
	struct seam_synth *synth = &((struct read_job *)job)->synth;
	struct existing *e = context;

	e->n_waiting--;
	e->n_left_out += synth->n_left_out;
	for (size_t pos = 0; pos < synth->bytes.n;) {
		const uint8_t *at = synth->bytes.items + pos;
		struct seam_perf_sideband record;

		if (seam_sources_read_sideband(at, &record))
			seam_session_track_files(e->s, &record, false);
		pos += SEAM_PERF_HEADER_BYTES +
		       seam_perf_record_at(at).payload.size;
	}
	if (e->r == 0)
		e->r = seam_data_file_append(&e->s->recording.data, synth,
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
	if (e.n_stuck)
		seam_session_note(s, false, "%" PRIu64 " processes that "
			"ran before were not recorded: reading /proc took too "
			"long; symbols may be missing", e.n_stuck);
	if (e.n_left_out)
		seam_session_note(s, false, "%" PRIu64 " mappings of "
			"processes that ran before were left out: too many",
			e.n_left_out);
	return e.r;
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
	bool is_attached = !seam_plan_is_system_wide(s->options) &&
			   !seam_plan_records_command(s->options);
	const struct seam_number_list *tids = &s->sources.tids;
	struct seam_number_list pids = { 0 };
	int r;

	seam_auxtrace_describe(&s->sources, &synth);
	if (!(s->sources.left_out & SEAM_LEFT_OUT_KERNEL) &&
	    s->kernel.text_addr)
		seam_synth_kernel(&synth, &s->kernel);
	if (seam_plan_is_system_wide(s->options))
		synth.no_memory |= seam_procfs_processes(&pids) < 0;
	for (size_t i = 0; is_attached && i < tids->n; i++) {
		int pid = seam_targets_process(tids->items[i]);

		if (pid && !seam_number_list_has(&pids, pid))
			synth.no_memory |= seam_number_list_add(&pids, pid) < 0;
	}
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

/* The folder, and "data" up to its first record. */
static int begin_bundle(struct seam_session *s, struct seam_err *err)
{
	struct seam_recording *recording = &s->recording;
	int r = seam_bundle_create(&recording->bundle, s->options->output,
				   err), fd;

	if (r < 0)
		return r;
	fd = seam_bundle_file(&recording->bundle, "data", err);
	recording->data.compress.level = s->options->compress_level;
	r = fd < 0 ? fd : seam_data_file_begin(&recording->data, fd,
					       &s->sources, err);
	s->kept_files.keeps_hits = s->options->keep_files;
	s->kept_files.follow.bundle = &recording->bundle;
	s->kept_files.follow.max_bytes = s->options->max_bytes;
	s->kept_files.follow.context = s;
	SEAM_SERVICES_CALL(&s->services, start, &recording->bundle,
			   seam_sources_sideband_id(&s->sources));
	return r;
}

static int begin_sink(struct seam_session *s, struct seam_err *err)
{
	struct seam_sink *sink = s->options->sink;
	int r;

	s->recording.data.sink = sink;
	r = seam_data_file_begin(&s->recording.data, -1, &s->sources, err);
	return r == 0 ? sink->begin(sink, &s->sources, s->child.pid, err) : r;
}

/* Up to the first record from a ring; a bundle gets its name last. */
static int begin(struct seam_session *s, struct seam_err *err)
{
	struct seam_recording *recording = &s->recording;
	bool has_bundle = !s->options->sink;
	int r;

	seam_kernel_identify(&s->kernel, NULL);
	s->start_wall_ns = seam_clock_now(CLOCK_REALTIME);
	s->start_ns = seam_clock_ns();
	r = has_bundle ? begin_bundle(s, err) : begin_sink(s, err);
	s->services.other_clock = seam_sources_has_aux(&s->sources);
	s->services.is_unordered = s->options->overwrite;
	s->new_threads.sources = &s->sources;
	s->new_threads.file = &recording->data;
	/* of rings that overwrite no sample shows that a sampler is silent */
	s->sparse.sources = seam_services_superseder(&s->services) &&
			    !s->options->overwrite ? &s->sources : NULL;
	s->sparse.file = &recording->data;
	recording->data.stacks.dump_bytes = s->copies.bytes;
	if (r == 0)
		r = seam_drain_init(s, err);
	/* the rings fill while /proc is read: nothing is missed in between */
	if (r == 0 && !seam_plan_records_command(s->options)) {
		if (!s->sources.delayed)
			seam_drain_attached(s);
		seam_sources_enable(&s->sources);
	}
	if (r == 0)
		r = write_existing(s, err);
	if (r == 0)
		r = seam_rounds_failure(s, err);
	if (r == 0 && has_bundle)
		r = seam_bundle_publish(&recording->bundle, "data", err);
	if (r == 0 && has_bundle)
		r = seam_recording_write_manifest(recording, s, false, err);
	return r == 0 && has_bundle ?
	       seam_bundle_place(&recording->bundle, err) : r;
}

/* ---- finish ---- */

/* All steps are taken; the first failure is reported. */
static void keep_first(int *r, int next)
{
	if (*r == 0)
		*r = next;
}

/*
 * Wait for the files that samples wait for; then report why stacks end early,
 * where the cause is here and not in the files.
 */
static void finish_stacks(struct seam_session *s)
{
	const struct seam_cfi_files *files = &s->stacks.files;
	bool goes_on = s->drain.stacks && !s->result->cut_short;
	int fd = -1;

	if (goes_on)
		seam_rounds_drain(s);
	while (goes_on && seam_live_stacks_is_busy(&s->stacks, &fd)) {
		goes_on = seam_session_wait(s, fd, WAIT_MS);
		seam_rounds_drain(s);
	}
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

static int fill_result(struct seam_session *s, struct seam_err *err)
{
	struct seam_record_result *result = s->result;
	const struct seam_data_file *data = &s->recording.data;

	result->n_samples = data->counts.n_samples;
	result->counts = seam_recording_describe(&s->recording, s).counts;
	result->stacks = data->stacks;
	result->duration_ns = s->recording.duration_ns;
	result->skipped = s->recording.skipped;
	if (!s->options->sink)
		result->bundle_bytes = seam_bundle_bytes(&s->recording.bundle);
	result->events = calloc(s->events.n, sizeof(*result->events));
	if (!result->events)
		return seam_err_no_memory(err);
	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *from = &s->events.items[i];
		struct seam_record_event *event =
			&result->events[result->n_events];

		if (i == s->sources.sideband)
			continue;
		snprintf(event->name, sizeof(event->name), "%s", from->name);
		event->n_samples = data->by_event[i].n_samples;
		event->n_lost = data->by_event[i].n_lost;
		if (from->aux_kind)
			result->aux_event = event->name;
		/* samples that are names, or the stacks of waits */
		if (from->has_names || from->is_switch_stack ||
		    from->is_waking)
			result->n_samples -= event->n_samples;
		result->n_events++;
	}
	return 0;
}

/* The last parts of the bundle, wherever it is now. */
static int finish_bundle(struct seam_session *s, int r, struct seam_err *err)
{
	struct seam_record_result *result = s->result;
	enum seam_bundle_place place;
	struct stat st;

	place = seam_bundle_find(&s->recording.bundle, result->place,
				 sizeof(result->place));
	result->was_moved = place == SEAM_BUNDLE_MOVED;
	result->was_removed = place == SEAM_BUNDLE_REMOVED ||
			      (fstat(s->recording.data.fd, &st) == 0 &&
			       st.st_nlink == 0);
	if (result->was_removed) {
		result->cut_short = true;
		seam_data_file_lost(&s->recording.data);
		keep_first(&r, seam_err_set(r < 0 ? NULL : err, -ENOENT,
			"'%s' was removed while it was written",
			place == SEAM_BUNDLE_REMOVED ?
			s->recording.bundle.path : "data"));
	}
	if (!result->was_removed)
		keep_first(&r, seam_recording_write_features(&s->recording,
			s, r < 0 ? NULL : err));
	if (!result->cut_short)
		seam_recording_add_files(&s->recording, s);
	if (!result->was_removed)
		keep_first(&r, seam_recording_write_manifest(&s->recording, s,
			true, r < 0 ? NULL : err));
	return r;
}

static int finish(struct seam_session *s, int r, struct seam_err *err)
{
	struct seam_sink *sink = s->options->sink;

	seam_sources_disable(&s->sources);
	seam_data_file_count_cpus(&s->recording.data, &s->sources);
	r = finish_data(s, r, err);
	if (sink)
		sink->after_round(sink, UINT64_MAX, true);
	else
		r = finish_bundle(s, r, err);
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

	if (s->child.pid && !s->result->command.has_ended && !s->result->limit &&
	    !s->result->command.signal && !seam_plan_is_system_wide(s->options) &&
	    !seam_plan_records_command(s->options)) {
		s->result->command.was_stopped = true;
		kill(s->child.pid, SIGTERM);
	}
	while (s->child.pid && !s->result->command.has_ended &&
	       !s->result->command.signal) {
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
	seam_blocked_stacks_fini(&s->blocked);
	seam_kept_files_fini(&s->kept_files);
	if (s->kernel_fd > 0)
		close(s->kernel_fd);
	seam_programs_fini(s);
	seam_new_threads_fini(&s->new_threads);
	seam_stopped_fini(&s->stopped);
	seam_sources_fini(&s->sources);
	seam_recording_fini(&s->recording);
	seam_event_list_fini(&s->events);
	seam_loop_fini(&s->loop);
}

int seam_record(const struct seam_record_options *options,
		struct seam_record_result *result, struct seam_err *err)
{
	struct seam_session s = {
		.options = options, .result = result,
		.child.socket = -1,
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
		r = seam_programs_start_command(&s, err);
		result->command.start_error = r;
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
