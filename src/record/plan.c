/* SPDX-License-Identifier: MIT */
/* plan.c - events, threads and CPUs; see plan.h */
#include "record/plan.h"

#include "base/clock.h"
#include "base/text.h"
#include "record/events/pmu.h"
#include "record/events/event_kinds.h"
#include "record/proc/targets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	MAX_TRIES = 8,		/* to open the events of all threads */
};

/*
 * With -S or a size of AUX buffers, but no event known to have one: all events
 * of PMUs have one, without a decoder.
 */
static void guess_aux(const struct seam_session *s)
{
	const struct seam_record_options *o = s->options;

	for (size_t i = 0; i < s->events.n; i++)
		if (s->events.items[i].aux_kind)
			return;
	if (!o->aux_snapshots && !o->aux_bytes)
		return;
	for (size_t i = 0; i < s->events.n; i++)
		if (s->events.items[i].origin == SEAM_EVENT_OF_PMU &&
		    s->events.items[i].attr.type >= PERF_TYPE_MAX)
			s->events.items[i].aux_kind = SEAM_AUX_UNKNOWN;
}

/* AUXTRACE_INFO describes one kind, for perf's decoders. */
static int check_aux(const struct seam_session *s, struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	const struct seam_event *first = NULL;

	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		if (!event->aux_kind)
			continue;
		if (first && first->aux_kind != event->aux_kind)
			return seam_err_set(err, -EINVAL, "'%s' and '%s' "
				"write AUX data of two kinds: a recording "
				"holds one", first->name, event->name);
		first = event;
	}
	if (!first && (o->aux_snapshots || o->aux_bytes))
		return seam_err_set(err, -EINVAL, "%s: no event with an AUX "
			"buffer is recorded, such as 'intel_pt//'",
			o->aux_snapshots ? "-S" : "-m");
	return 0;
}

static bool is_tracepoint(const struct seam_event *event)
{
	return event->attr.type == PERF_TYPE_TRACEPOINT;
}

/* The kernel applies a filter to the fields of tracepoints. */
static int check_filter(const struct seam_session *s, struct seam_err *err)
{
	for (size_t i = 0; i < s->events.n; i++)
		if (is_tracepoint(&s->events.items[i]))
			return 0;
	return !s->options->filter ? 0 :
	       seam_err_set(err, -EINVAL, "--filter needs a tracepoint or a "
			    "probe, such as -e sched:sched_switch: other "
			    "events have no fields");
}

static int define_probes(struct seam_session *s, struct seam_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->events.n; i++)
		if (s->events.items[i].probe)
			r = seam_probe_define(&s->events.items[i], err);
	return r;
}

/* @fallback: the event to sample when the options name none. */
static int list_events(struct seam_session *s, const char *fallback,
		       struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	int r = 0;

	seam_event_list_fini(&s->events);
	for (size_t i = 0; r == 0 && i < o->n_events; i++)
		r = seam_event_list_add(&s->events, o->events[i], err);
	if (r == 0 && o->n_events == 0)
		r = seam_event_list_add(&s->events, fallback, err);
	guess_aux(s);
	if (r == 0)
		r = check_aux(s, err);
	if (r == 0)
		r = check_filter(s, err);
	if (r == 0)
		r = define_probes(s, err);
	if (r == 0)
		r = seam_sampling_set(s, err);
	if (r < 0)
		return r;
	/*
	 * In the rings of samples: so many SWITCH records would cause losses
	 * in the side-band.
	 */
	s->events.items[0].attr.context_switch = o->switch_events;
	return 0;
}

/* Add the events whose samples programs write. */
static int add_services(struct seam_session *s, struct seam_err *err)
{
	for (uint32_t i = 0; i < s->services.n; i++) {
		struct seam_service *service = s->services.items[i];
		struct seam_event *event;

		if (!service->event)
			continue;
		event = seam_event_list_push(&s->events);
		if (!event)
			return seam_err_no_memory(err);
		seam_event_init_program(event, service->event, i);
		event->attr.sample_type = service->sample_type;
		event->attr.sample_period = 1;
		service->event_id = event->program_id;
	}
	return 0;
}

/* Add the side-band's event, last as in files of perf. */
static int add_sideband(struct seam_session *s, struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	struct seam_event *event = seam_event_list_push(&s->events);

	if (!event)
		return seam_err_no_memory(err);
	seam_sources_sideband(event);
	event->attr.namespaces = o->namespaces;
	event->attr.cgroup = o->cgroups;
	/* perf's unwinders read .eh_frame by mappings that are not code */
	event->attr.mmap_data = o->data_addresses ||
				seam_sampling_keeps_copies(s);
	return 0;
}

static bool attaches(const struct seam_record_options *o)
{
	return o->pids.n || o->tids.n;
}

bool seam_plan_is_system_wide(const struct seam_record_options *o)
{
	return o->system_wide ||
	       (o->cpus.n && !o->command && !attaches(o));
}

bool seam_plan_records_command(const struct seam_record_options *o)
{
	return o->command && !o->system_wide && !attaches(o);
}

static int list_threads(struct seam_session *s,
			struct seam_number_list *tids, struct seam_err *err)
{
	int tid = seam_plan_is_system_wide(s->options) ? SEAM_SOURCES_EVERY :
		  s->child.pid;

	if (attaches(s->options))
		return seam_targets_list(tids, &s->options->pids,
					 &s->options->tids,
					 !s->options->no_inherit, err);
	return SEAM_ARRAY_ADD(tids, tid) ? 0 : seam_err_no_memory(err);
}

/* The CPUs to sample, all of which must be online. */
static int list_cpus(struct seam_session *s, struct seam_err *err)
{
	const struct seam_number_list *wanted = &s->options->cpus;
	int r = seam_procfs_cpus(&s->sources.cpus, err);

	for (size_t i = 0; r == 0 && i < wanted->n; i++) {
		int cpu = wanted->items[i];

		if (!seam_number_list_has(&s->sources.cpus, cpu))
			return seam_err_set(err, -ENODEV, "cpu %d is not "
					    "online", cpu);
		if (!SEAM_ARRAY_ADD(&s->sources.sampled, cpu))
			return seam_err_no_memory(err);
	}
	return r;
}

/* Large enough for the requested snapshot, a power of two. */
static size_t aux_bytes(const struct seam_record_options *o)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	if (o->aux_bytes)
		return o->aux_bytes;
	if (!o->aux_snapshot_bytes)
		return SEAM_RECORD_AUX_BYTES;
	while (bytes < o->aux_snapshot_bytes)
		bytes *= 2;
	return bytes;
}

static int open_sources(struct seam_session *s, const char *fallback,
			struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	bool has_aux = false;
	int r = list_events(s, fallback, err);

	for (size_t e = 0; r == 0 && e < s->events.n; e++)
		has_aux |= s->events.items[e].aux_kind != 0;
	if (r == 0)
		r = add_services(s, err);
	if (r == 0)
		r = add_sideband(s, err);
	if (r < 0)
		return r;
	s->sources = (struct seam_sources) {
		.may_be_sparse = seam_services_superseder(&s->services),
		.events = s->events.items,
		.n_events = s->events.n,
		.sideband = s->events.n - 1,
		.per_thread = o->per_thread,
		.overwrite = o->overwrite,
		.on_exec = seam_plan_records_command(o),
		.delayed = o->delay_ms > 0,
		.ring_bytes = seam_sampling_ring_bytes(s),
		.aux_bytes = has_aux ? aux_bytes(o) : 0,
		.aux_snapshots = has_aux && (o->aux_snapshots || o->overwrite),
		.aux_snapshot_bytes = o->aux_snapshot_bytes,
		.watermark = o->watermark,
		.filter = o->filter,
		.no_inherit = o->no_inherit,
	};
	r = list_cpus(s, err);
	if (r == 0)
		r = list_threads(s, &s->sources.tids, err);
	if (r == 0)
		r = seam_sources_open(&s->sources, err);
	if (r < 0)
		seam_sources_fini(&s->sources);
	return r;
}

/*
 * A thread that started while others were opened may have inherited their
 * events or not; there is no way to find out.  So all are opened again, until
 * no thread is new.
 */
static int open_until_stable(struct seam_session *s, const char *fallback,
			     struct seam_err *err)
{
	for (int i = 0; ; i++) {
		struct seam_number_list now = { 0 };
		int r = open_sources(s, fallback, err);
		bool stable;

		if (r < 0 || !attaches(s->options))
			return r;
		stable = list_threads(s, &now, NULL) == 0 &&
			 seam_targets_are_in(&now, &s->sources.tids);
		free(now.items);
		if (stable)
			return 0;
		if (i == MAX_TRIES) {
			seam_session_note(s, false, "threads start faster "
				"than they can be attached to: some of those "
				"that run are not recorded");
			return 0;
		}
		seam_sources_fini(&s->sources);
	}
}

/* Again with smaller copies, or none, as long as the rings require it. */
static int open_all(struct seam_session *s, const char *fallback,
		    struct seam_err *err)
{
	int r;

	do {
		r = open_until_stable(s, fallback, err);
		if (r == 0)
			r = seam_sampling_check(s, err);
		if (r < 0)
			seam_sources_fini(&s->sources);
	} while (r == -EAGAIN);
	return r;
}

static uint64_t period_ns(const struct perf_event_attr *attr)
{
	if (attr->freq)
		return SEAM_NS_PER_S / attr->sample_freq;
	/* how long so many cycles take is not known */
	return attr->type == PERF_TYPE_SOFTWARE ? attr->sample_period :
						  SEAM_NS_PER_MS;
}

bool seam_plan_clock(struct seam_session *s, struct seam_plan_clock *clock)
{
	struct seam_err refusal = { 0 };

	*clock = (struct seam_plan_clock) { 0 };
	if (list_events(s, "cpu-clock", &refusal) < 0)
		return false;
	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		clock->has_aux |= event->aux_kind != 0;
		if (!clock->period_ns && seam_event_is_cpu_time(event))
			clock->period_ns = period_ns(&event->attr);
	}
	return true;
}

int seam_plan_open(struct seam_session *s, struct seam_err *err)
{
	/*
	 * cycles where the machine has them, else cpu-clock; agents' samples
	 * have weights in ns, which no other event has
	 */
	int r = open_all(s, seam_services_superseder(&s->services) ?
			 "cpu-clock" : "cycles:P", err);

	if (r == -ENOENT && s->options->n_events == 0) {
		*err = (struct seam_err) { 0 };
		r = open_all(s, "cpu-clock", err);
	}
	if (r == 0)
		seam_session_note(s, true, "sampling '%s'",
				  s->events.items[0].name);
	return r;
}

static void report_aux(const struct seam_session *s)
{
	const struct seam_record_options *o = s->options;
	size_t wanted = aux_bytes(o), had = s->sources.aux_bytes;
	char had_text[SEAM_TEXT_SIZE], wanted_text[SEAM_TEXT_SIZE];

	if (!seam_sources_has_aux(&s->sources))
		return;
	if (had < wanted)
		seam_session_note(s, false, "AUX buffers of %s in place "
			"of %s: more needs CAP_IPC_LOCK, 'ulimit -l' or "
			"'sysctl kernel.perf_event_mlock_kb'",
			seam_text_size(had_text, had),
			seam_text_size(wanted_text, wanted));
	seam_session_note(s, true, "AUX buffers of %s; times are the "
			  "kernel's own, so JIT code is not resolved by "
			  "time", seam_text_size(had_text, had));
}

static void report_groups(const struct seam_session *s)
{
	if (seam_plan_is_system_wide(s->options) || s->options->per_thread)
		return;
	for (size_t i = 0; i < s->events.n; i++)
		if (s->events.items[i].read_by_leader) {
			seam_session_note(s, false, "groups are not "
				"inherited: threads that start later are "
				"sampled with --per-thread or -a");
			return;
		}
}

/* With -p, child processes are recorded too. */
static void report_children(const struct seam_session *s)
{
	const struct seam_record_options *o = s->options;
	const struct seam_number_list *tids = &s->sources.tids;
	size_t n = 0;

	for (size_t i = 0; o->pids.n && i < tids->n; i++)
		n += seam_targets_process(tids->items[i]) == tids->items[i] &&
		     !seam_number_list_has(&o->pids, tids->items[i]) &&
		     !seam_number_list_has(&o->tids, tids->items[i]);
	if (n)
		seam_session_note(s, false, "recording %zu process%s and %zu "
			"child process%s (-i: without child processes and new "
			"threads)", o->pids.n, o->pids.n == 1 ? "" : "es", n,
			n == 1 ? "" : "es");
}

void seam_plan_report(const struct seam_session *s)
{
	unsigned int out = s->sources.left_out;

	if (out & SEAM_LEFT_OUT_KERNEL)
		seam_session_note(s, false, "user code only: samples of the "
			"kernel need CAP_PERFMON or "
			"'sysctl kernel.perf_event_paranoid=1' (it is %ld)",
			seam_procfs_sysctl("perf_event_paranoid", 2));
	if (out & SEAM_LEFT_OUT_BUILD_IDS)
		seam_session_note(s, false, "no build ids of mapped files: "
			"they need Linux 5.12");
	if (out & SEAM_LEFT_OUT_LOST_COUNTS)
		seam_session_note(s, true, "no exact count of lost records: "
			"it needs Linux 6.0");
	report_children(s);
	seam_sampling_report(s);
	report_aux(s);
	report_groups(s);
}
