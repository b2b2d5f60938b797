/* SPDX-License-Identifier: MIT */
/* perf_scan.c - records to columns, on all cores; see perf_scan.h */
#include "model/perf/perf_scan.h"

#include <assert.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/progress.h"
#include "base/radix_sort.h"
#include "base/workers.h"
#include "wire/perf/perf_sample.h"
#include "wire/perf/perf_stream.h"
#include "wire/perf/unwound.h"
#include "wire/perf/wait_events.h"

/* -- records of VMs ----------------------------------------------------- */

/*
 * Two events hold what a sampler in a traced program wrote
 * (doc/formats/guest.md): samples of seam:guest become samples whose
 * callchain has the guest's frames, those of seam:guest_symtab are collected
 * and are no samples.
 */

enum seam_guest_event
seam_scan_guest_event(const struct seam_perf_event *event)
{
	const struct seam_perf_attr *attr = &event->attr;

	if (attr->type != PERF_TYPE_SOFTWARE ||
	    attr->config != PERF_COUNT_SW_BPF_OUTPUT ||
	    !(attr->sample_type & PERF_SAMPLE_RAW))
		return SEAM_GUEST_EVENT_NONE;
	return seam_guest_event_of(event->name);
}

/*
 * Merge the guest record of @sample into @core's chain, words of this machine's
 * order; the result is valid until the next call.  A record that breaks the
 * format, or does not fit the chain, is counted, and the chain stays as it is.
 * *@vmstate is set in each case.  0 or -ENOMEM.
 */
static int merge_guest(struct seam_scan_guest *guest,
		       const struct seam_perf_sample *sample,
		       struct seam_perf_core *core, uint8_t *vmstate)
{
	struct seam_guest_reader reader;
	int r = seam_guest_read_sample(sample->raw, &reader, NULL);

	*vmstate = r ? SEAM_VMSTATE_NONE : reader.head.vmstate;
	if (r == 0 && core->n_chain)
		r = seam_guest_merge(reader, (const uint64_t *)(const void *)
				     core->chain, core->n_chain,
				     &guest->words);
	if (r == -ENOMEM)
		return r;
	if (r) {
		guest->counts.n_bad++;
		return 0;
	}
	seam_guest_counts_add(&guest->counts, &reader.head);
	if (core->n_chain) {
		core->chain = (const uint8_t *)guest->words.items;
		core->n_chain = guest->words.n;
		/* the leaf may be a guest's frame, which has no address */
		core->ip = 0;
	}
	return 0;
}

/* -- counters ----------------------------------------------------------- */

/*
 * Samples with PERF_SAMPLE_READ have the values of counters, by id; what a
 * sample counts is the difference to the one before in time, which may come
 * later in the file: a recorder that unwinds stacks writes a sample when its
 * stack is known.  So all values are collected first; each counter began at 0,
 * and values of equal time are in the order of the file.
 */
static int make_increases(struct seam_scan_counters *counters)
{
	struct seam_scan_counter *all = counters->items.items;
	int r = SEAM_RADIX_SORT(&counters->items, time_ns);

	/* stable: the values of one counter stay in the order of time */
	if (r == 0)
		r = SEAM_RADIX_SORT(&counters->items, id);
	for (size_t i = counters->items.n; r == 0 && i-- > 1;)
		if (all[i].id == all[i - 1].id)
			all[i].value -= all[i - 1].value;
	return r ? r : SEAM_RADIX_SORT(&counters->items, order);
}

/* A part smaller than this is not worth a thread. */
#define MIN_PART_BYTES ((uint64_t)4 << 20)

/* How much of the file has its pages mapped at a time. */
#define WINDOW_BYTES ((uint64_t)2 << 20)

/* A guess needs this many records in a row that look valid. */
#define MIN_VALID_RECORDS 32

/* -- one sample --------------------------------------------------------- */

/* The marker for a chain that does not begin with one. */
static uint64_t marker_of(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
	case PERF_RECORD_MISC_HYPERVISOR:
		return (uint64_t)PERF_CONTEXT_KERNEL;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return (uint64_t)PERF_CONTEXT_GUEST_KERNEL;
	case PERF_RECORD_MISC_GUEST_USER:
		return (uint64_t)PERF_CONTEXT_GUEST_USER;
	}
	return (uint64_t)PERF_CONTEXT_USER;
}

static uint64_t word(const struct seam_perf_core *core, size_t i)
{
	uint64_t value = 0;

	if (i < core->n_chain)
		memcpy(&value, core->chain + 8 * i, sizeof(value));
	return value;
}

/* Make room for @by words before the @n. */
static size_t shift(uint64_t *words, size_t n, size_t by)
{
	memmove(words + by, words, n * sizeof(*words));
	return n + by;
}

/* Leave only the context of @marker, or that marker alone. */
static size_t cut_to(uint64_t *words, size_t n, uint64_t marker)
{
	size_t at = 0;

	while (at < n && words[at] != marker)
		at++;
	memmove(words, words + at, (n - at) * sizeof(*words));
	words[0] = marker;
	return at < n ? n - at : 1;
}

/*
 * Make @ip, an address of the context @marker, the leaf of a chain of @n > 0
 * words that begins with a marker.  @words has room for two more.  Returns how
 * many words it has then.
 *
 * The kernel walks the stack from the registers of the interrupt, which comes
 * some instructions after the one that a precise event is about, maybe in the
 * kernel after one of the user: frames that ran later than the instruction are
 * not its callers and are left out.
 *
 * Source: Linux, arch/x86/events/intel/ds.c, setup_pebs_fixed_sample_data();
 * perf report takes the leaf from sample->ip (util/event.c).
 */
static size_t set_leaf(uint64_t *words, size_t n, uint64_t marker,
		       uint64_t ip)
{
	if (words[0] != marker && marker == (uint64_t)PERF_CONTEXT_USER &&
	    words[0] == (uint64_t)PERF_CONTEXT_KERNEL)
		n = cut_to(words, n, marker);
	if (words[0] != marker) {
		n = shift(words, n, 2);
		words[0] = marker;
	} else if (n < 2 || words[1] >= (uint64_t)PERF_CONTEXT_MAX) {
		n = shift(words, n, 1);
		words[0] = marker;
	}
	words[1] = ip;
	return n;
}

/*
 * Add the chain in the form of all others: a marker first, which some kernels
 * left out, then the address of the sample.
 */
static uint32_t add_chain(struct seam_perf_scan *scan, uint16_t misc,
			  const struct seam_perf_core *core)
{
	bool has_marker = word(core, 0) >= (uint64_t)PERF_CONTEXT_MAX;
	uint64_t leaf[2] = { marker_of(misc), core->ip }, *words;
	size_t n = core->n_chain + !has_marker;
	uint32_t id;

	if (core->n_chain == 0)
		return seam_callchains_add(&scan->chains, core->pid, leaf, 2);
	if (has_marker && (!core->ip || word(core, 1) == core->ip))
		return seam_callchains_add(&scan->chains, core->pid,
					   core->chain, core->n_chain);
	words = malloc(8 * (core->n_chain + 3));
	if (!words)
		return SEAM_NONE;
	words[0] = leaf[0];
	memcpy(words + !has_marker, core->chain, 8 * core->n_chain);
	if (core->ip && (n < 2 || words[1] != core->ip))
		n = set_leaf(words, n, leaf[0], core->ip);
	id = seam_callchains_add(&scan->chains, core->pid, words, n);
	free(words);
	return id;
}

static void note_time(struct seam_perf_scan *scan, uint64_t time_ns)
{
	scan->now = time_ns;
	if (time_ns < scan->first_ns)
		scan->first_ns = time_ns;
	if (time_ns > scan->last_ns)
		scan->last_ns = time_ns;
}

/* Copy bytes that are in a packed record.  False: no memory. */
static bool keep(struct seam_perf_scan *scan, struct seam_bytes *bytes)
{
	if (scan->is_packed && bytes->size)
		bytes->data = (const uint8_t *)seam_arena_text(&scan->arena,
				(const char *)bytes->data, bytes->size);
	return bytes->data || !bytes->size;
}

/* The next sample has RAW data; of the recorder's own, they are kept. */
static void add_walk(struct seam_perf_scan *scan, struct seam_bytes raw)
{
	uint8_t end;

	if (scan->what != SEAM_SCAN_SAMPLES || !seam_unwound_is(raw, &end))
		return;
	if (!keep(scan, &raw) || !SEAM_ARRAY_ADD(&scan->walks,
						 (struct seam_stack_walk) {
			.raw = raw.data, .raw_bytes = (uint32_t)raw.size,
			.sample = (uint32_t)scan->samples.n }))
		scan->error = -ENOMEM;
}

static void add_sample(struct seam_perf_scan *scan, uint16_t misc,
		       uint32_t event, const struct seam_perf_core *core)
{
	const struct seam_perf_attr *attr =
		&scan->data->events.items[event].attr;
	struct seam_samples *s = &scan->samples;
	uint32_t chain = add_chain(scan, misc, core);
	uint64_t weight = core->period;
	uint32_t cgroup = seam_cgroup_number(&scan->cgroups, core->cgroup);

	if (!(attr->sample_type & PERF_SAMPLE_PERIOD) && weight == 0)
		weight = seam_perf_attr_has(attr, SEAM_PERF_ATTR_FREQ) ||
			 attr->sample_period == 0 ? 1 : attr->sample_period;
	if (core->tid == 0 || core->tid != scan->tid ||
	    core->pid != scan->pid) {
		scan->key = seam_tasks_key(&scan->tasks, core->pid, core->tid);
		scan->pid = core->pid;
		scan->tid = core->tid;
	}
	if (chain == SEAM_NONE || scan->key == SEAM_NONE ||
	    cgroup == SEAM_NONE || !seam_samples_reserve(s, 1) ||
	    !seam_samples_set_cgroup(s, s->n, cgroup) ||
	    !seam_samples_set_weight(s, s->n, weight) ||
	    (scan->what == SEAM_SCAN_RECORDS &&
	     !seam_samples_set_record(s, s->n, scan->n_sample_records))) {
		scan->error = -ENOMEM;
		return;
	}
	/* Without times, the order of the file is the order of events. */
	s->time_ns[s->n] = attr->sample_type & PERF_SAMPLE_TIME ? core->time :
			   scan->n_records;
	s->thread[s->n] = scan->key;
	s->stack[s->n] = chain;
	s->cpu[s->n] = core->cpu < UINT16_MAX ? (uint16_t)core->cpu :
		       UINT16_MAX;
	s->event[s->n] = (uint16_t)event;
	add_walk(scan, core->raw);
	note_time(scan, s->time_ns[s->n++]);
}

/* -- samples without a fixed layout ------------------------------------- */

/* Counter value @i of a sample: its id, 0 if it has none.  False: no more. */
static bool counter_at(const struct seam_perf_sample *sample, uint64_t format,
		       size_t i, uint64_t *id, uint64_t *value)
{
	bool is_group = format & PERF_FORMAT_GROUP;
	bool has_id = format & PERF_FORMAT_ID;
	size_t each = (size_t)(1 + has_id + !!(format & PERF_FORMAT_LOST));
	size_t times = (size_t)(!!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
				!!(format & PERF_FORMAT_TOTAL_TIME_RUNNING));
	/* One value comes before the times, a group's values after them. */
	size_t at = is_group ? 1 + times + i * each : 0;

	times = is_group ? 0 : times;
	if (at + each + times > sample->read.n || (!is_group && i > 0))
		return false;
	*id = has_id ? seam_perf_u64(&sample->read, at + 1 + times) :
	      sample->id;
	*value = seam_perf_u64(&sample->read, at);
	return true;
}

/*
 * A sample with counter values becomes a sample of each counter that increased,
 * weighted by the increase, as in perf.
 */
static void add_read_values(struct seam_perf_scan *scan, uint16_t misc,
			    uint32_t event, struct seam_perf_core *core,
			    const struct seam_perf_sample *sample)
{
	uint64_t format = scan->data->events.items[event].attr.read_format;
	struct seam_scan_counters *c = &scan->counters;
	uint64_t id, value;

	for (size_t i = 0; counter_at(sample, format, i, &id, &value); i++) {
		uint32_t which = seam_perf_data_event(scan->data, id);

		/* as collect_counters() went through them */
		core->period = c->next < c->items.n ?
			       c->items.items[c->next++].value : 0;
		if (which != SEAM_NONE && core->period)
			add_sample(scan, misc, which, core);
	}
}

/*
 * A recording with stack dumps has the kernel's half of the chain only; the
 * user's leaf is in the registers.
 */
static size_t copy_chain(const struct seam_perf_data *data,
			 const struct seam_perf_sample *sample, uint64_t *to)
{
	size_t n = 0;
	bool has_user = false;
	uint64_t ip = seam_perf_registers_pc(&sample->user_regs,
		seam_perf_data_string(data, SEAM_PERF_FEATURE_ARCH));

	for (; n < sample->callchain.n; n++) {
		to[n] = seam_perf_u64(&sample->callchain, n);
		has_user |= to[n] == (uint64_t)PERF_CONTEXT_USER;
	}
	if (n && !has_user && ip) {
		to[n++] = (uint64_t)PERF_CONTEXT_USER;
		to[n++] = ip;
	}
	return n;
}

/* The samples from @first on are of a record with a copy of the stack. */
static void add_dumps(struct seam_perf_scan *scan, size_t first,
		      uint16_t misc, uint32_t event,
		      struct seam_bytes payload)
{
	for (size_t i = first; i < scan->samples.n; i++)
		if (!SEAM_ARRAY_ADD(&scan->dumps, (struct seam_stack_dump) {
				.payload = scan->is_packed ? NULL :
					   payload.data,
				.size = (uint32_t)payload.size,
				.record = scan->n_sample_records,
				.sample = (uint32_t)i,
				.event = (uint16_t)event, .misc = misc,
			}))
			scan->error = -ENOMEM;
}

/* A sample whose RAW data is a guest record. */
static void add_guest(struct seam_perf_scan *scan, uint16_t misc,
		      uint32_t event, const struct seam_perf_sample *sample,
		      struct seam_perf_core *core)
{
	struct seam_samples *s = &scan->samples;
	size_t i = s->n;
	uint8_t vmstate = SEAM_VMSTATE_NONE;

	/* Records with names have a frame for each address, and no others. */
	if (scan->what != SEAM_SCAN_RECORDS &&
	    merge_guest(&scan->guest, sample, core, &vmstate))
		scan->error = -ENOMEM;
	add_sample(scan, misc, event, core);
	if (s->n > i && vmstate != SEAM_VMSTATE_NONE &&
	    !seam_samples_set_vmstate(s, i, (enum seam_vmstate)vmstate))
		scan->error = -ENOMEM;
}

static void take_whole_sample(struct seam_perf_scan *scan, uint16_t misc,
			      uint32_t event, struct seam_bytes payload)
{
	enum seam_guest_event guest =
		seam_scan_guest_event(&scan->data->events.items[event]);
	const struct seam_perf_attr *attr =
		&scan->data->events.items[event].attr;
	struct seam_perf_sample sample;
	size_t first = scan->samples.n;
	struct seam_perf_core core;
	uint64_t *chain;

	if (seam_perf_sample_read(attr, scan->data->endian, payload, &sample)) {
		scan->n_damaged++;
		return;
	}
	if (guest == SEAM_GUEST_EVENT_SYMBOLS) {
		if (!keep(scan, &sample.raw) ||
		    !SEAM_ARRAY_ADD(&scan->guest.symbols,
				    (struct seam_guest_record) {
					sample.pid, sample.raw }))
			scan->error = -ENOMEM;
		return;
	}
	chain = malloc((sample.callchain.n + 2) * sizeof(*chain));
	if (!chain) {
		scan->error = -ENOMEM;
		return;
	}
	core = (struct seam_perf_core) {
		.id = sample.id, .ip = sample.ip, .time = sample.time,
		.period = sample.period, .pid = sample.pid, .tid = sample.tid,
		.cpu = sample.cpu, .chain = (const uint8_t *)chain,
		.n_chain = copy_chain(scan->data, &sample, chain),
		.raw = sample.raw, .cgroup = sample.cgroup,
	};
	if (event == scan->blocked_event)
		core.period = sample.weight;
	if (guest == SEAM_GUEST_EVENT_SAMPLES)
		add_guest(scan, misc, event, &sample, &core);
	else if (attr->sample_type & PERF_SAMPLE_READ)
		add_read_values(scan, misc, event, &core, &sample);
	else
		add_sample(scan, misc, event, &core);
	if (attr->sample_type & PERF_SAMPLE_STACK_USER &&
	    sample.user_regs.abi)
		add_dumps(scan, first, misc, event, payload);
	free(chain);
}

static uint32_t event_of(struct seam_perf_scan *scan,
			 const struct seam_perf_record *record)
{
	const struct seam_perf_data *data = scan->data;
	const struct seam_perf_event *first = &data->events.items[0];
	uint64_t id = 0;

	if (data->events.n == 1)
		return 0;
	/* All events have their id at the same place. */
	if (first->layout.is_usable &&
	    record->payload.size >= first->layout.fixed_bytes)
		id = seam_perf_layout_u64(record->payload.data,
					  first->layout.id, 0);
	else
		id = seam_perf_sample_peek_id(&first->attr, data->endian,
					      record->payload);
	if (id == 0 || id != scan->id) {
		scan->event = seam_perf_data_event(data, id);
		scan->id = id;
	}
	return scan->event;
}

static void take_time(struct seam_perf_scan *scan, uint32_t event,
		      struct seam_bytes payload)
{
	const struct seam_perf_event *from = &scan->data->events.items[event];
	struct seam_perf_sample sample;
	struct seam_perf_core core;

	if (seam_perf_layout_read(&from->layout, payload, &core))
		note_time(scan, core.time);
	else if (seam_perf_sample_read(&from->attr, scan->data->endian, payload,
				       &sample) == 0)
		note_time(scan, sample.time);
	else
		scan->n_damaged++;
}

static void take_waking(struct seam_perf_scan *scan, struct seam_bytes payload)
{
	const struct seam_perf_data *data = scan->data;
	struct seam_perf_sample sample;
	struct seam_waking waking = { .by = SEAM_NONE };
	struct seam_cursor c;

	if (seam_perf_sample_read(&data->events.items[scan->waking_event].attr,
				  data->endian, payload, &sample) ||
	    sample.raw.size < SEAM_WAKING_TID + sizeof(uint32_t)) {
		scan->n_damaged++;
		return;
	}
	c = seam_cursor_make(sample.raw.data + SEAM_WAKING_TID,
			     sizeof(uint32_t), data->endian);
	waking.time_ns = sample.time;
	waking.tid = (int32_t)seam_cursor_u32(&c);
	if (!(sample.raw.data[SEAM_WAKING_FLAGS] & SEAM_WAKING_IN_INTERRUPT)) {
		waking.by = seam_tasks_key(&scan->tasks, sample.pid,
					   sample.tid);
		if (waking.by == SEAM_NONE)
			scan->error = -ENOMEM;
	}
	if (!SEAM_ARRAY_ADD(&scan->wakings, waking))
		scan->error = -ENOMEM;
}

static void take_sample(struct seam_perf_scan *scan,
			const struct seam_perf_record *record)
{
	const struct seam_perf_data *data = scan->data;
	uint32_t event = event_of(scan, record);
	struct seam_perf_core core;

	/*
	 * Room for all samples, as if they had the size of the first one:
	 * growing by doubling would copy the same memory several times.  On
	 * failure the columns grow as needed.
	 */
	if (scan->samples.cap == 0 && scan->what != SEAM_SCAN_TIMES)
		(void)seam_samples_reserve(&scan->samples, 1 +
			(size_t)((scan->limit - scan->begin) /
				 (record->payload.size +
				  SEAM_PERF_HEADER_BYTES)));
	if (event == SEAM_NONE)
		scan->n_unknown++;
	else if (event == scan->waking_event)
		take_waking(scan, record->payload);
	else if (scan->what == SEAM_SCAN_TIMES)
		take_time(scan, event, record->payload);
	else if (event != scan->blocked_event &&
		 !seam_scan_guest_event(&data->events.items[event]) &&
		 seam_perf_layout_read(&data->events.items[event].layout,
				       record->payload, &core))
		add_sample(scan, record->misc, event, &core);
	else
		take_whole_sample(scan, record->misc, event, record->payload);
}

/* -- everything else ---------------------------------------------------- */

static bool is_wanted(uint32_t type)
{
	switch (type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_AUX:
	case PERF_RECORD_THROTTLE:
	case SEAM_PERF_HEADER_BUILD_ID:
		return true;
	}
	return false;
}

uint32_t seam_scan_find_event(const struct seam_perf_data *data,
			      const char *name)
{
	for (uint32_t i = 0; i < data->events.n; i++)
		if (strcmp(data->events.items[i].name, name) == 0)
			return i;
	return SEAM_NONE;
}

/* The id of the event that @record is of, or whose records are missing. */
static uint64_t switch_id(const struct seam_perf_record *record,
			  enum seam_endian endian,
			  const struct seam_perf_sample_id *sample_id)
{
	struct seam_perf_lost lost = { 0 };

	if (record->type == PERF_RECORD_LOST)
		(void)seam_perf_record_read(seam_perf_record_table(
				PERF_RECORD_LOST, 0), record->payload, endian,
				&lost);
	return record->type == PERF_RECORD_LOST ? lost.id : sample_id->id;
}

/*
 * Wakings share the ring: a LOST record may have their id, whatever is missing.
 * Source: Linux 6.18, __perf_output_begin().
 */
static bool is_of_switches(const struct seam_perf_scan *scan, bool is_lost,
			   uint32_t event)
{
	return event == scan->switch_event ||
	       (is_lost && event != SEAM_NONE && event ==
		seam_scan_find_event(scan->data, SEAM_WAKING_EVENT));
}

/* A record of the event of switches; others are left out. */
static void take_switch(struct seam_perf_scan *scan,
			struct seam_perf_record record)
{
	const struct seam_perf_data *data = scan->data;
	bool is_lost = record.type == PERF_RECORD_LOST;
	struct seam_perf_sample_id at;
	uint32_t key = SEAM_NONE;

	if (seam_perf_sample_id_read(&data->events.items[scan->switch_event]
				     .attr, data->endian, &record.payload,
				     &at)) {
		scan->n_damaged++;
		return;
	}
	if (!is_of_switches(scan, is_lost, seam_perf_data_event(data,
				switch_id(&record, data->endian, &at))))
		return;
	/* of an idle CPU, and of a thread that has ended */
	if (!is_lost && at.tid <= 0)
		return;
	if (!is_lost)
		key = seam_tasks_key(&scan->tasks, at.pid, at.tid);
	if ((!is_lost && key == SEAM_NONE) ||
	    !SEAM_ARRAY_ADD(&scan->switches.items, (struct seam_switch) {
			.time_ns = at.time, .thread = key,
			.cpu = (uint16_t)at.cpu,
			.kind = is_lost ? SEAM_SWITCH_LOST :
				!(record.misc & PERF_RECORD_MISC_SWITCH_OUT) ?
				SEAM_SWITCH_IN :
				record.misc &
				PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ?
				SEAM_SWITCH_OUT_RUNNABLE : SEAM_SWITCH_OUT }))
		scan->error = -ENOMEM;
	note_time(scan, at.time);
}

static bool is_switch(uint32_t type)
{
	return type == PERF_RECORD_SWITCH ||
	       type == PERF_RECORD_SWITCH_CPU_WIDE || type == PERF_RECORD_LOST;
}

static void add_sideband(struct seam_perf_scan *scan,
			 const struct seam_perf_record *record)
{
	const struct seam_perf_attr *attr =
		seam_perf_data_attr_of(scan->data, record->payload);
	struct seam_sideband_record *slot = SEAM_ARRAY_PUSH(&scan->sideband);

	if (!slot) {
		scan->error = -ENOMEM;
		return;
	}
	*slot = (struct seam_sideband_record) { .record = *record };
	if (!(attr->sample_type & PERF_SAMPLE_TIME))
		slot->time_ns = scan->n_records;
	else if (seam_perf_sample_id_bytes(attr) == 0)
		slot->time_ns = scan->now;
	if (!keep(scan, &slot->record.payload))
		scan->error = -ENOMEM;
}

/* -- the walk ----------------------------------------------------------- */

static bool has_counters(const struct seam_perf_data *data)
{
	for (size_t i = 0; i < data->events.n; i++)
		if (data->events.items[i].attr.sample_type & PERF_SAMPLE_READ)
			return true;
	return false;
}

static void collect_counters(struct seam_perf_scan *scan,
			     const struct seam_perf_record *record)
{
	uint32_t event = event_of(scan, record);
	const struct seam_perf_event *from = event == SEAM_NONE ? NULL :
					     &scan->data->events.items[event];
	struct seam_perf_sample sample;
	uint64_t id, value;

	if (!from || !(from->attr.sample_type & PERF_SAMPLE_READ) ||
	    seam_scan_guest_event(from) ||
	    seam_perf_sample_read(&from->attr, scan->data->endian,
				  record->payload, &sample))
		return;
	for (size_t i = 0; counter_at(&sample, from->attr.read_format, i, &id,
				      &value); i++)
		if (!SEAM_ARRAY_ADD(&scan->counters.items,
				    (struct seam_scan_counter) {
			.id = id, .time_ns = sample.time, .value = value,
			.order = scan->counters.items.n }))
			scan->error = -ENOMEM;
}

/* Before the samples: by how much each has increased its counters. */
static void scan_counters(struct seam_perf_scan *scan)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;

	seam_perf_stream_init(&stream, scan->bytes, scan->data->endian,
			      scan->begin, scan->end, false);
	stream.limit = scan->limit;
	while (scan->error == 0 &&
	       seam_perf_stream_next(&stream, &record, NULL) > 0)
		if (record.type == PERF_RECORD_SAMPLE)
			collect_counters(scan, &record);
	seam_perf_stream_fini(&stream);
	if (scan->error == 0)
		scan->error = make_increases(&scan->counters);
}

static void scan_part(struct seam_perf_scan *scan,
		      struct seam_progress *progress)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	uint64_t reported = scan->begin, prepared = scan->begin;
	int r = 0;

	if (scan->what != SEAM_SCAN_TIMES && has_counters(scan->data))
		scan_counters(scan);
	seam_perf_stream_init(&stream, scan->bytes, scan->data->endian,
			      scan->begin, scan->end, false);
	stream.limit = scan->limit;
	while (scan->error == 0 &&
	       (r = seam_perf_stream_next(&stream, &record, &scan->why)) > 0) {
		scan->n_records++;
		scan->is_packed = stream.unpacked != NULL;
		if (record.type == PERF_RECORD_SAMPLE) {
			take_sample(scan, &record);
			scan->n_sample_records++;
		}
		if (is_wanted(record.type))
			add_sideband(scan, &record);
		if (scan->switch_event != SEAM_NONE && is_switch(record.type))
			take_switch(scan, record);
		/* have the pages of the next window mapped */
		if (stream.pos >= prepared) {
			uint64_t left = scan->end > prepared ?
					scan->end - prepared : 0;

			seam_file_prepare((struct seam_bytes) {
				scan->bytes.data + prepared,
				left < WINDOW_BYTES ? left : WINDOW_BYTES });
			prepared += WINDOW_BYTES;
		}
		if (stream.pos - reported > (1 << 20)) {
			seam_progress_step(progress, stream.pos - reported);
			reported = stream.pos;
		}
	}
	if (r < 0 && scan->error == 0)
		scan->error = r;
	scan->stop = stream.pos;
	seam_perf_stream_fini(&stream);
}

static bool looks_valid(const struct seam_perf_data *data,
			struct seam_bytes bytes, uint64_t pos, uint64_t end)
{
	struct seam_cursor c = seam_cursor_make(bytes.data + pos,
						(size_t)(end - pos),
						data->endian);

	for (int i = 0; i < MIN_VALID_RECORDS; i++) {
		uint32_t type = seam_cursor_u32(&c);
		uint16_t size;

		seam_cursor_u16(&c);
		size = seam_cursor_u16(&c);
		if (c.error || !seam_perf_record_name(type) || size < 8 ||
		    size % 8)
			return false;
		seam_cursor_skip(&c, size - SEAM_PERF_HEADER_BYTES);
	}
	return !c.error;
}

/* The likely start of a record, not before @from; @end: none was found. */
static uint64_t guess_begin(const struct seam_perf_data *data,
			    struct seam_bytes bytes, uint64_t from,
			    uint64_t end)
{
	uint64_t give_up = end - from > 65536 ? from + 65536 : end;

	for (; from < give_up; from += 8)
		if (looks_valid(data, bytes, from, end))
			return from;
	return end;
}

struct scan_pool {
	struct seam_perf_scan *scans;
	struct seam_progress progress;
};

static void scan_task(void *context, size_t task)
{
	struct scan_pool *pool = context;

	scan_part(&pool->scans[task], &pool->progress);
}

static bool is_divisible(const struct seam_perf_data *data)
{
	/*
	 * READ values are differences; without times the order of the file
	 * is all there is; packed data is one stream.
	 */
	for (size_t i = 0; i < data->events.n; i++)
		if (!(data->events.items[i].attr.sample_type &
		      PERF_SAMPLE_TIME))
			return false;
	return !data->is_pipe && !has_counters(data) &&
	       data->features[SEAM_PERF_FEATURE_COMPRESSED].size == 0;
}

/* A part of what @like is of, which begins at @begin, in place of @scan. */
static void reset(struct seam_perf_scan *scan,
		  const struct seam_perf_scan *like, uint64_t begin,
		  uint64_t end)
{
	struct seam_perf_scan part = {
		.data = like->data, .bytes = like->bytes, .begin = begin,
		.end = end, .stop = begin, .limit = like->limit,
		.first_ns = UINT64_MAX, .what = like->what,
		.switch_event = like->switch_event,
		.waking_event = like->waking_event,
		.blocked_event = like->blocked_event,
	};

	seam_perf_scan_fini(scan);
	*scan = part;
}

/* Scan the parts again that began at a wrong guess. */
static void prove(struct seam_perf_scan *scans, size_t n,
		  struct seam_progress *progress)
{
	for (size_t i = 1; i < n; i++) {
		uint64_t begin = scans[i - 1].stop;
		bool is_over = scans[i - 1].error || scans[i - 1].is_over;

		if (!is_over && begin == scans[i].begin)
			continue;
		reset(&scans[i], &scans[i], begin, scans[i].end);
		scans[i].is_over = is_over;
		if (!is_over && begin < scans[i].end)
			scan_part(&scans[i], progress);
	}
}

/*
 * Compressed records are one stream, and a file may have them without a mark in
 * its header: then the first part scans all, from the start.
 */
static void undivide(struct seam_perf_scan *scans, size_t n,
		     struct seam_progress *progress)
{
	uint64_t end = scans[n - 1].end;
	bool is_packed = false;

	for (size_t i = 0; n > 1 && i < n; i++)
		is_packed |= scans[i].is_packed;
	if (!is_packed)
		return;
	for (size_t i = 0; i < n; i++)
		reset(&scans[i], &scans[i], i ? end : scans[0].begin, end);
	scan_part(&scans[0], progress);
}

size_t seam_perf_scan_parts(const struct seam_perf_data *data, uint64_t begin,
			    uint64_t end)
{
	return is_divisible(data) && end - begin >= 2 * MIN_PART_BYTES ?
	       seam_workers_count() : 1;
}

int seam_perf_scan(const struct seam_perf_data *data, struct seam_bytes bytes,
		   uint64_t begin, uint64_t end, struct seam_perf_scan *scans,
		   size_t n, enum seam_scan_what what)
{
	uint64_t size = end - begin;
	struct scan_pool pool = { .scans = scans };
	const struct seam_perf_scan like = {
		.data = data, .bytes = bytes, .limit = end, .what = what,
		.switch_event = what == SEAM_SCAN_RECORDS ? SEAM_NONE :
			seam_scan_find_event(data, SEAM_SWITCH_EVENT),
		.waking_event = what != SEAM_SCAN_SAMPLES ? SEAM_NONE :
			seam_scan_find_event(data, SEAM_WAKING_EVENT),
		.blocked_event = what != SEAM_SCAN_SAMPLES ? SEAM_NONE :
			seam_scan_find_event(data, SEAM_BLOCKED_STACK_EVENT),
	};

	for (size_t i = 0; i < n; i++) {
		uint64_t from = begin + size / n / 8 * 8 * i;

		scans[i] = (struct seam_perf_scan) { .n_records = 0 };
		reset(&scans[i], &like,
		      i ? guess_begin(data, bytes, from, end) : from, end);
		if (i)
			scans[i - 1].end = scans[i].begin;
	}
	seam_progress_begin(&pool.progress, "reading", size);
	seam_workers_run(n, scan_task, &pool);
	undivide(scans, n, &pool.progress);
	prove(scans, n, &pool.progress);
	seam_progress_end(&pool.progress);
	for (size_t i = 0; i < n; i++)
		if (scans[i].error == -ENOMEM)
			return -ENOMEM;
	return 0;
}

void seam_perf_scan_fini(struct seam_perf_scan *scan)
{
	seam_samples_fini(&scan->samples);
	seam_callchains_fini(&scan->chains);
	seam_cgroup_ids_fini(&scan->cgroups);
	seam_tasks_fini(&scan->tasks);
	seam_arena_fini(&scan->arena);
	free(scan->sideband.items);
	free(scan->dumps.items);
	free(scan->walks.items);
	free(scan->guest.symbols.items);
	free(scan->guest.words.items);
	free(scan->counters.items.items);
	free(scan->switches.items.items);
	free(scan->wakings.items);
	*scan = (struct seam_perf_scan) { 0 };
}

/* -- joins -------------------------------------------------------------- */

/* Of each id in a scan, the common one. */
struct numbers {
	uint32_t *keys, *chains, *cgroups;
};

/* Map the ids of one scan to common ones.  0 or -ENOMEM. */
static int renumber(const struct seam_perf_scan *scan,
		    const struct seam_scan_joined *all, struct numbers *to)
{
	to->keys = malloc((scan->tasks.keys.n + 1) * sizeof(*to->keys));
	to->chains = malloc((scan->chains.items.n + 1) * sizeof(*to->chains));
	to->cgroups = calloc(scan->cgroups.items.n + 1, sizeof(*to->cgroups));
	if (!to->keys || !to->chains || !to->cgroups)
		return -ENOMEM;
	for (size_t i = 0; i < scan->cgroups.items.n; i++) {
		to->cgroups[i + 1] = seam_cgroup_number(all->cgroups,
				scan->cgroups.items.items[i]);
		if (to->cgroups[i + 1] == SEAM_NONE)
			return -ENOMEM;
	}
	for (size_t i = 0; i < scan->tasks.keys.n; i++) {
		const struct seam_task *task = &scan->tasks.keys.items[i];

		to->keys[i] = seam_tasks_key(all->tasks, task->pid, task->tid);
		if (to->keys[i] == SEAM_NONE)
			return -ENOMEM;
	}
	for (size_t i = 0; i < scan->chains.items.n; i++) {
		const struct seam_callchain *c = &scan->chains.items.items[i];

		to->chains[i] = seam_callchains_add(all->chains, c->pid,
				scan->chains.words.items + c->first, c->n);
		if (to->chains[i] == SEAM_NONE)
			return -ENOMEM;
	}
	return 0;
}

static void renumber_switch(struct seam_switch *s, const uint32_t *keys)
{
	if (s->kind != SEAM_SWITCH_LOST)
		s->thread = keys[s->thread];
}

/* @n_records: how many SAMPLE records are before those of @from. */
static bool append(struct seam_samples *to, const struct seam_samples *from,
		   const struct numbers *ids, uint32_t n_records)
{
	size_t n = from->n;

	if (n == 0)
		return true;
	if (!seam_samples_reserve(to, n))
		return false;
	memcpy(to->time_ns + to->n, from->time_ns, n * sizeof(*to->time_ns));
	memcpy(to->cpu + to->n, from->cpu, n * sizeof(*to->cpu));
	memcpy(to->event + to->n, from->event, n * sizeof(*to->event));
	for (size_t i = 0; i < n; i++, to->n++) {
		to->thread[to->n] = ids->keys[from->thread[i]];
		to->stack[to->n] = ids->chains[from->stack[i]];
		if (!seam_samples_set_cgroup(to, to->n, ids->cgroups[
				seam_samples_cgroup(from, i)]) ||
		    !seam_samples_set_weight(to, to->n,
					     seam_samples_weight(from, i)) ||
		    (from->record && !seam_samples_set_record(to, to->n,
					n_records + from->record[i])) ||
		    (from->vmstate && !seam_samples_set_vmstate(to, to->n,
				(enum seam_vmstate)from->vmstate[i])))
			return false;
	}
	return true;
}

/* What the first scan has is moved as it is: its ids become the common ones. */
int seam_scan_join(struct seam_perf_scan *scans, size_t n,
		   const struct seam_scan_joined *all)
{
	struct seam_samples *samples = all->samples;
	struct seam_callchains *chains = all->chains;
	struct seam_tasks *tasks = all->tasks;
	uint32_t n_records = 0;
	int r = 0;

	assert(samples->n == 0 && chains->items.n == 0 && tasks->keys.n == 0);
	*samples = scans[0].samples;
	scans[0].samples = (struct seam_samples) { 0 };
	*chains = scans[0].chains;
	scans[0].chains = (struct seam_callchains) { 0 };
	*all->cgroups = scans[0].cgroups;
	scans[0].cgroups = (struct seam_cgroup_ids) { 0 };
	tasks->keys = scans[0].tasks.keys;
	tasks->key_index = scans[0].tasks.key_index;
	scans[0].tasks = (struct seam_tasks) { 0 };	/* had only keys */
	for (size_t i = 1; r == 0 && i < n; i++) {
		struct numbers ids = { 0 };

		scans[i].first_sample = samples->n;
		n_records += scans[i - 1].n_sample_records;
		r = renumber(&scans[i], all, &ids);
		for (size_t k = 0; r == 0 && k < scans[i].switches.items.n; k++)
			renumber_switch(&scans[i].switches.items.items[k],
					ids.keys);
		for (size_t k = 0; r == 0 && k < scans[i].wakings.n; k++)
			if (scans[i].wakings.items[k].by != SEAM_NONE)
				scans[i].wakings.items[k].by =
					ids.keys[scans[i].wakings.items[k].by];
		if (r == 0 && !append(samples, &scans[i].samples, &ids,
				      n_records))
			r = -ENOMEM;
		free(ids.keys);
		free(ids.chains);
		free(ids.cgroups);
		seam_samples_fini(&scans[i].samples);
		seam_callchains_fini(&scans[i].chains);
	}
	return r;
}
