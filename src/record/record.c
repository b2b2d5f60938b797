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
#include "base/text.h"
#include "record/perf/auxtrace.h"
#include "record/perf/hotplug.h"
#include "record/plan.h"
#include "record/existing.h"
#include "record/running_vm.h"
#include "record/session.h"
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

/*
 * Why there are no Lua stacks: an option that agents cannot follow.  NULL:
 * there is none.
 */
static const char *without_agents(const struct seam_record_options *o,
				  const struct seam_plan_clock *clock)
{
	/* rings that overwrite are not drained: all would be sampled twice */
	if (o->overwrite)
		return "with --overwrite";
	/* an agent samples its thread on all CPUs */
	if (o->cpus.n)
		return "with -C";
	/* and is in all that the command starts */
	if (o->no_inherit)
		return "with -i";
	/* the clock of AUX data is not the program's */
	if (clock->has_aux)
		return "with AUX data";
	/* most ticks would be skipped: a signal alone takes 10 to 30 us */
	if (clock->period_ns && clock->period_ns < SEAM_GUEST_MIN_NS)
		return "at more than 10000 Hz";
	/* who asks for other events did not ask for samples of time */
	if (!clock->period_ns && o->layers != SEAM_LAYERS_GUEST)
		return "without an event of CPU time, such as cpu-clock, or "
		       "--layers=guest";
	return NULL;
}

/* Decide whether the command gets an agent, and have its services. */
static void prepare_guest(struct seam_session *s)
{
	struct seam_plan_clock clock = { 0 };
	const char *why = NULL;
	char message[512];

	seam_preload_decide(&s->preload, s->options->layers,
			    s->options->command, message, sizeof(message));
	if (s->preload.is_used && !seam_plan_clock(s, &clock)) {
		s->preload.is_used = false;
		return;
	}
	if (s->preload.is_used)
		why = without_agents(s->options, &clock);
	if (why) {
		s->preload.is_used = false;
		snprintf(message, sizeof(message), "no Lua stacks %s", why);
	}
	if (message[0])
		seam_session_note(s, false, "%s", message);
	if (!s->preload.is_used)
		return;
	seam_guest_service_init(&s->guest);
	if (clock.period_ns)
		seam_guest_service_set_period(&s->guest, clock.period_ns);
	seam_services_add(&s->services, &s->guest.guest);
	seam_services_add(&s->services, &s->guest.symtab);
}

/* Processes that run already have no agent: how they can have one. */
static void report_running(const struct seam_session *s)
{
	int pid = s->options->layers == SEAM_LAYERS_AUTO ?
		  seam_running_vm_find(&s->options->pids) : 0;

	if (pid)
		seam_session_note(s, false, "process %d has LuaJIT: for Lua "
			"stacks start it with 'seam record -- COMMAND'", pid);
}

/* Fork the command, with the socket of the link in its environment. */
static int prepare_command(struct seam_session *s, struct seam_err *err)
{
	struct seam_err why = { 0 };
	int r;

	seam_jit_service_init(&s->jit, s->options->jit_ring_bytes);
	seam_services_add(&s->services, &s->jit.service);
	prepare_guest(s);
	r = seam_tracing_prepare(s, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->options->n_services; i++)
		seam_services_add(&s->services, s->options->services[i]);
	seam_services_open(&s->services, &why);
	/* the program would make a bundle of its own */
	if (!s->services.is_open && s->tracing.is_used)
		return seam_err_set(err, why.code, "cannot record calls "
				    "(--trace): %s", why.cause[0]);
	if (!s->services.is_open)
		seam_session_note(s, true, "JITs write files: %s",
				  why.cause[0]);
	seam_preload_set(&s->preload);
	seam_tracing_set(&s->tracing);
	r = seam_child_prepare(&s->child, s->options->command,
			       &s->loop.old_mask, err);
	seam_tracing_restore(&s->tracing);
	seam_preload_restore(&s->preload);
	seam_services_forked(&s->services);
	return r == 0 && s->services.is_open ?
	       seam_loop_add_link(&s->loop, s->services.server.epoll_fd, err) :
	       r;
}

static int prepare(struct seam_session *s, struct seam_err *err)
{
	int r = seam_loop_init(&s->loop, err);

	report_running(s);
	if (r == 0 && s->options->command)
		r = prepare_command(s, err);
	else if (s->options->layers == SEAM_LAYERS_GUEST)
		seam_session_note(s, false, "no Lua stacks: a process that "
				  "runs cannot have libseam-agent.so; start it "
				  "as COMMAND");
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
	if (record->type == PERF_RECORD_COMM &&
	    record->misc & PERF_RECORD_MISC_COMM_EXEC)
		seam_guest_service_exec(&s->guest, (uint32_t)record->comm.pid,
					record->sample_id.time);
	if (record->type == PERF_RECORD_FORK && s->tracing.is_used &&
	    record->task.pid == record->task.tid)
		seam_trace_functions_fork(&s->tracing.fdr.known,
					  (uint32_t)record->task.pid,
					  (uint32_t)record->task.ppid);
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

/* Code of a JIT, for stacks that are unwound. */
static void read_code(void *context, uint32_t pid, struct seam_bytes group)
{
	struct seam_session *s = context;

	seam_live_jit_add(&s->stacks.jit, (int32_t)pid, group);
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
	bool is_one = seam_event_is_cpu_time(&s->events.items[event]) &&
		      seam_guest_service_supersedes(&s->guest, tid, time_ns);

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
	/* without a common clock no code can be found by its time */
	if (s->drain.stacks && !s->services.other_clock) {
		s->stacks.dumps.jit = &s->stacks.jit;
		s->jit.dumps.on_code = read_code;
		s->jit.dumps.context = s;
	}
	return r;
}

/* Connect the readers of records with each other. */
static void connect_readers(struct seam_session *s)
{
	s->drain.sources = &s->sources;
	s->drain.file = &s->recording.data;
	s->drain.on_sideband = read_sideband;
	s->drain.on_sample = s->options->keep_files ? read_sample : NULL;
	s->drain.context = s;
	s->kept_files.jit.bundle = &s->recording.bundle;
	s->drain.copy_programs = copy_programs;
	s->drain.take_programs = take_programs;
	s->drain.is_superseded = s->preload.is_used ? is_superseded : NULL;
	s->jit.bundle = &s->recording.bundle;
	seam_tracing_begin(s);
	s->jit.sideband_id = seam_sources_sideband_id(&s->sources);
	s->services.other_clock = seam_sources_has_aux(&s->sources);
	s->services.is_unordered = s->options->overwrite;
	s->new_threads.sources = &s->sources;
	s->new_threads.file = &s->recording.data;
	s->sparse.sources = s->preload.is_used ? &s->sources : NULL;
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

/* What agents have to report: the last of them, which may correct another. */
static void report_note(const struct seam_session *s)
{
	char text[SEAM_LINK_NOTE_BYTES], others[64] = "";

	if (!s->services.n_notes)
		return;
	seam_text_copy(text, sizeof(text), s->services.note,
		       SEAM_TEXT_TERMINAL);
	if (s->services.n_notes > 1)
		snprintf(others, sizeof(others), "; %" PRIu64 " more messages "
			 "of programs", s->services.n_notes - 1);
	seam_session_note(s, false, "%s%s", text, others);
}

/* A VM was found or asked for, and there is nothing of it: say so. */
static void report_no_agent(const struct seam_session *s)
{
	const uint64_t *n = s->guest.counts.n;

	if (s->preload.is_used && !n[SEAM_COUNT_GUEST_PROCESSES] &&
	    !n[SEAM_COUNT_GUEST_SAMPLES] && !n[SEAM_COUNT_GUEST_BAD] &&
	    !s->services.n_notes)
		seam_session_note(s, false, "no Lua stacks: no program ran "
			"LuaJIT for long enough to be sampled, or its agent "
			"could not connect, as one of another user cannot");
}

static void finish_services(struct seam_session *s)
{
	seam_services_close(&s->services);
	report_note(s);
	seam_guest_service_finish(&s->guest);
	seam_tracing_finish(s);
	report_no_agent(s);
	s->recording.data.losses.n[SEAM_COUNT_BAD_BYTES] +=
		s->guest.n_bad_bytes;
	if (s->services.n_failed)
		seam_session_note(s, false, "%" PRIu64 " programs got no "
			"ring, so JITs write files: %s",
			s->services.n_failed, s->services.why.cause[0]);
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
	seam_data_file_removed(&s->recording.data);
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
	seam_session_drain(s, NULL);
	while (goes_on && seam_live_stacks_is_busy(&s->stacks, &fd)) {
		goes_on = seam_rounds_wait(s, fd, WAIT_MS);
		seam_session_drain(s, NULL);
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

	seam_rounds_allow(s, MAX_COPY_NS);
	finish_stacks(s);
	report_stacks(s);
	s->drain.is_last = true;
	keep_first(&r, seam_session_drain(s, r < 0 ? NULL : err));
	finish_services(s);
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
		seam_session_cut_short(s);
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

/* Records of seam:guest_symtab, which are samples to a reader only. */
static uint64_t n_names(const struct seam_session *s)
{
	uint64_t id = s->guest.symtab.event_id;

	for (size_t i = 0; id && i < s->events.n; i++)
		if (s->events.items[i].program_id == id)
			return s->recording.data.by_event[i].n_samples;
	return 0;
}

static int fill_result(struct seam_session *s, struct seam_err *err)
{
	struct seam_record_result *result = s->result;
	const struct seam_data_file *data = &s->recording.data;

	result->n_samples = data->counts.n_samples - n_names(s);
	result->counts = seam_recording_counts(&s->recording, s);
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

static void fini(struct seam_session *s)
{
	seam_drain_fini(&s->drain);
	seam_live_stacks_fini(&s->stacks);
	seam_kept_files_fini(&s->kept_files);
	seam_kept_hits_fini(&s->kept_hits);
	if (s->kernel_fd > 0)
		close(s->kernel_fd);
	seam_services_fini(&s->services);
	seam_jit_service_fini(&s->jit);
	seam_guest_service_fini(&s->guest);
	seam_tracing_fini(&s->tracing);
	seam_flight_fini(&s->flight);
	seam_trigger_hits_fini(&s->triggers);
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
	seam_rounds_allow(&s, MAX_COPY_NS);
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
		seam_rounds_wait_for_command(&s);
	} else if (s.recording.bundle.dir >= 0) {
		seam_bundle_remove(&s.recording.bundle);
	}
	fini(&s);
	return r;
}

void seam_record_result_fini(struct seam_record_result *result)
{
	free(result->events);
	*result = (struct seam_record_result) { 0 };
}
