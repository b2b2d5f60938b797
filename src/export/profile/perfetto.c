/* SPDX-License-Identifier: MIT */
/*
 * perfetto.c - a trace of Perfetto's TracePackets; see exporter.h
 *
 * Packets belong to sequences.  The first describes processes and threads; one
 * for each event has its samples, because the event is a default of its
 * sequence; one for each thread has its calls and waits, because the track is.
 * Names and stacks are sent once a sequence, before what refers to them, under
 * the profile's ids.  A reader sorts packets by time, so they are written in
 * the order in which they are read.
 *
 * Source: github.com/google/perfetto, protos/perfetto/trace, 2026-08.
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/profile/parts.h"
#include "export/profile/proto_file.h"

enum {
	LEVEL = 2,			/* of compression */
	N_CPUS = 1 << 16,
	CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3,
	STATE_CLEARED = 1, NEEDS_STATE = 2,
	SLICE_BEGIN = 1, SLICE_END, INSTANT,
	CPU_KERNEL = 1, CPU_USER,
	SW_CPU_CLOCK = 1,
};

/* A browser's memory is the limit: the trace grows several times in it. */
#define MAX_BYTES (UINT64_C(4) << 30)

/* Field numbers. */
enum {
	TRACE_PACKET = 1,
	PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10, PACKET_TRACK_EVENT,
	PACKET_INTERNED_DATA, PACKET_SEQUENCE_FLAGS,
	PACKET_TIMESTAMP_CLOCK_ID = 58, PACKET_DEFAULTS,
	PACKET_TRACK_DESCRIPTOR, PACKET_PERF_SAMPLE = 66,
	SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY, CLOCK_ID = 1, CLOCK_TIMESTAMP,
	DEFAULTS_TRACK_EVENT = 11, DEFAULTS_PERF_SAMPLE,
	EVENT_DEFAULTS_TRACK_UUID = 11,
	SAMPLE_DEFAULTS_TIMEBASE = 1,
	TIMEBASE_PERIOD = 1, TIMEBASE_COUNTER = 4, TIMEBASE_NAME = 10,
	TRACK_UUID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD,
	TRACK_PARENT_UUID,
	PROCESS_PID = 1, PROCESS_NAME = 6, PROCESS_START_NS,
	THREAD_PID = 1, THREAD_TID, THREAD_NAME = 5,
	EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_NAME_IID,
	EVENT_TRACK_UUID, EVENT_NAME = 23, EVENT_CALLSTACK_IID = 56,
	ANNOTATION_UINT = 3, ANNOTATION_STRING = 6, ANNOTATION_NAME = 10,
	INTERNED_EVENT_NAME = 2, INTERNED_FUNCTION_NAME = 5, INTERNED_FRAME,
	INTERNED_CALLSTACK, INTERNED_BUILD_ID = 16, INTERNED_MAPPING_PATH,
	INTERNED_SOURCE_PATH, INTERNED_MAPPING,
	STRING_IID = 1, STRING_TEXT,
	MAPPING_IID = 1, MAPPING_BUILD_ID, MAPPING_PATH = 7,
	FRAME_IID = 1, FRAME_FUNCTION_NAME, FRAME_MAPPING, FRAME_REL_PC,
	FRAME_SOURCE_PATH, FRAME_LINE, FRAME_KIND, FRAME_KIND_TEXT,
	CALLSTACK_IID = 1, CALLSTACK_FRAME,
	SAMPLE_CPU = 1, SAMPLE_PID, SAMPLE_TID, SAMPLE_CALLSTACK_IID,
	SAMPLE_CPU_MODE, SAMPLE_TIMEBASE_COUNT,
	SAMPLE_RECORDS_LOST = 17,
};

/* Frame.Kind, by layer. */
static const uint8_t kinds[SEAM_N_LAYERS] = {
	[SEAM_LAYER_NATIVE] = 1, [SEAM_LAYER_KERNEL] = 2,
	[SEAM_LAYER_GUEST] = 3, [SEAM_LAYER_JIT] = 4,
};

/* In which sequence each was sent last: by id of the profile. */
struct perfetto_sent {
	uint32_t *stacks, *frames, *functions, *event_names, *modules, *files;
};

struct perfetto_writer {
	struct seam_parts parts;
	const struct seam_profile *profile;
	const struct seam_stack *stacks;
	struct seam_proto_file file;
	struct perfetto_sent sent;
	SEAM_ARRAY(uint32_t) path;	/* of frames, leaf first */
	struct seam_open_calls open;
	uint32_t sequence;		/* from 1 on */
	uint64_t *cpu_counts;		/* of the event, by CPU */
	bool has_waits;			/* the thread's track of waits exists */
	uint64_t n_unmatched;		/* ends of calls */
};

static struct seam_proto *proto(struct perfetto_writer *w)
{
	return &w->file.proto;
}

/* -- packets -------------------------------------------------------------- */

static size_t open_packet(struct perfetto_writer *w, unsigned int flags)
{
	size_t opened = seam_proto_open(proto(w), TRACE_PACKET);

	seam_proto_u64(proto(w), PACKET_SEQUENCE_ID, w->sequence);
	seam_proto_u64(proto(w), PACKET_SEQUENCE_FLAGS, flags);
	return opened;
}

static size_t open_timed(struct perfetto_writer *w, uint64_t time_ns)
{
	size_t opened = open_packet(w, NEEDS_STATE);

	seam_proto_u64(proto(w), PACKET_TIMESTAMP, time_ns);
	return opened;
}

/* The defaults of a sequence up to those of its kind; both are to be closed. */
static size_t begin_sequence(struct perfetto_writer *w, size_t *defaults)
{
	size_t opened;

	w->sequence++;
	opened = open_packet(w, STATE_CLEARED);
	*defaults = seam_proto_open(proto(w), PACKET_DEFAULTS);
	if (!w->profile->has_other_clock)
		seam_proto_u64(proto(w), PACKET_TIMESTAMP_CLOCK_ID,
			       CLOCK_MONOTONIC_ID);
	return opened;
}

/* -- names and stacks ----------------------------------------------------- */

static bool is_first(const struct perfetto_writer *w, uint32_t *sent)
{
	bool is_new = *sent != w->sequence;

	*sent = w->sequence;
	return is_new;
}

static void intern_text(struct perfetto_writer *w, unsigned int field,
			uint64_t iid, const char *text)
{
	size_t opened = seam_proto_open(proto(w), field);

	seam_proto_u64(proto(w), STRING_IID, iid);
	seam_proto_text(proto(w), STRING_TEXT, text);
	seam_proto_close(proto(w), opened);
}

static void intern_module(struct perfetto_writer *w, uint32_t id)
{
	const struct seam_profile_module *module =
		&w->profile->modules.items[id];
	const char *path = seam_profile_path(w->profile, id);
	size_t opened;

	if (!is_first(w, &w->sent.modules[id]))
		return;
	intern_text(w, INTERNED_MAPPING_PATH, id + 1,
		    *path ? path : "[unknown]");
	if (module->build_id_size) {
		opened = seam_proto_open(proto(w), INTERNED_BUILD_ID);
		seam_proto_u64(proto(w), STRING_IID, id + 1);
		seam_proto_bytes(proto(w), STRING_TEXT, (struct seam_bytes) {
				 module->build_id, module->build_id_size });
		seam_proto_close(proto(w), opened);
	}
	opened = seam_proto_open(proto(w), INTERNED_MAPPING);
	seam_proto_u64(proto(w), MAPPING_IID, id + 1);
	if (module->build_id_size)
		seam_proto_u64(proto(w), MAPPING_BUILD_ID, id + 1);
	seam_proto_u64(proto(w), MAPPING_PATH, id + 1);
	seam_proto_close(proto(w), opened);
}

static void put_frame(struct perfetto_writer *w, uint32_t id)
{
	const struct seam_frame *frame = &w->profile->frames.items[id];
	enum seam_layer layer = (enum seam_layer)
		w->profile->functions.items[frame->function].layer;
	struct seam_proto *p = proto(w);
	size_t opened = seam_proto_open(p, INTERNED_FRAME);

	seam_proto_u64(p, FRAME_IID, id + 1);
	seam_proto_u64(p, FRAME_FUNCTION_NAME, frame->function + 1);
	seam_proto_u64(p, FRAME_MAPPING, frame->module + 1);
	seam_proto_u64(p, FRAME_REL_PC, frame->addr);
	if (frame->file)
		seam_proto_u64(p, FRAME_SOURCE_PATH, frame->file + 1);
	if (frame->line)
		seam_proto_u64(p, FRAME_LINE, frame->line);
	/* one of both: an inlined function is native */
	if (frame->is_inlined && layer == SEAM_LAYER_NATIVE)
		seam_proto_text(p, FRAME_KIND_TEXT, "inlined");
	else
		seam_proto_u64(p, FRAME_KIND, kinds[layer]);
	seam_proto_close(p, opened);
}

static void intern_frame(struct perfetto_writer *w, uint32_t id)
{
	const struct seam_frame *frame = &w->profile->frames.items[id];

	if (!is_first(w, &w->sent.frames[id]))
		return;
	if (is_first(w, &w->sent.functions[frame->function]))
		intern_text(w, INTERNED_FUNCTION_NAME, frame->function + 1,
			    seam_parts_function(&w->parts, frame->function));
	if (frame->file && is_first(w, &w->sent.files[frame->file]))
		intern_text(w, INTERNED_SOURCE_PATH, frame->file + 1,
			    seam_profile_text(w->profile, frame->file));
	intern_module(w, frame->module);
	put_frame(w, id);
}

/* In an open packet: everything that makes @stack known to the sequence. */
static void intern_stack(struct perfetto_writer *w, uint32_t stack)
{
	size_t data, opened;

	if (!stack || !is_first(w, &w->sent.stacks[stack]))
		return;
	data = seam_proto_open(proto(w), PACKET_INTERNED_DATA);
	w->path.n = 0;
	for (uint32_t s = stack; s; s = w->stacks[s].parent) {
		intern_frame(w, w->stacks[s].frame);
		if (!SEAM_ARRAY_ADD(&w->path, w->stacks[s].frame))
			proto(w)->is_failed = true;
	}
	opened = seam_proto_open(proto(w), INTERNED_CALLSTACK);
	seam_proto_u64(proto(w), CALLSTACK_IID, stack);
	for (size_t i = w->path.n; i-- > 0;)
		seam_proto_u64(proto(w), CALLSTACK_FRAME,
			       w->path.items[i] + 1);
	seam_proto_close(proto(w), opened);
	seam_proto_close(proto(w), data);
}

/* -- processes and threads ------------------------------------------------ */

static uint64_t process_uuid(uint32_t process)
{
	return 1 + (uint64_t)process;
}

static uint64_t thread_uuid(const struct perfetto_writer *w, uint32_t thread)
{
	return 1 + w->profile->processes.n + thread;
}

static uint64_t waits_uuid(const struct perfetto_writer *w, uint32_t thread)
{
	return thread_uuid(w, thread) + w->profile->threads.n;
}

static uint64_t losses_uuid(const struct perfetto_writer *w)
{
	return waits_uuid(w, (uint32_t)w->profile->threads.n);
}

static void put_process(struct perfetto_writer *w, uint32_t id)
{
	const struct seam_process *process = &w->profile->processes.items[id];
	struct seam_proto *p = proto(w);
	size_t packet = open_packet(w, NEEDS_STATE);
	size_t track = seam_proto_open(p, PACKET_TRACK_DESCRIPTOR), opened;

	seam_proto_u64(p, TRACK_UUID, process_uuid(id));
	opened = seam_proto_open(p, TRACK_PROCESS);
	seam_proto_u64(p, PROCESS_PID, (uint32_t)process->pid);
	seam_proto_text(p, PROCESS_NAME, seam_profile_text(w->profile,
							   process->name));
	if (process->start_ns)
		seam_proto_u64(p, PROCESS_START_NS, process->start_ns);
	seam_proto_close(p, opened);
	seam_proto_close(p, track);
	seam_proto_close(p, packet);
}

static void put_thread(struct perfetto_writer *w, uint32_t id)
{
	const struct seam_thread *thread = &w->profile->threads.items[id];
	const struct seam_process *process =
		&w->profile->processes.items[thread->process];
	struct seam_proto *p = proto(w);
	size_t packet = open_packet(w, NEEDS_STATE);
	size_t track = seam_proto_open(p, PACKET_TRACK_DESCRIPTOR), opened;

	seam_proto_u64(p, TRACK_UUID, thread_uuid(w, id));
	seam_proto_u64(p, TRACK_PARENT_UUID, process_uuid(thread->process));
	opened = seam_proto_open(p, TRACK_THREAD);
	seam_proto_u64(p, THREAD_PID, (uint32_t)process->pid);
	seam_proto_u64(p, THREAD_TID, (uint32_t)thread->tid);
	seam_proto_text(p, THREAD_NAME, seam_profile_text(w->profile,
							  thread->name));
	seam_proto_close(p, opened);
	seam_proto_close(p, track);
	seam_proto_close(p, packet);
}

/* A track that is no thread's own; @parent: 0, of none. */
static void put_track(struct perfetto_writer *w, uint64_t uuid, uint64_t parent,
		      const char *name)
{
	size_t packet = open_packet(w, NEEDS_STATE);
	size_t track = seam_proto_open(proto(w), PACKET_TRACK_DESCRIPTOR);

	seam_proto_u64(proto(w), TRACK_UUID, uuid);
	if (parent)
		seam_proto_u64(proto(w), TRACK_PARENT_UUID, parent);
	seam_proto_text(proto(w), TRACK_NAME, name);
	seam_proto_close(proto(w), track);
	seam_proto_close(proto(w), packet);
}

static int put_threads(struct perfetto_writer *w)
{
	bool *has = calloc(w->profile->processes.n + 1, sizeof(*has));
	int r = has ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < w->profile->threads.n && !r; i++) {
		uint32_t process = w->profile->threads.items[i].process;

		if (!w->parts.threads[i])
			continue;
		if (!has[process])
			put_process(w, process);
		has[process] = true;
		put_thread(w, i);
		r = seam_proto_file_next(&w->file);
	}
	free(has);
	return r;
}

/* -- clocks and losses ---------------------------------------------------- */

static void put_clock(struct perfetto_writer *w, uint64_t id, uint64_t time_ns)
{
	size_t opened = seam_proto_open(proto(w), SNAPSHOT_CLOCK);

	seam_proto_u64(proto(w), CLOCK_ID, id);
	seam_proto_u64(proto(w), CLOCK_TIMESTAMP, time_ns);
	seam_proto_close(proto(w), opened);
}

/* Which clock the times are of, and the wall time at their start. */
static void put_clocks(struct perfetto_writer *w)
{
	const struct seam_profile *p = w->profile;
	size_t packet, opened;

	if (p->has_other_clock)
		return;
	packet = open_packet(w, NEEDS_STATE);
	opened = seam_proto_open(proto(w), PACKET_CLOCK_SNAPSHOT);
	put_clock(w, CLOCK_MONOTONIC_ID, p->start_ns);
	if (p->utc_ns)
		put_clock(w, CLOCK_REALTIME_ID,
			  p->start_ns + (uint64_t)p->utc_ns);
	seam_proto_u64(proto(w), SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_ID);
	seam_proto_close(proto(w), opened);
	seam_proto_close(proto(w), packet);
}

/* A track event up to its name; both are to be closed.  @track: 0, default. */
static size_t open_event(struct perfetto_writer *w, uint64_t time_ns,
			 unsigned int type, uint64_t track, size_t *event)
{
	size_t packet = open_timed(w, time_ns);

	*event = seam_proto_open(proto(w), PACKET_TRACK_EVENT);
	seam_proto_u64(proto(w), EVENT_TYPE, type);
	if (track)
		seam_proto_u64(proto(w), EVENT_TRACK_UUID, track);
	return packet;
}

static void close_event(struct perfetto_writer *w, size_t packet, size_t event)
{
	seam_proto_close(proto(w), event);
	seam_proto_close(proto(w), packet);
}

static void put_annotation(struct perfetto_writer *w, const char *name,
			   uint64_t value, const char *text)
{
	size_t opened = seam_proto_open(proto(w), EVENT_ANNOTATION);

	seam_proto_text(proto(w), ANNOTATION_NAME, name);
	if (text)
		seam_proto_text(proto(w), ANNOTATION_STRING, text);
	else
		seam_proto_u64(proto(w), ANNOTATION_UINT, value);
	seam_proto_close(proto(w), opened);
}

/* Losses of the whole recording, at its start. */
static void put_losses(struct perfetto_writer *w)
{
	const struct seam_profile *p = w->profile;
	char text[SEAM_LOSS_TEXT];
	size_t packet, event;

	if (p->losses.n)
		put_track(w, losses_uuid(w), 0, "losses");
	for (size_t i = 0; i < p->losses.n; i++) {
		packet = open_event(w, p->start_ns, INSTANT, losses_uuid(w),
				    &event);
		seam_proto_text(proto(w), EVENT_NAME, "lost");
		put_annotation(w, "what", 0, seam_profile_loss_text(
				p, &p->losses.items[i], text));
		close_event(w, packet, event);
	}
}

static int put_head(struct perfetto_writer *w)
{
	size_t defaults, packet = begin_sequence(w, &defaults);

	seam_proto_close(proto(w), defaults);
	seam_proto_close(proto(w), packet);
	put_clocks(w);
	put_losses(w);
	return put_threads(w);
}

/* -- samples -------------------------------------------------------------- */

static void begin_samples(struct perfetto_writer *w,
			  const struct seam_profile_event *event)
{
	const struct seam_samples *samples = &w->profile->samples;
	size_t defaults, packet = begin_sequence(w, &defaults), inner, timebase;

	inner = seam_proto_open(proto(w), DEFAULTS_PERF_SAMPLE);
	timebase = seam_proto_open(proto(w), SAMPLE_DEFAULTS_TIMEBASE);
	if (!samples->weight && samples->same_weight)
		seam_proto_u64(proto(w), TIMEBASE_PERIOD,
			       samples->same_weight);
	/* from which the viewer has the unit; the name has precedence */
	if (event->unit == SEAM_UNIT_NS)
		seam_proto_u64(proto(w), TIMEBASE_COUNTER, SW_CPU_CLOCK);
	seam_proto_text(proto(w), TIMEBASE_NAME,
			seam_profile_text(w->profile, event->name));
	seam_proto_close(proto(w), timebase);
	seam_proto_close(proto(w), inner);
	seam_proto_close(proto(w), defaults);
	seam_proto_close(proto(w), packet);
	memset(w->cpu_counts, 0, N_CPUS * sizeof(*w->cpu_counts));
}

/* A sample has no weight: the event's count, by CPU, goes on by it. */
static int put_sample(struct perfetto_writer *w, size_t i)
{
	const struct seam_samples *samples = &w->profile->samples;
	const struct seam_thread *thread =
		&w->profile->threads.items[samples->thread[i]];
	uint32_t stack = seam_selected_stack(w->parts.selected, i);
	uint16_t cpu = samples->cpu[i];
	size_t packet = open_timed(w, samples->time_ns[i]), opened;

	intern_stack(w, stack);
	w->cpu_counts[cpu] += seam_samples_weight(samples, i);
	opened = seam_proto_open(proto(w), PACKET_PERF_SAMPLE);
	if (cpu != UINT16_MAX)
		seam_proto_u64(proto(w), SAMPLE_CPU, cpu);
	seam_proto_u64(proto(w), SAMPLE_PID, (uint32_t)
		       w->profile->processes.items[thread->process].pid);
	seam_proto_u64(proto(w), SAMPLE_TID, (uint32_t)thread->tid);
	if (stack) {
		seam_proto_u64(proto(w), SAMPLE_CALLSTACK_IID, stack);
		seam_proto_u64(proto(w), SAMPLE_CPU_MODE,
			       w->profile->functions.items[
					w->profile->frames.items[
						w->stacks[stack].frame]
					.function].layer == SEAM_LAYER_KERNEL ?
			       CPU_KERNEL : CPU_USER);
	}
	seam_proto_u64(proto(w), SAMPLE_TIMEBASE_COUNT, w->cpu_counts[cpu]);
	seam_proto_close(proto(w), opened);
	seam_proto_close(proto(w), packet);
	return seam_proto_file_next(&w->file);
}

/* Where a thread lost records of @event; of no event: in the first sequence. */
static void put_marks(struct perfetto_writer *w, uint32_t event, bool is_main)
{
	const struct seam_profile *p = w->profile;

	for (size_t i = 0; i < p->marks.n; i++) {
		const struct seam_profile_mark *mark = &p->marks.items[i];
		const struct seam_instant at = {
			.time_ns = mark->time_ns, .thread = mark->thread,
			.event = mark->event,
		};
		size_t packet, opened;

		if (mark->kind != SEAM_ITEM_LOSS ||
		    (mark->event == SEAM_NONE ? !is_main :
		     mark->event != event) ||
		    !seam_selected_has_loss(w->parts.selected, &at))
			continue;
		packet = open_timed(w, mark->time_ns);
		opened = seam_proto_open(proto(w), PACKET_PERF_SAMPLE);
		/* it is no sample of a thread, and may have no pid */
		seam_proto_u64(proto(w), SAMPLE_RECORDS_LOST, mark->value);
		seam_proto_close(proto(w), opened);
		seam_proto_close(proto(w), packet);
	}
}

static int put_samples(struct perfetto_writer *w, size_t event)
{
	const struct seam_samples *samples = &w->profile->samples;
	uint32_t id = w->parts.events[event];
	int r = 0;

	begin_samples(w, &w->profile->events.items[id]);
	put_marks(w, id, event == 0);
	for (size_t i = 0; i < samples->n && !r; i++)
		if (samples->event[i] == id &&
		    seam_selected_has(w->parts.selected, i))
			r = put_sample(w, i);
	return r;
}

/* -- calls and waits ------------------------------------------------------ */

static void begin_thread(struct perfetto_writer *w, uint32_t thread)
{
	size_t defaults, packet = begin_sequence(w, &defaults), inner;

	inner = seam_proto_open(proto(w), DEFAULTS_TRACK_EVENT);
	seam_proto_u64(proto(w), EVENT_DEFAULTS_TRACK_UUID,
		       thread_uuid(w, thread));
	seam_proto_close(proto(w), inner);
	seam_proto_close(proto(w), defaults);
	seam_proto_close(proto(w), packet);
	w->has_waits = false;
	w->open.n = 0;
}

/* Of a wait: why, and who ended it; of a sum of short ones: how many. */
static void put_wait_facts(struct perfetto_writer *w, size_t i)
{
	const struct seam_profile *p = w->profile;
	uint32_t reason = seam_samples_wait(&p->samples, i);
	uint32_t waker = seam_samples_waker(&p->samples, i);

	if (reason)
		put_annotation(w, "reason", 0, seam_profile_text(p, reason));
	if (waker)
		put_annotation(w, "waker", 0, seam_profile_text(p, waker));
	if (seam_parts_is_interval(&w->parts, i))
		return;
	put_annotation(w, "waits", seam_samples_count(&p->samples, i), NULL);
	put_annotation(w, "ns", seam_samples_weight(&p->samples, i), NULL);
}

/* A slice; the sum of short waits is no interval, but an instant. */
static void put_wait(struct perfetto_writer *w, uint32_t thread, size_t sample)
{
	const struct seam_profile *p = w->profile;
	uint64_t from = p->samples.time_ns[sample], track, to;
	uint32_t stack = seam_selected_stack(w->parts.selected, sample);
	bool is_slice = seam_parts_is_interval(&w->parts, sample);
	size_t packet, event;

	track = waits_uuid(w, thread);
	if (!w->has_waits)
		put_track(w, track, thread_uuid(w, thread), "waits");
	w->has_waits = true;
	packet = open_timed(w, from);
	intern_stack(w, stack);
	event = seam_proto_open(proto(w), PACKET_TRACK_EVENT);
	seam_proto_u64(proto(w), EVENT_TYPE, is_slice ? SLICE_BEGIN : INSTANT);
	seam_proto_u64(proto(w), EVENT_TRACK_UUID, track);
	seam_proto_text(proto(w), EVENT_NAME, seam_profile_text(p,
			p->events.items[p->samples.event[sample]].name));
	if (stack)
		seam_proto_u64(proto(w), EVENT_CALLSTACK_IID, stack);
	put_wait_facts(w, sample);
	close_event(w, packet, event);
	if (!is_slice)
		return;
	if (__builtin_add_overflow(from, seam_samples_weight(&p->samples,
							     sample), &to))
		to = UINT64_MAX;
	packet = open_event(w, to, SLICE_END, track, &event);
	close_event(w, packet, event);
}

static void begin_call(struct perfetto_writer *w, const struct seam_item *item,
		       size_t *packet, size_t *event)
{
	uint64_t iid = item->function == SEAM_NONE ?
		       w->profile->functions.n + 1 :
		       (uint64_t)item->function + 1;
	size_t data;

	*packet = open_timed(w, item->time_ns);
	if (is_first(w, &w->sent.event_names[iid - 1])) {
		data = seam_proto_open(proto(w), PACKET_INTERNED_DATA);
		intern_text(w, INTERNED_EVENT_NAME, iid,
			    seam_parts_function(&w->parts, item->function));
		seam_proto_close(proto(w), data);
	}
	*event = seam_proto_open(proto(w), PACKET_TRACK_EVENT);
	seam_proto_u64(proto(w), EVENT_TYPE, SLICE_BEGIN);
	seam_proto_u64(proto(w), EVENT_NAME_IID, iid);
}

static void put_instant(struct perfetto_writer *w,
			const struct seam_item *item)
{
	char name[SEAM_INSTANT_NAME], data[SEAM_INSTANT_DATA];
	size_t event, packet = open_event(w, item->time_ns, INSTANT, 0, &event);

	seam_proto_text(proto(w), EVENT_NAME, seam_instant_name(item, name));
	if (item->kind == SEAM_ITEM_LOSS)
		put_annotation(w, "records", item->value, NULL);
	else
		put_annotation(w, "data", 0,
			       seam_instant_data(item->data, data));
	close_event(w, packet, event);
}

/* A begin is open until its arguments are known: until another item comes. */
struct open_begin {
	bool is_open;
	size_t packet, event;
	unsigned int n_arguments;
};

static int end_begin(struct perfetto_writer *w, struct open_begin *begin)
{
	if (begin->is_open)
		close_event(w, begin->packet, begin->event);
	begin->is_open = false;
	begin->n_arguments = 0;
	return seam_proto_file_next(&w->file);
}

static void put_end(struct perfetto_writer *w, uint64_t time_ns)
{
	size_t event, packet = open_event(w, time_ns, SLICE_END, 0, &event);

	close_event(w, packet, event);
}

static int put_item(struct perfetto_writer *w, uint32_t thread,
		    const struct seam_item *item, struct open_begin *begin)
{
	const struct seam_profile *p = w->profile;
	char name[16];
	int r;

	switch (item->kind) {
	case SEAM_ITEM_BEGIN:
		begin_call(w, item, &begin->packet, &begin->event);
		begin->is_open = true;
		r = seam_open_calls_take(&w->open, item);
		return r < 0 ? r : 0;
	case SEAM_ITEM_ARGUMENT:
		snprintf(name, sizeof(name), "%u", begin->n_arguments++);
		put_annotation(w, name, item->value, NULL);
		break;
	case SEAM_ITEM_END:
		r = seam_open_calls_take(&w->open, item);
		if (r > 0)
			put_end(w, item->time_ns);
		w->n_unmatched += r == 0;
		return r < 0 ? r : 0;
	case SEAM_ITEM_LOSS:
		/* the others are marks, with their event */
		if (!item->data.size)
			break;
		/* fall through */
	case SEAM_ITEM_CUSTOM:
	case SEAM_ITEM_TYPED:
		put_instant(w, item);
		break;
	case SEAM_ITEM_SAMPLE:
		if (p->events.items[p->samples.event[item->sample]].is_wait)
			put_wait(w, thread, item->sample);
		break;
	}
	return 0;
}

static int put_thread_items(struct perfetto_writer *w, uint32_t thread)
{
	struct open_begin begin = { 0 };
	struct seam_timeline timeline;
	struct seam_item item;
	uint64_t last_ns = 0;
	int r, next = 0;

	begin_thread(w, thread);
	seam_timeline_open(&timeline, &w->parts.timelines, w->parts.selected,
			   thread);
	while ((r = seam_timeline_next(&timeline, &item)) > 0 && !next &&
	       !ferror(w->file.out)) {
		/* calls without a begin have no arguments either */
		if (item.kind == SEAM_ITEM_ARGUMENT && !begin.is_open)
			continue;
		if (item.kind != SEAM_ITEM_ARGUMENT)
			next = end_begin(w, &begin);
		if (!next)
			next = put_item(w, thread, &item, &begin);
		last_ns = item.time_ns;
	}
	seam_timeline_close(&timeline);
	r = r < 0 ? r : next;
	if (!r)
		r = end_begin(w, &begin);
	for (; w->open.n && !r; w->open.n--)
		put_end(w, last_ns);
	return r;
}

/* -- the file ------------------------------------------------------------- */

static bool has_items(const struct perfetto_writer *w)
{
	bool has = w->profile->tracks.n > 0;

	for (size_t i = 0; i < w->parts.n_events; i++)
		has |= seam_parts_event(&w->parts, i)->is_wait;
	return has;
}

static int write_all(struct perfetto_writer *w)
{
	int r = put_head(w);

	for (size_t i = 0; i < w->parts.n_events && !r; i++)
		if (!seam_parts_event(&w->parts, i)->is_wait &&
		    !seam_parts_event(&w->parts, i)->is_measured)
			r = put_samples(w, i);
	if (!has_items(w))
		return r;
	for (uint32_t i = 0; i < w->profile->threads.n && !r; i++)
		if (w->parts.threads[i])
			r = put_thread_items(w, i);
	return r;
}

static void say_left_out(const struct perfetto_writer *w,
			 const struct seam_export *export)
{
	char unmatched[64] = "";
	size_t n_ended = 0;

	for (size_t i = 0; i < w->profile->threads.n; i++)
		n_ended += w->parts.threads[i] &&
			   w->profile->threads.items[i].end_ns != UINT64_MAX;
	if (!export->say || !(n_ended || w->n_unmatched))
		return;
	if (w->n_unmatched)
		snprintf(unmatched, sizeof(unmatched), ", %" PRIu64 " ends of "
			 "calls without a begin", w->n_unmatched);
	export->say("left out: the ends of %zu of %zu threads%s", n_ended,
		    seam_parts_n_threads(&w->parts), unmatched);
}

static bool make_tables(struct perfetto_writer *w)
{
	const struct seam_profile *p = w->profile;
	struct perfetto_sent *sent = &w->sent;

	sent->stacks = calloc(w->parts.selected->n_stacks + 1,
			      sizeof(uint32_t));
	sent->frames = calloc(p->frames.n + 1, sizeof(uint32_t));
	sent->functions = calloc(p->functions.n + 1, sizeof(uint32_t));
	sent->event_names = calloc(p->functions.n + 1, sizeof(uint32_t));
	sent->modules = calloc(p->modules.n + 1, sizeof(uint32_t));
	sent->files = calloc(p->strings.texts.n + 1, sizeof(uint32_t));
	w->cpu_counts = calloc(N_CPUS, sizeof(*w->cpu_counts));
	return sent->stacks && sent->frames && sent->functions &&
	       sent->event_names && sent->modules && sent->files &&
	       w->cpu_counts;
}

int seam_write_perfetto(const struct seam_export *export, struct seam_err *err)
{
	struct perfetto_writer w = {
		.profile = export->selected->profile,
		.stacks = export->selected->stacks,
	};
	int r = seam_parts_init(&w.parts, export->selected, err);
	int opened = seam_proto_file_open(&w.file, export->out, LEVEL,
					  MAX_BYTES);

	if (!r)
		r = seam_proto_file_close(&w.file, opened || !make_tables(&w) ?
					  -ENOMEM : write_all(&w), err);
	else
		seam_proto_file_close(&w.file, r, NULL);
	if (!r)
		say_left_out(&w, export);
	seam_parts_fini(&w.parts);
	free(w.sent.stacks);
	free(w.sent.frames);
	free(w.sent.functions);
	free(w.sent.event_names);
	free(w.sent.modules);
	free(w.sent.files);
	free(w.cpu_counts);
	free(w.path.items);
	free(w.open.items);
	return r;
}
