/* SPDX-License-Identifier: MIT */
/*
 * plan.c - rates, call chains, rings; events, threads and CPUs; see session.h
 *
 * Frequency, call chains and rings depend on each other: copies of stacks need
 * a ring that lasts until the recorder runs (record.h), and how large a
 * ring may be is known once it is mapped.  So the events are described for the
 * largest rings, opened, and described again for what was granted.
 */
#include "record/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <asm/perf_regs.h>
#endif

#include "base/clock.h"
#include "base/text.h"
#include "record/events/event_kinds.h"
#include "record/proc/procfs.h"
#include "wire/perf/wait_events.h"

enum {
	MAX_AUTO_BYTES = 16 * 1024 * 1024,	/* of a ring, with -m auto */
	AUTO_PART_OF_MEMORY = 32,	/* of all rings, at most 1/32 */
	MAX_TRIES = 8,		/* to open the events of all threads */
};

/* ---- copies of stacks: record.h ---- */

enum {
	RING_PART = 32,		/* a copy is at most so much of its ring */
	/*
	 * From a wakeup until the recorder runs: 10 to 20 ms on a busy machine,
	 * at times more.
	 */
	BUSY_MS = 11,
	/* With many other programs; what a size beyond the usual must leave. */
	VERY_BUSY_MS = 50,
};

/*
 * Registers that unwinding needs: those that call frame information has
 * columns for.
 */
#ifdef __x86_64__
#define BIT(name) (UINT64_C(1) << PERF_REG_X86_##name)
#define REGISTERS (BIT(AX) | BIT(BX) | BIT(CX) | BIT(DX) | BIT(SI) |	\
		   BIT(DI) | BIT(BP) | BIT(SP) | BIT(IP) | BIT(R8) |	\
		   BIT(R9) | BIT(R10) | BIT(R11) | BIT(R12) | BIT(R13) | \
		   BIT(R14) | BIT(R15))
/* Of perf, whose unwinders may not do with fewer. */
#define ALL_REGISTERS (REGISTERS | BIT(FLAGS) | BIT(CS) | BIT(SS))
#else
#define REGISTERS UINT64_C(0)
#define ALL_REGISTERS UINT64_C(0)
#endif

/* Above the watermark of a quarter three quarters of a ring are free. */
static uint64_t fitting_hz(size_t ring_bytes, uint32_t bytes, unsigned int ms)
{
	return (uint64_t)ring_bytes * 3 / 4 / bytes * 1000 / ms;
}

/* The highest frequency at which copies of @bytes fit @ring_bytes. */
static uint64_t max_hz_of(size_t ring_bytes, uint32_t bytes)
{
	return fitting_hz(ring_bytes, bytes, BUSY_MS);
}

uint32_t seam_stack_plan_bytes(size_t ring_bytes, uint64_t hz)
{
	static const struct {
		uint32_t bytes;
		unsigned int ms;	/* that three quarters of a ring last */
	} sizes[] = {
		/* compilers of the size of clang need it; rare elsewhere */
		{ 49152, VERY_BUSY_MS },
		{ 32768, BUSY_MS }, { 24576, BUSY_MS }, { 16384, BUSY_MS },
		{ 8192, BUSY_MS },
	};
	const size_t n = SEAM_ARRAY_SIZE(sizes);

	for (size_t i = hz ? 0 : n - 1; i < n; i++)
		if (sizes[i].bytes <= ring_bytes / RING_PART &&
		    hz <= fitting_hz(ring_bytes, sizes[i].bytes, sizes[i].ms))
			return sizes[i].bytes;
	return 0;
}

void seam_stack_plan_apply(struct seam_event *event, enum seam_call_graph how,
			   uint32_t bytes)
{
	struct perf_event_attr *attr = &event->attr;

	event->is_unwound = how == SEAM_CALL_GRAPH_AUTO;
	if (how == SEAM_CALL_GRAPH_NONE)
		return;
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (how == SEAM_CALL_GRAPH_FP)
		return;
	attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr->sample_regs_user = how == SEAM_CALL_GRAPH_DWARF ?
				 ALL_REGISTERS : REGISTERS;
	attr->sample_stack_user = bytes;
	/* as perf's: readers add the user part */
	attr->exclude_callchain_user = how == SEAM_CALL_GRAPH_DWARF;
}

/* ---- rates ---- */

static uint64_t allowed_hz(uint64_t wanted)
{
	long max_hz = seam_procfs_sysctl("perf_event_max_sample_rate", 100000);

	return max_hz <= 0 || wanted <= (uint64_t)max_hz ? wanted :
	       (uint64_t)max_hz;
}

/* Whether @event has samples of the kernel. */
static bool is_sampled(const struct seam_event *event)
{
	return !event->read_by_leader && !event->aux_kind &&
	       !event->is_switches && !event->is_waking &&
	       event->origin != SEAM_EVENT_OF_PROGRAM &&
	       strcmp(event->name, SEAM_EVENT_SIDEBAND) != 0;
}

static bool has_frequency(const struct seam_record_options *o,
			  const struct seam_event *event)
{
	return event->frequency_hz ||
	       !(event->period || o->period || event->each_time);
}

static void set_rate(const struct seam_session *s, struct seam_event *event)
{
	const struct seam_record_options *o = s->options;
	struct perf_event_attr *attr = &event->attr;

	/* of SPE the period is an interval, of other AUX events it is 1 */
	if (event->aux_kind == SEAM_AUX_ARM_SPE && o->period)
		attr->sample_period = o->period;
	if (!is_sampled(event))
		return;
	attr->freq = has_frequency(o, event);
	if (attr->freq)
		attr->sample_freq = event->frequency_hz ?
				    allowed_hz(event->frequency_hz) :
				    s->frequency_hz;
	else
		attr->sample_period = event->period ? event->period :
				      o->period ? o->period : 1;
}

/* ---- call chains ---- */

/* DEFAULT: neither for the event nor for all. */
static enum seam_call_graph requested(const struct seam_session *s,
				      const struct seam_event *event)
{
	return event->call_graph != SEAM_CALL_GRAPH_DEFAULT ?
	       event->call_graph : s->options->call_graph;
}

/*
 * By default stacks are copied for events of a known frequency, or on request.
 * Each occurrence of a tracepoint or a probe has no call chain unless
 * one was requested.
 */
static enum seam_call_graph call_graph_of(const struct seam_session *s,
					  const struct seam_event *event)
{
	const struct seam_record_options *o = s->options;
	enum seam_call_graph how = requested(s, event);
	uint64_t period = event->period ? event->period : o->period;

	if (!is_sampled(event))
		return SEAM_CALL_GRAPH_NONE;
	if (how != SEAM_CALL_GRAPH_DEFAULT)
		return how;
	if (event->each_time && !event->frequency_hz && period <= 1 &&
	    !o->callchains)
		return SEAM_CALL_GRAPH_NONE;
	return !s->copies.by_frame_pointers &&
	       (has_frequency(o, event) || o->callchains ||
		event->is_switch_stack) ?
	       SEAM_CALL_GRAPH_AUTO : SEAM_CALL_GRAPH_FP;
}

static bool is_copied(const struct seam_session *s,
		      const struct seam_event *event)
{
	enum seam_call_graph how = call_graph_of(s, event);

	return how == SEAM_CALL_GRAPH_AUTO || how == SEAM_CALL_GRAPH_DWARF;
}

static bool has_copies(const struct seam_session *s)
{
	for (size_t i = 0; i < s->events.n; i++)
		if (is_copied(s, &s->events.items[i]))
			return true;
	return false;
}

/* Samples with copies on one CPU in a second; 0: not known. */
static uint64_t copies_hz(const struct seam_session *s)
{
	uint64_t hz = 0;

	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		if (is_copied(s, event) && event->attr.freq)
			hz += event->attr.sample_freq;
	}
	return hz;
}

/* A ring that overwrites is to hold the samples of a second, if it can. */
static uint32_t overwritten_bytes(size_t ring_bytes, uint64_t hz)
{
	uint32_t bytes = 32768;

	while (bytes > SEAM_STACK_PLAN_DWARF_BYTES &&
	       (!hz || ring_bytes / bytes < hz))
		bytes /= 2;
	return bytes <= ring_bytes / RING_PART ? bytes : 0;
}

/* The size of a copy for @event; 0: none fits. */
static uint32_t copy_bytes(const struct seam_session *s,
			   const struct seam_event *event, size_t ring_bytes)
{
	uint32_t bytes = s->options->stack_bytes;
	uint64_t hz = copies_hz(s);

	/* of a limited rate, with bursts; the others are as large as before */
	if (!bytes && event->is_switch_stack && !s->options->overwrite)
		return seam_stack_plan_bytes(ring_bytes,
					     2 * SEAM_SWITCH_STACKS_HZ) ?:
		       seam_stack_plan_bytes(ring_bytes, 0);
	if (!bytes && call_graph_of(s, event) == SEAM_CALL_GRAPH_DWARF)
		bytes = SEAM_STACK_PLAN_DWARF_BYTES;
	if (s->options->overwrite)
		return bytes ? bytes <= ring_bytes / RING_PART ? bytes : 0 :
			       overwritten_bytes(ring_bytes,
						 event->is_switch_stack ?
						 SEAM_SWITCH_STACKS_HZ : hz);
	if (!bytes)
		return seam_stack_plan_bytes(ring_bytes, hz);
	return hz <= max_hz_of(ring_bytes, bytes) ? bytes : 0;
}

/* The stacks of waits go to the rings of samples.  False: they did already. */
static bool share_rings(struct seam_session *s)
{
	bool did_not = false;

	for (size_t i = 0; i < s->events.n; i++) {
		struct seam_event *event = &s->events.items[i];

		if (!event->is_switch_stack)
			continue;
		did_not |= event->has_rings;
		event->has_rings = false;
	}
	s->copies.share_rings = true;
	return did_not;
}

/*
 * 0; or @event's stacks cannot be copied to rings of @ring_bytes: -EINVAL where
 * copies were requested; else -EAGAIN, and call chains are those of frame
 * pointers from now on.
 */
static int check_copies(struct seam_session *s, const struct seam_event *event,
			size_t ring_bytes, struct seam_err *err)
{
	uint32_t bytes = s->options->stack_bytes ? s->options->stack_bytes :
			 SEAM_STACK_PLAN_DWARF_BYTES;
	uint64_t hz = copies_hz(s);
	uint64_t max_hz = max_hz_of(ring_bytes, bytes);
	char ring[SEAM_TEXT_SIZE], why[sizeof(s->copies.why)];

	if (!is_copied(s, event))
		return 0;
	seam_text_size(ring, ring_bytes);
	if (!REGISTERS)
		snprintf(why, sizeof(why), "stacks are copied on x86-64 only "
			 "(--call-graph fp)");
	else if (copy_bytes(s, event, ring_bytes))
		return 0;
	else if (max_hz && hz > max_hz && !s->options->overwrite)
		snprintf(why, sizeof(why), "copies of %" PRIu32 " bytes of "
			 "stack at %" PRIu64 " Hz do not fit rings of %s: "
			 "-F %" PRIu64 " or larger rings (-m) do", bytes, hz,
			 ring, max_hz);
	else
		snprintf(why, sizeof(why), "copies of %" PRIu32 " bytes of "
			 "stack do not fit rings of %s (-m)", bytes, ring);
	/* with little memory to lock, one ring for both is large enough */
	if (share_rings(s))
		return -EAGAIN;
	if (requested(s, event) != SEAM_CALL_GRAPH_DEFAULT)
		return seam_err_set(err, -EINVAL, "%s", why);
	s->copies.by_frame_pointers = true;
	memcpy(s->copies.why, why, sizeof(why));
	return -EAGAIN;
}

/* ---- rings ---- */

/* seam_sources_open() reduces it to what the user may lock. */
static size_t largest_ring(size_t max_bytes)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			  (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t n_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	size_t bytes = max_bytes;

	while (bytes > SEAM_RECORD_RING_BYTES &&
	       bytes * n_cpus > memory / AUTO_PART_OF_MEMORY)
		bytes /= 2;
	return bytes;
}

/* The size of rings to map for these events. */
static size_t ring_bytes_for(const struct seam_session *s)
{
	const struct seam_record_options *o = s->options;

	if (s->copies.ring_bytes && has_copies(s))
		return s->copies.ring_bytes;
	if (o->ring_auto)
		return largest_ring(MAX_AUTO_BYTES);
	if (o->ring_bytes)
		return o->ring_bytes;
	/* a ring for each thread adds up; one that overwrites is all there is */
	if (!has_copies(s) || o->per_thread)
		return SEAM_RECORD_RING_BYTES;
	return largest_ring(o->overwrite ? MAX_AUTO_BYTES :
			    SEAM_STACK_PLAN_MAX_RING_BYTES);
}

/* ---- contents ---- */

static void set_contents(const struct seam_session *s, struct seam_event *event)
{
	const struct seam_record_options *o = s->options;
	struct perf_event_attr *attr = &event->attr;

	if (event->aux_kind || event->origin == SEAM_EVENT_OF_PROGRAM ||
	    event->is_switches || event->is_waking)
		return;		/* its contents are AUX data, or raw */
	seam_stack_plan_apply(event, call_graph_of(s, event),
			      copy_bytes(s, event, ring_bytes_for(s)));
	if (attr->type == PERF_TYPE_TRACEPOINT ||
	    (attr->type == PERF_TYPE_SOFTWARE &&
	     attr->config == PERF_COUNT_SW_BPF_OUTPUT))
		attr->sample_type |= PERF_SAMPLE_RAW;
	if (o->data_addresses)
		attr->sample_type |= PERF_SAMPLE_ADDR |
				     PERF_SAMPLE_DATA_SRC;
	if (o->cgroups)
		attr->sample_type |= PERF_SAMPLE_CGROUP;
}

/*
 * Set rate and contents of the samples of all events, which are as they were
 * parsed.  -EINVAL: the call chains that the options request do not fit.
 */
static int set_sampling(struct seam_session *s, struct seam_err *err)
{
	struct seam_event *events = s->events.items;
	size_t n = s->events.n;
	int r;

	do {
		s->frequency_hz = allowed_hz(s->options->frequency_hz ?
			s->options->frequency_hz : has_copies(s) ?
			SEAM_STACK_PLAN_HZ : SEAM_RECORD_FREQUENCY_HZ);
		for (size_t i = 0; i < n; i++)
			set_rate(s, &events[i]);
		r = 0;
		for (size_t i = 0; r == 0 && i < n; i++)
			r = check_copies(s, &events[i], ring_bytes_for(s), err);
	} while (r == -EAGAIN);
	s->copies.bytes = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		set_contents(s, &events[i]);
		if (events[i].attr.sample_stack_user > s->copies.bytes)
			s->copies.bytes = events[i].attr.sample_stack_user;
	}
	return r;
}

/* ---- what was granted ---- */

/*
 * The sources are open.  -EAGAIN: their rings are too small for what the
 * events say; close them, parse the events, and set them again.
 */
static int check_sampling(struct seam_session *s, struct seam_err *err)
{
	bool was_limited = s->sources.left_out & SEAM_LEFT_OUT_RING_SPACE;
	bool did_share = s->copies.share_rings;
	size_t wanted = s->options->ring_bytes ? s->options->ring_bytes :
			SEAM_RECORD_RING_BYTES;
	int r = 0;

	s->copies.was_limited |= was_limited;
	for (size_t i = 0; r == 0 && i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		r = check_copies(s, event, s->sources.ring_bytes, err);
		if (r == 0 && is_copied(s, event) &&
		    event->attr.sample_stack_user !=
		    copy_bytes(s, event, s->sources.ring_bytes))
			r = -EAGAIN;
	}
	/* which may be larger than these, where they are shared from now on */
	s->copies.ring_bytes = s->copies.share_rings == did_share ?
			       s->sources.ring_bytes : 0;
	/* larger rings than by default were tried for the copies */
	s->sources.left_out &= ~(unsigned int)SEAM_LEFT_OUT_RING_SPACE;
	if (s->options->ring_auto ? s->copies.was_limited :
	    s->sources.ring_bytes < wanted)
		s->sources.left_out |= SEAM_LEFT_OUT_RING_SPACE;
	if (s->copies.by_frame_pointers)
		s->sources.left_out |= SEAM_LEFT_OUT_STACK_COPIES;
	return r;
}

/* ---- report ---- */

static void report_frequencies(const struct seam_session *s)
{
	uint64_t wanted = s->options->frequency_hz, hz = s->frequency_hz;

	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		if (event->attr.freq &&
		    event->frequency_hz > event->attr.sample_freq) {
			wanted = event->frequency_hz;
			hz = event->attr.sample_freq;
		}
	}
	if (wanted > hz && wanted != UINT64_MAX && !s->options->period)
		seam_session_note(s, false, "%" PRIu64 " Hz is more than "
			"this machine allows: sampling at %" PRIu64 " Hz "
			"(kernel.perf_event_max_sample_rate)", wanted, hz);
}

static void report_rings(const struct seam_session *s)
{
	const struct seam_record_options *o = s->options;
	bool is_less = s->sources.left_out & SEAM_LEFT_OUT_RING_SPACE;
	char had[SEAM_TEXT_SIZE], wanted[SEAM_TEXT_SIZE];

	seam_text_size(had, s->sources.ring_bytes);
	seam_text_size(wanted, o->ring_bytes ? o->ring_bytes :
		       SEAM_RECORD_RING_BYTES);
	if (o->ring_auto)
		seam_session_note(s, false, "rings of %s%s", had, is_less ?
			", the most that may be locked (CAP_IPC_LOCK, "
			"'ulimit -l', kernel.perf_event_mlock_kb)" : "");
	else if (is_less)
		seam_session_note(s, false, "rings of %s in place of "
			"%s: more needs CAP_IPC_LOCK, 'ulimit -l' or "
			"'sysctl kernel.perf_event_mlock_kb' (it is %ld)",
			had, wanted,
			seam_procfs_sysctl("perf_event_mlock_kb", 516));
}

static void report_copies(const struct seam_session *s,
			  const struct seam_event *event)
{
	char ring[SEAM_TEXT_SIZE];

	if (is_copied(s, event))
		seam_session_note(s, true, "stacks of '%s' from copies of up "
			"to %" PRIu32 " bytes, by rings of %s", event->name,
			event->attr.sample_stack_user,
			seam_text_size(ring, s->sources.ring_bytes));
	else if (call_graph_of(s, event) != SEAM_CALL_GRAPH_FP)
		return;
	else
		seam_session_note(s, true, "stacks of '%s' by frame pointers",
				  event->name);
}

/* ---- events, threads and CPUs ---- */

/*
 * AUXTRACE_INFO describes one kind, for perf's decoders.  The kernel applies a
 * filter to the fields of tracepoints.
 */
static int check_events(const struct seam_session *s, struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	const struct seam_event *first = NULL;
	bool has_fields = false;

	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		has_fields |= event->attr.type == PERF_TYPE_TRACEPOINT;
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
	for (size_t i = 0; i < s->events.n; i++)
		if (seam_event_is_of_kernel(&s->events.items[i]) &&
		    s->events.items[i].attr.exclude_kernel)
			return seam_err_set(err, -EINVAL, "'%s' never occurs "
				"in user code: without the modifier u it "
				"needs CAP_PERFMON, or 'sysctl "
				"kernel.perf_event_paranoid=1'",
				s->events.items[i].name);
	return has_fields || !o->filter ? 0 :
	       seam_err_set(err, -EINVAL, "--filter needs a tracepoint or a "
			    "probe, such as -e sched:sched_switch: other "
			    "events have no fields");
}

/*
 * Whether the user may sample the kernel: of an event without that right the
 * kernel would count nothing.
 */
static bool may_sample_kernel(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES, .disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* --off-cpu: stacks with which threads lose their CPU. */
static int add_switch_stack(struct seam_session *s, struct seam_err *err)
{
	struct seam_event *event;

	if (!s->options->off_cpu.is_used || !may_sample_kernel() ||
	    s->options->call_graph == SEAM_CALL_GRAPH_NONE)
		return 0;
	event = seam_event_list_push(&s->events);
	if (!event)
		return seam_err_no_memory(err);
	snprintf(event->name, sizeof(event->name), SEAM_SWITCH_STACK_EVENT);
	event->attr.type = PERF_TYPE_SOFTWARE;
	event->attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	event->is_switch_stack = true;
	event->has_rings = !s->copies.share_rings;
	event->period = 1;
	return 0;
}

/* sched:sched_waking of all threads, its samples without stacks. */
static int wakings_of(struct seam_event *event, struct seam_err *err)
{
	int tracefs = seam_tracefs_open(err);
	int id = tracefs < 0 ? tracefs :
		 seam_tracefs_id(tracefs, "sched", "sched_waking", err);

	if (tracefs >= 0)
		close(tracefs);
	if (id < 0)
		return id;
	seam_event_init(event);
	snprintf(event->name, sizeof(event->name), SEAM_WAKING_EVENT);
	snprintf(event->kernel_name, sizeof(event->kernel_name),
		 "sched:sched_waking");
	event->attr.type = PERF_TYPE_TRACEPOINT;
	event->attr.size = sizeof(event->attr);
	event->attr.config = (unsigned int)id;
	event->attr.sample_period = 1;
	event->attr.sample_type = PERF_SAMPLE_RAW;
	event->is_waking = true;
	return 0;
}

/* Whether wakings of all threads can be recorded, with their fields. */
static int may_record_wakings(struct seam_err *err)
{
	struct seam_event event;
	int r = wakings_of(&event, err), fd;

	if (r < 0)
		return r;
	fd = (int)syscall(SYS_perf_event_open, &event.attr, -1, 0, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return seam_err_set(err, -errno, "sched:sched_waking of all "
			"processes needs CAP_PERFMON or 'sysctl "
			"kernel.perf_event_paranoid=-1' (it is %ld)",
			seam_procfs_sysctl("perf_event_paranoid", 2));
	close(fd);
	return 0;
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
	if (r == 0)
		r = check_events(s, err);
	if (r == 0)
		r = add_switch_stack(s, err);
	for (size_t i = 0; r == 0 && i < s->events.n; i++)
		if (s->events.items[i].probe)
			r = seam_probe_define(&s->events.items[i], err);
	if (r == 0)
		r = set_sampling(s, err);
	for (size_t i = 0; o->no_idle && i < s->events.n; i++)
		s->events.items[i].attr.exclude_idle = 1;
	/*
	 * In the rings of samples: so many SWITCH records would cause losses
	 * in the side-band.
	 */
	if (r == 0)
		s->events.items[0].attr.context_switch = o->switch_events;
	return r;
}

/*
 * Add the events whose samples programs write, and the side-band's event, last
 * as in files of perf.
 */
static int add_own_events(struct seam_session *s, struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	struct seam_event *event;
	bool keeps_copies = false;

	for (size_t i = 0; i < s->events.n; i++)
		keeps_copies |= call_graph_of(s, &s->events.items[i]) ==
				SEAM_CALL_GRAPH_DWARF;
	for (uint32_t i = 0; i < s->services.n; i++) {
		struct seam_service *service = s->services.items[i];

		if (!service->event)
			continue;
		event = seam_event_list_push(&s->events);
		if (!event)
			return seam_err_no_memory(err);
		seam_event_init_program(event, service->event, i);
		event->attr.sample_type = service->sample_type;
		event->attr.sample_period = 1;
		event->has_names = service->has_names;
		service->event_id = event->program_id;
	}
	/* with that right most stacks are recorded at the switch */
	s->blocked.has_samples = may_sample_kernel();
	if (REGISTERS && o->off_cpu.is_used) {
		event = seam_event_list_push(&s->events);
		if (!event)
			return seam_err_no_memory(err);
		seam_event_init_program(event, SEAM_BLOCKED_STACK_EVENT,
					(uint32_t)s->services.n);
		seam_blocked_stacks_describe(&event->attr);
		event->is_unwound = true;
		s->blocked.event_id = event->program_id;
	}
	if (o->off_cpu.is_used) {
		event = seam_event_list_push(&s->events);
		if (!event)
			return seam_err_no_memory(err);
		snprintf(event->name, sizeof(event->name), SEAM_SWITCH_EVENT);
		event->attr.type = PERF_TYPE_SOFTWARE;
		event->attr.config = PERF_COUNT_SW_DUMMY;
		event->attr.sample_period = 1;
		event->attr.context_switch = 1;
		event->is_switches = event->has_rings = true;
	}
	if (o->off_cpu.wakers && may_record_wakings(NULL) == 0) {
		event = seam_event_list_push(&s->events);
		if (!event || wakings_of(event, NULL))
			return seam_err_no_memory(err);
	}
	event = seam_event_list_push(&s->events);
	if (!event)
		return seam_err_no_memory(err);
	seam_sources_sideband(event);
	event->attr.namespaces = o->namespaces;
	event->attr.cgroup = o->cgroups;
	/* perf's unwinders read .eh_frame by mappings that are not code */
	event->attr.mmap_data = o->data_addresses || keeps_copies;
	return 0;
}

static bool attaches(const struct seam_record_options *o)
{
	return o->pids.n || o->tids.n || o->by_user;
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

/* Whether the kernel lets the user record thread @tid. */
static bool may_record(int tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY, .disabled = 1,
		.exclude_kernel = 1, .exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1,
			      PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (errno != EACCES && errno != EPERM);
}

/*
 * The threads of a user's processes, but not of the recorder and its command;
 * of some, such as those that ran a setuid program, the kernel permits none.
 */
static int list_user(struct seam_session *s, struct seam_number_list *tids,
		     struct seam_err *err)
{
	struct seam_number_list pids = { 0 };
	int r = seam_procfs_processes(&pids);

	s->n_forbidden = 0;
	for (size_t i = 0; r == 0 && i < pids.n; i++) {
		int pid = pids.items[i];

		if (pid == getpid() || pid == s->child.pid ||
		    !seam_targets_is_of_user(pid, s->options->user))
			continue;
		if (!may_record(pid))
			s->n_forbidden++;
		else if (seam_procfs_threads(tids, pid, NULL) == -ENOMEM)
			r = -ENOMEM;
	}
	free(pids.items);
	if (r < 0)
		return seam_err_no_memory(err);
	if (tids->n)
		return 0;
	return seam_err_set(err, -ESRCH, s->n_forbidden ? "no permission for "
			    "any process of user %u: it needs that user, "
			    "CAP_PERFMON or CAP_SYS_PTRACE" : "no process of "
			    "user %u runs", s->options->user);
}

static int list_threads(struct seam_session *s,
			struct seam_number_list *tids, struct seam_err *err)
{
	int tid = seam_plan_is_system_wide(s->options) ? SEAM_SOURCES_EVERY :
		  s->child.pid;

	if (s->options->by_user)
		return list_user(s, tids, err);
	if (attaches(s->options))
		return seam_targets_list(tids, &s->options->pids,
					 &s->options->tids,
					 !s->options->no_inherit, err);
	return SEAM_ARRAY_ADD(tids, tid) ? 0 : seam_err_no_memory(err);
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
		r = add_own_events(s, err);
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
		.ring_bytes = ring_bytes_for(s),
		.aux_bytes = has_aux ? aux_bytes(o) : 0,
		.aux_snapshots = has_aux && (o->aux_snapshots || o->overwrite),
		.aux_snapshot_bytes = o->aux_snapshot_bytes,
		.watermark = o->watermark,
		.filter = o->filter,
		.cgroup = o->cgroup,
		.no_inherit = o->no_inherit,
		.left_out = (o->off_cpu.is_used && !may_sample_kernel() ?
			     SEAM_LEFT_OUT_SWITCH_STACKS : 0u) |
			    (o->off_cpu.wakers && may_record_wakings(NULL) ?
			     SEAM_LEFT_OUT_WAKERS : 0u),
	};
	r = seam_procfs_cpus(&s->sources.cpus, err);
	for (size_t i = 0; r == 0 && i < o->cpus.n; i++) {
		int cpu = o->cpus.items[i];

		if (!seam_number_list_has(&s->sources.cpus, cpu))
			r = seam_err_set(err, -ENODEV, "cpu %d is not online",
					 cpu);
		else if (!SEAM_ARRAY_ADD(&s->sources.sampled, cpu))
			r = seam_err_no_memory(err);
	}
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
			r = check_sampling(s, err);
		if (r < 0)
			seam_sources_fini(&s->sources);
	} while (r == -EAGAIN);
	return r;
}

bool seam_plan_clock(struct seam_session *s, uint64_t *period_ns, bool *has_aux)
{
	struct seam_err refusal = { 0 };

	*period_ns = 0;
	*has_aux = false;
	if (list_events(s, "cpu-clock", &refusal) < 0)
		return false;
	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];
		const struct perf_event_attr *attr = &event->attr;

		*has_aux |= event->aux_kind != 0;
		if (!*period_ns && seam_event_is_cpu_time(event))
			*period_ns = attr->freq ?
				SEAM_NS_PER_S / attr->sample_freq :
				attr->type == PERF_TYPE_SOFTWARE ?
				attr->sample_period : SEAM_NS_PER_MS;
	}
	return true;
}

int seam_plan_open(struct seam_session *s, struct seam_err *err)
{
	/*
	 * cycles where the machine has them, else cpu-clock; samplers' samples
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

void seam_plan_report(const struct seam_session *s)
{
	const struct seam_record_options *o = s->options;
	const struct seam_number_list *tids = &s->sources.tids;
	unsigned int out = s->sources.left_out;
	struct seam_err why = { 0 };
	bool has_counts = false;
	size_t n = 0;

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
	/* with -p, child processes are recorded too */
	for (size_t i = 0; o->pids.n && i < tids->n; i++)
		n += seam_targets_process(tids->items[i]) == tids->items[i] &&
		     !seam_number_list_has(&o->pids, tids->items[i]) &&
		     !seam_number_list_has(&o->tids, tids->items[i]);
	if (n)
		seam_session_note(s, false, "recording %zu process%s and %zu "
			"child process%s (-i: without child processes and new "
			"threads)", o->pids.n, o->pids.n == 1 ? "" : "es", n,
			n == 1 ? "" : "es");
	if (s->n_forbidden)
		seam_session_note(s, false, "%zu process%s of the user left "
			"out: no permission for %s (CAP_PERFMON)",
			s->n_forbidden, s->n_forbidden == 1 ? "" : "es",
			s->n_forbidden == 1 ? "it" : "them");
	if (out & SEAM_LEFT_OUT_SWITCH_STACKS)
		seam_session_note(s, false, "stacks of waits are read while "
			"threads wait: those at their begin need CAP_PERFMON "
			"or 'sysctl kernel.perf_event_paranoid=1' (it is %ld)",
			seam_procfs_sysctl("perf_event_paranoid", 2));
	if (out & SEAM_LEFT_OUT_WAKERS && may_record_wakings(&why))
		seam_session_note(s, false, "no wakers: %s", why.cause[0]);
	report_frequencies(s);
	report_rings(s);
	if (s->copies.by_frame_pointers)
		seam_session_note(s, false, "stacks by frame pointers only: "
				  "%s", s->copies.why);
	for (size_t i = 0; i < s->events.n; i++)
		if (i != s->sources.sideband)
			report_copies(s, &s->events.items[i]);
	report_aux(s);
	for (size_t i = 0; i < s->events.n; i++)
		has_counts |= s->events.items[i].read_by_leader;
	if (has_counts && !seam_plan_is_system_wide(s->options) &&
	    !s->options->per_thread)
		seam_session_note(s, false, "groups are not inherited: threads "
			"that start later are sampled with --per-thread or "
			"-a");
}
