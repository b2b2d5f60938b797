/* SPDX-License-Identifier: MIT */
/* sampling.c - rates, call chains, sizes of rings; see plan.h */
#include "record/plan.h"

#include "base/text.h"
#include "record/stack_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
	MAX_AUTO_BYTES = 16 * 1024 * 1024,	/* of a ring, with -m auto */
	AUTO_PART_OF_MEMORY = 32,	/* of all rings, at most 1/32 */
};

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
 * Stacks are copied for events of a known frequency, or on request, to rings
 * that are drained and of a known size: that of a later thread may be a page.
 */
static bool may_copy(const struct seam_session *s,
		     const struct seam_event *event)
{
	const struct seam_record_options *o = s->options;

	return !s->copies.by_frame_pointers && !o->overwrite &&
	       !o->per_thread && (has_frequency(o, event) || o->callchains) &&
	       seam_stack_plan_is_supported();
}

/* Each occurrence of a tracepoint or a probe: no call chains unless asked. */
static bool is_each_time(const struct seam_record_options *o,
			 const struct seam_event *event)
{
	uint64_t period = event->period ? event->period : o->period;

	return event->each_time && !event->frequency_hz && period <= 1;
}

static enum seam_call_graph call_graph_of(const struct seam_session *s,
					  const struct seam_event *event)
{
	enum seam_call_graph how = requested(s, event);

	if (!is_sampled(event))
		return SEAM_CALL_GRAPH_NONE;
	if (how != SEAM_CALL_GRAPH_DEFAULT)
		return how;
	if (is_each_time(s->options, event) && !s->options->callchains)
		return SEAM_CALL_GRAPH_NONE;
	return may_copy(s, event) ? SEAM_CALL_GRAPH_AUTO : SEAM_CALL_GRAPH_FP;
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

/* The size of a copy for @event; 0: none fits. */
static uint32_t copy_bytes(const struct seam_session *s,
			   const struct seam_event *event, size_t ring_bytes)
{
	uint32_t bytes = s->options->stack_bytes;
	uint64_t hz = copies_hz(s);

	if (!bytes && call_graph_of(s, event) == SEAM_CALL_GRAPH_DWARF)
		bytes = SEAM_STACK_PLAN_DWARF_BYTES;
	if (!bytes)
		return seam_stack_plan_bytes(ring_bytes, hz);
	return hz <= seam_stack_plan_max_hz(ring_bytes, bytes) ? bytes : 0;
}

/*
 * @event's stacks cannot be copied.  -EINVAL where that was requested; else
 * -EAGAIN, and call chains are those of frame pointers from now on.
 */
static int refuse_copies(struct seam_session *s,
			 const struct seam_event *event, const char *why,
			 struct seam_err *err)
{
	if (requested(s, event) != SEAM_CALL_GRAPH_DEFAULT)
		return seam_err_set(err, -EINVAL, "%s", why);
	s->copies.by_frame_pointers = true;
	snprintf(s->copies.why, sizeof(s->copies.why), "%s", why);
	return -EAGAIN;
}

static int refuse_size(struct seam_session *s, const struct seam_event *event,
		       size_t ring_bytes, struct seam_err *err)
{
	uint32_t bytes = s->options->stack_bytes ? s->options->stack_bytes :
			 SEAM_STACK_PLAN_DWARF_BYTES;
	uint64_t hz = copies_hz(s);
	uint64_t max_hz = seam_stack_plan_max_hz(ring_bytes, bytes);
	char ring[SEAM_TEXT_SIZE], why[sizeof(s->copies.why)];

	seam_text_size(ring, ring_bytes);
	if (max_hz && hz > max_hz)
		snprintf(why, sizeof(why), "copies of %" PRIu32 " bytes of "
			 "stack at %" PRIu64 " Hz do not fit rings of %s: "
			 "-F %" PRIu64 " or larger rings (-m) do", bytes, hz,
			 ring, max_hz);
	else
		snprintf(why, sizeof(why), "copies of %" PRIu32 " bytes of "
			 "stack do not fit rings of %s (-m)", bytes, ring);
	return refuse_copies(s, event, why, err);
}

/* 0; or as refuse_copies(). */
static int check_copies(struct seam_session *s, const struct seam_event *event,
			size_t ring_bytes, struct seam_err *err)
{
	if (!is_copied(s, event))
		return 0;
	if (!seam_stack_plan_is_supported())
		return refuse_copies(s, event, "stacks are copied on x86-64 "
				     "only (--call-graph fp)", err);
	if (s->sources.left_out & SEAM_LEFT_OUT_STACK_COPIES)
		return refuse_copies(s, event, "this kernel does not copy "
				     "user stacks (--call-graph fp)", err);
	if (s->options->overwrite &&
	    call_graph_of(s, event) == SEAM_CALL_GRAPH_AUTO)
		return refuse_copies(s, event, "rings of --overwrite are not "
			"unwound (--call-graph fp or dwarf)", err);
	return copy_bytes(s, event, ring_bytes) ? 0 :
	       refuse_size(s, event, ring_bytes, err);
}

/* ---- contents ---- */

/* Whether samples have raw data. */
static bool has_raw(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_TRACEPOINT ||
	       (attr->type == PERF_TYPE_SOFTWARE &&
		attr->config == PERF_COUNT_SW_BPF_OUTPUT);
}

static void set_contents(const struct seam_session *s,
			 struct seam_event *event)
{
	const struct seam_record_options *o = s->options;
	struct perf_event_attr *attr = &event->attr;

	if (event->aux_kind || event->origin == SEAM_EVENT_OF_PROGRAM)
		return;		/* its contents are AUX data, or raw */
	seam_stack_plan_apply(event, call_graph_of(s, event),
			      copy_bytes(s, event,
					 seam_sampling_ring_bytes(s)));
	if (has_raw(attr))
		attr->sample_type |= PERF_SAMPLE_RAW;
	if (o->data_addresses)
		attr->sample_type |= PERF_SAMPLE_ADDR |
				     PERF_SAMPLE_DATA_SRC;
	if (o->cgroups)
		attr->sample_type |= PERF_SAMPLE_CGROUP;
}

/* Rates, and whether copies fit at them.  As check_copies(). */
static int set_rates(struct seam_session *s, struct seam_err *err)
{
	const struct seam_record_options *o = s->options;
	int r = 0;

	s->frequency_hz = allowed_hz(o->frequency_hz ? o->frequency_hz :
				     has_copies(s) ? SEAM_STACK_PLAN_HZ :
				     SEAM_RECORD_FREQUENCY_HZ);
	for (size_t i = 0; i < s->events.n; i++)
		set_rate(s, &s->events.items[i]);
	for (size_t i = 0; r == 0 && i < s->events.n; i++)
		r = check_copies(s, &s->events.items[i],
				 seam_sampling_ring_bytes(s), err);
	return r;
}

int seam_sampling_set(struct seam_session *s, struct seam_err *err)
{
	int r;

	do
		r = set_rates(s, err);
	while (r == -EAGAIN);
	s->copies.bytes = 0;
	for (size_t i = 0; r == 0 && i < s->events.n; i++) {
		struct seam_event *event = &s->events.items[i];

		set_contents(s, event);
		if (event->attr.sample_stack_user > s->copies.bytes)
			s->copies.bytes = event->attr.sample_stack_user;
	}
	return r;
}

/* ---- rings ---- */

/* seam_sources_map() reduces it to what the user may lock. */
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

size_t seam_sampling_ring_bytes(const struct seam_session *s)
{
	const struct seam_record_options *o = s->options;

	if (s->copies.ring_bytes && has_copies(s))
		return s->copies.ring_bytes;
	if (o->ring_auto)
		return largest_ring(MAX_AUTO_BYTES);
	if (o->ring_bytes)
		return o->ring_bytes;
	return has_copies(s) ? largest_ring(SEAM_STACK_PLAN_MAX_RING_BYTES) :
	       SEAM_RECORD_RING_BYTES;
}

/* Whether all copies have the size that suits the rings that were mapped. */
static bool copies_suit(const struct seam_session *s)
{
	for (size_t i = 0; i < s->events.n; i++) {
		const struct seam_event *event = &s->events.items[i];

		if (is_copied(s, event) && event->attr.sample_stack_user !=
		    copy_bytes(s, event, s->sources.ring_bytes))
			return false;
	}
	return true;
}

int seam_sampling_check(struct seam_session *s, struct seam_err *err)
{
	bool was_limited = s->sources.left_out & SEAM_LEFT_OUT_RING_SPACE;
	size_t wanted = s->options->ring_bytes ? s->options->ring_bytes :
			SEAM_RECORD_RING_BYTES;
	int r = 0;

	s->copies.was_limited |= was_limited;
	for (size_t i = 0; r == 0 && i < s->events.n; i++)
		r = check_copies(s, &s->events.items[i],
				 s->sources.ring_bytes, err);
	if (r == 0 && !copies_suit(s))
		r = -EAGAIN;
	s->copies.ring_bytes = s->sources.ring_bytes;
	/* larger rings than by default were tried for the copies */
	s->sources.left_out &= ~(unsigned int)SEAM_LEFT_OUT_RING_SPACE;
	if (s->options->ring_auto ? s->copies.was_limited :
	    s->sources.ring_bytes < wanted)
		s->sources.left_out |= SEAM_LEFT_OUT_RING_SPACE;
	if (s->copies.by_frame_pointers)
		s->sources.left_out |= SEAM_LEFT_OUT_STACK_COPIES;
	return r;
}

bool seam_sampling_keeps_copies(const struct seam_session *s)
{
	for (size_t i = 0; i < s->events.n; i++)
		if (call_graph_of(s, &s->events.items[i]) ==
		    SEAM_CALL_GRAPH_DWARF)
			return true;
	return false;
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
	char had[SEAM_TEXT_SIZE], wanted[SEAM_TEXT_SIZE];

	seam_text_size(had, s->sources.ring_bytes);
	if (o->ring_auto)
		seam_session_note(s, false, "rings of %s%s", had,
			s->sources.left_out & SEAM_LEFT_OUT_RING_SPACE ?
			", the most that may be locked (CAP_IPC_LOCK, "
			"'ulimit -l', kernel.perf_event_mlock_kb)" : "");
	else if (s->sources.left_out & SEAM_LEFT_OUT_RING_SPACE)
		seam_session_note(s, false, "rings of %s in place of "
			"%s: more needs CAP_IPC_LOCK, 'ulimit -l' or "
			"'sysctl kernel.perf_event_mlock_kb' (it is %ld)",
			had, seam_text_size(wanted, o->ring_bytes ?
					    o->ring_bytes :
					    SEAM_RECORD_RING_BYTES),
			seam_procfs_sysctl("perf_event_mlock_kb", 516));
}

static void report_copies(const struct seam_session *s,
			  const struct seam_event *event)
{
	const struct seam_record_options *o = s->options;
	const char *mode = o->per_thread ? "--per-thread" :
			   o->overwrite ? "--overwrite" : NULL;
	char ring[SEAM_TEXT_SIZE];

	if (is_copied(s, event))
		seam_session_note(s, true, "stacks of '%s' from copies of up "
			"to %" PRIu32 " bytes, by rings of %s", event->name,
			event->attr.sample_stack_user,
			seam_text_size(ring, s->sources.ring_bytes));
	else if (call_graph_of(s, event) != SEAM_CALL_GRAPH_FP)
		return;
	else if (mode && requested(s, event) == SEAM_CALL_GRAPH_DEFAULT)
		seam_session_note(s, false, "stacks of '%s' by frame pointers "
				  "only, because of %s", event->name, mode);
	else
		seam_session_note(s, true, "stacks of '%s' by frame pointers",
				  event->name);
}

void seam_sampling_report(const struct seam_session *s)
{
	report_frequencies(s);
	report_rings(s);
	if (s->copies.by_frame_pointers)
		seam_session_note(s, false, "stacks by frame pointers only: "
				  "%s", s->copies.why);
	for (size_t i = 0; i < s->events.n; i++)
		if (i != s->sources.sideband)
			report_copies(s, &s->events.items[i]);
}
