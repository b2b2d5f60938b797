/* SPDX-License-Identifier: MIT */
/*
 * load_perf.c - scan, replay, resolve: a perf.data file into a profile
 *
 * 1. Scan all records into columns (perf_scan.h).
 * 2. Understand what was set aside: who was what, mapped where, lost when.
 * 3. Join the parts of the scan and replay the side-band (tasks.h).
 * 4. Give each sample its thread, its name and its stack (resolver.h).
 */
#include "model/perf/load_perf.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/progress.h"
#include "model/jit/jit_advice.h"
#include "model/jit/jit_sources.h"
#include "model/origin.h"
#include "model/perf/missing.h"
#include "model/perf/perf_scan.h"
#include "model/perf/resolver.h"
#include "model/perf/stack_advice.h"

struct known_build_id {
	uint32_t path;			/* string */
	uint8_t id[20];
	uint8_t size;
};

/* Code of the kernel that came, or went. */
struct kernel_change {
	uint64_t time_ns, order;
	uint64_t begin, end;
	uint32_t mapping;		/* SEAM_NONE: went */
};

struct perf_loader {
	struct seam_profile *profile;
	struct seam_perf_data data;
	struct seam_tasks tasks;
	struct seam_resolver resolver;
	struct seam_jit_sources jit;
	struct seam_embedded embedded;
	struct seam_kernel kernel;
	struct seam_origin origin;
	struct seam_bytes vdso_build_id;
	uint64_t order;			/* of the next change */
	uint64_t n_lost_ring;		/* as LOST records say */
	uint64_t n_paused;		/* of the lost, as its writer says */
	struct {
		uint64_t n_bytes;	/* as AUX records say */
		uint64_t n_truncated, n_partial, n_collision;
	} aux;
	uint64_t n_lost_events;		/* as LOST_SAMPLES say */
	SEAM_ARRAY(struct known_build_id) build_ids;
	SEAM_ARRAY(struct kernel_change) kernel_changes;
	SEAM_ARRAY(struct seam_perf_scan) scans;
	struct seam_callchains chains;	/* of all scans */
	int error;			/* 0 or -ENOMEM */
};

static uint32_t put(struct perf_loader *l, const char *text)
{
	uint32_t string = seam_strings_put(&l->profile->strings, text);

	if (string == SEAM_NONE)
		l->error = -ENOMEM;
	return string;
}

/* -- the header --------------------------------------------------------- */

/* A sample has 16 bits for its event. */
#define MAX_EVENTS (UINT16_MAX + 1)

static int add_events(struct perf_loader *l, struct seam_err *err)
{
	if (l->data.events.n > MAX_EVENTS)
		return seam_err_set(err, -EOVERFLOW, "%zu events, of which %d "
				    "can be told apart", l->data.events.n,
				    MAX_EVENTS);
	for (size_t i = 0; i < l->data.events.n; i++) {
		const struct seam_perf_event *from = &l->data.events.items[i];
		struct seam_profile_event *to = SEAM_ARRAY_PUSH(&l->profile->events);

		if (!to)
			return seam_err_set(err, -ENOMEM, "out of memory");
		*to = (struct seam_profile_event) {
			.name = put(l, from->name),
			.unit = seam_perf_attr_is_clock(&from->attr) ?
				SEAM_UNIT_NS : SEAM_UNIT_COUNT,
		};
	}
	return 0;
}

static bool is_kernel_name(const char *filename)
{
	return strncmp(filename, "[kernel.kallsyms]", 17) == 0;
}

/* Of a virtual machine: its kernel, and its files, are not this machine's. */
static bool is_of_guest(uint16_t misc)
{
	misc &= PERF_RECORD_MISC_CPUMODE_MASK;
	return misc == PERF_RECORD_MISC_GUEST_KERNEL ||
	       misc == PERF_RECORD_MISC_GUEST_USER;
}

/* As simpleperf writes where a file has none. */
static bool is_zero(const uint8_t *id, size_t size)
{
	while (size > 0 && id[size - 1] == 0)
		size--;
	return size == 0;
}

static bool take_build_id(void *context, const struct seam_perf_build_id *id)
{
	struct perf_loader *l = context;
	struct known_build_id *slot;

	if (is_of_guest(id->misc) || is_zero(id->build_id, id->build_id_size))
		return true;
	if (is_kernel_name(id->filename)) {
		l->kernel.build_id = id->build_id;
		l->kernel.build_id_size = id->build_id_size;
		return true;
	}
	slot = SEAM_ARRAY_PUSH(&l->build_ids);
	if (!slot) {
		l->error = -ENOMEM;
		return false;
	}
	slot->path = put(l, id->filename);
	slot->size = (uint8_t)id->build_id_size;
	memcpy(slot->id, id->build_id, slot->size);
	return true;
}

static int by_path(const void *a, const void *b)
{
	const struct known_build_id *x = a, *y = b;

	return x->path < y->path ? -1 : x->path > y->path;
}

static const struct known_build_id *find_build_id(const struct perf_loader *l,
						  uint32_t path)
{
	struct known_build_id key = { .path = path };

	return l->build_ids.n == 0 ? NULL :
	       bsearch(&key, l->build_ids.items, l->build_ids.n, sizeof(key),
		       by_path);
}

static void read_header(struct perf_loader *l, const struct seam_perf_input *input)
{
	char command[4096];

	l->origin = seam_origin_of(&l->data, input->manifest,
				   input->written_ns);
	seam_perf_data_build_ids(&l->data, take_build_id, l);
	if (seam_embedded_read(&l->embedded, &l->data, &l->profile->strings))
		l->error = -ENOMEM;
	if (l->embedded.files.n)
		l->resolver.embedded = &l->embedded;
	if (l->build_ids.n)
		qsort(l->build_ids.items, l->build_ids.n,
		      sizeof(*l->build_ids.items), by_path);
	l->profile->command = put(l, seam_perf_data_command(&l->data, command,
							    sizeof(command)));
}

/* -- what was set aside ------------------------------------------------- */

static void change(struct perf_loader *l, struct seam_change c)
{
	c.order = l->order++;
	if (seam_tasks_change(&l->tasks, &c))
		l->error = -ENOMEM;
}

/*
 * MMAP of pid -1: the kernel's text, or one of its modules.  They are true
 * from the start, whenever they are told; KSYMBOLs then lie over them.
 */
static void add_kernel_mapping(struct perf_loader *l,
			       const struct seam_perf_mapping *m)
{
	bool is_core = is_kernel_name(m->filename);
	uint32_t mapping;

	if (is_core)
		l->kernel.text_addr = m->pgoff;
	if (is_core && m->build_id) {
		l->kernel.build_id = m->build_id;
		l->kernel.build_id_size = m->build_id_size;
	}
	mapping = seam_resolver_mapping(&l->resolver, &(struct seam_mapping) {
		.kind = SEAM_MAPPING_KERNEL, .pid = -1, .start_addr = m->addr,
		.path = is_core ? l->resolver.kernel_path :
			put(l, m->filename),
	});
	if (mapping == SEAM_NONE ||
	    seam_spaces_map(&l->resolver.kernel, 0, 0, m->addr,
			    m->addr + m->len, mapping))
		l->error = -ENOMEM;
}

/* What says best which file it is: the record, the header, the bundle. */
static struct seam_bytes build_id_of(const struct perf_loader *l,
				     const struct seam_perf_mapping *m,
				     const struct seam_mapping *mapping)
{
	const struct known_build_id *known = find_build_id(l, mapping->path);

	if (m->build_id)
		return (struct seam_bytes) { m->build_id, m->build_id_size };
	if (known)
		return (struct seam_bytes) { known->id, known->size };
	if (mapping->kind == SEAM_MAPPING_VDSO)
		return l->vdso_build_id;
	return (struct seam_bytes) { 0 };
}

static void add_mapping(struct perf_loader *l, const struct seam_perf_aside *aside,
			const struct seam_perf_mapping *m)
{
	struct seam_mapping mapping = {
		.kind = seam_resolver_kind(m->filename), .pgoff = m->pgoff,
		.start_addr = m->addr, .pid = m->pid, .path = put(l, m->filename),
	};
	struct seam_bytes id = build_id_of(l, m, &mapping);
	int r = 0;

	if (m->is_jit_symfile)
		mapping.kind = SEAM_MAPPING_ANON;
	if (mapping.kind == SEAM_MAPPING_FILE)
		seam_origin_demand(&l->origin, m, aside->stamp.time,
				   &mapping.demand);
	if (id.size > 0 && id.size <= sizeof(mapping.build_id)) {
		memcpy(mapping.build_id, id.data, id.size);
		mapping.build_id_size = (uint8_t)id.size;
	}
	change(l, (struct seam_change) {
		.kind = SEAM_CHANGE_MAP, .time_ns = aside->stamp.time,
		.pid = m->pid, .tid = m->tid, .addr = m->addr, .len = m->len,
		.mapping = seam_resolver_mapping(&l->resolver, &mapping),
	});
	if (mapping.kind == SEAM_MAPPING_ANON && m->prot & PROT_EXEC)
		r = seam_jit_sources_anonymous(&l->jit, m->pid);
	else if (mapping.kind == SEAM_MAPPING_FILE)
		r = seam_jit_sources_mapped(&l->jit, m->pid, m->filename);
	if (r < 0)
		l->error = r;
}

static bool take_mapping(struct perf_loader *l, const struct seam_perf_aside *aside)
{
	struct seam_perf_mapping m;

	if (seam_perf_mapping_read(aside->record.type, aside->record.misc,
				   aside->record.payload, l->data.endian, &m))
		return false;
	if (is_of_guest(aside->record.misc))
		return true;
	if (m.len > UINT64_MAX - m.addr)
		m.len = UINT64_MAX - m.addr;
	if (m.pid == -1)
		add_kernel_mapping(l, &m);
	else
		add_mapping(l, aside, &m);
	return true;
}

static bool take_comm(struct perf_loader *l, const struct seam_perf_aside *aside)
{
	struct seam_perf_comm comm;

	if (seam_perf_record_read(seam_perf_record_table(PERF_RECORD_COMM, 0),
				  aside->record.payload, l->data.endian,
				  &comm))
		return false;
	if (aside->record.misc & PERF_RECORD_MISC_COMM_EXEC &&
	    seam_jit_code_exec(l->jit.code, comm.pid, aside->stamp.time))
		l->error = -ENOMEM;
	change(l, (struct seam_change) {
		.kind = aside->record.misc & PERF_RECORD_MISC_COMM_EXEC ?
			SEAM_CHANGE_EXEC : SEAM_CHANGE_NAME,
		.time_ns = aside->stamp.time, .pid = comm.pid,
		.tid = comm.tid, .name = put(l, comm.comm),
	});
	return true;
}

static bool take_task(struct perf_loader *l, const struct seam_perf_aside *aside)
{
	struct seam_perf_task task;

	if (seam_perf_record_read(seam_perf_record_table(PERF_RECORD_FORK, 0),
				  aside->record.payload, l->data.endian,
				  &task))
		return false;
	if (aside->record.type == PERF_RECORD_FORK && task.pid != task.ppid &&
	    seam_jit_code_fork(l->jit.code, task.ppid, task.pid,
			       aside->stamp.time))
		l->error = -ENOMEM;
	/* Equal ids: a thread that was there when recording began. */
	if (aside->record.type == PERF_RECORD_FORK && task.pid == task.ppid &&
	    task.tid == task.ptid)
		return true;
	change(l, (struct seam_change) {
		.kind = aside->record.type == PERF_RECORD_FORK ?
			SEAM_CHANGE_FORK : SEAM_CHANGE_EXIT,
		.time_ns = aside->stamp.time, .pid = task.pid,
		.tid = task.tid, .ppid = task.ppid, .ptid = task.ptid,
	});
	return true;
}

#define KSYMBOL_GONE 1	/* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */

static bool take_ksymbol(struct perf_loader *l, const struct seam_perf_aside *aside)
{
	struct seam_perf_ksymbol symbol;
	struct kernel_change *c;

	if (seam_perf_record_read(
		    seam_perf_record_table(PERF_RECORD_KSYMBOL, 0),
		    aside->record.payload, l->data.endian, &symbol))
		return false;
	c = SEAM_ARRAY_PUSH(&l->kernel_changes);
	if (!c) {
		l->error = -ENOMEM;
		return true;
	}
	*c = (struct kernel_change) {
		.time_ns = aside->stamp.time, .order = l->order++,
		.begin = symbol.addr, .end = symbol.addr + symbol.len,
		.mapping = SEAM_NONE,
	};
	if (symbol.flags & KSYMBOL_GONE)
		return true;
	c->mapping = seam_resolver_mapping(&l->resolver,
		&(struct seam_mapping) {
			.kind = SEAM_MAPPING_KSYMBOL, .pid = -1,
			.path = l->resolver.kernel_path,
			.function = put(l, symbol.name),
		});
	if (c->mapping == SEAM_NONE)
		l->error = -ENOMEM;
	return true;
}

/*
 * Loss is told twice.  LOST stands in the ring where records are missing,
 * side-band among them; LOST_SAMPLES is what the kernel counted for one
 * event up to the end.  Neither contains the other: the larger is the truth
 * that can be known.
 */
static bool take_lost(struct perf_loader *l, const struct seam_perf_aside *aside)
{
	struct seam_cursor c = seam_cursor_make(aside->record.payload.data,
						aside->record.payload.size,
						l->data.endian);
	bool by_event = aside->record.type == PERF_RECORD_LOST_SAMPLES;
	uint64_t id = by_event ? aside->stamp.id : seam_cursor_u64(&c);
	uint64_t n = seam_cursor_u64(&c);
	uint32_t event = seam_perf_data_event(&l->data, id);

	if (c.error)
		return false;
	if (by_event) {
		l->n_lost_events += n;
		if (event != SEAM_NONE)
			l->profile->events.items[event].n_lost += n;
	} else {
		l->n_lost_ring += n;
	}
	return true;
}

/* Of a hardware trace: only that it is there, and whether it is whole. */
static bool take_aux(struct perf_loader *l, const struct seam_perf_aside *aside)
{
	struct seam_perf_aux aux;

	if (seam_perf_record_read(seam_perf_record_table(PERF_RECORD_AUX, 0),
				  aside->record.payload, l->data.endian,
				  &aux))
		return false;
	l->aux.n_bytes += aux.aux_size;
	l->aux.n_truncated += !!(aux.flags & PERF_AUX_FLAG_TRUNCATED);
	l->aux.n_partial += !!(aux.flags & PERF_AUX_FLAG_PARTIAL);
	l->aux.n_collision += !!(aux.flags & PERF_AUX_FLAG_COLLISION);
	return true;
}

static bool take_aside(struct perf_loader *l, const struct seam_perf_aside *aside)
{
	switch (aside->record.type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return take_mapping(l, aside);
	case PERF_RECORD_COMM:
		return take_comm(l, aside);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return take_task(l, aside);
	case PERF_RECORD_KSYMBOL:
		return take_ksymbol(l, aside);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return take_lost(l, aside);
	case PERF_RECORD_AUX:
		return take_aux(l, aside);
	case PERF_RECORD_THROTTLE:
		seam_profile_note(l->profile, "the kernel throttled sampling: "
				  "there are fewer samples than asked for");
		return true;
	}
	return true;
}

/* -- the parts joined --------------------------------------------------- */

/* The ids of one scan in terms of all; 0 or -ENOMEM. */
static int renumber(struct perf_loader *l, struct seam_perf_scan *scan,
		    uint32_t **keys, uint32_t **chains)
{
	*keys = malloc((scan->tasks.keys.n + 1) * sizeof(**keys));
	*chains = malloc((scan->chains.items.n + 1) * sizeof(**chains));
	if (!*keys || !*chains)
		return -ENOMEM;
	for (size_t i = 0; i < scan->tasks.keys.n; i++) {
		const struct seam_task *task = &scan->tasks.keys.items[i];

		(*keys)[i] = seam_tasks_key(&l->tasks, task->pid, task->tid);
		if ((*keys)[i] == SEAM_NONE)
			return -ENOMEM;
	}
	for (size_t i = 0; i < scan->chains.items.n; i++) {
		const struct seam_callchain *c = &scan->chains.items.items[i];

		(*chains)[i] = seam_callchains_add(&l->chains, c->pid,
				scan->chains.words.items + c->first, c->n);
		if ((*chains)[i] == SEAM_NONE)
			return -ENOMEM;
	}
	return 0;
}

static bool append(struct seam_samples *to, const struct seam_samples *from,
		   const uint32_t *keys, const uint32_t *chains)
{
	size_t n = from->n;

	memcpy(to->time_ns + to->n, from->time_ns, n * sizeof(*to->time_ns));
	memcpy(to->cpu + to->n, from->cpu, n * sizeof(*to->cpu));
	memcpy(to->event + to->n, from->event, n * sizeof(*to->event));
	for (size_t i = 0; i < n; i++) {
		to->thread[to->n + i] = keys[from->thread[i]];
		to->stack[to->n + i] = chains[from->stack[i]];
		if (!seam_samples_set_weight(to, to->n + i,
					     seam_samples_weight(from, i)))
			return false;
	}
	to->n += n;
	return true;
}

static int join_one(struct perf_loader *l, struct seam_perf_scan *scan)
{
	struct seam_samples *to = &l->profile->samples;
	uint32_t *keys = NULL, *chains = NULL;
	int r = renumber(l, scan, &keys, &chains);

	if (r == 0 && scan->samples.n &&
	    (!seam_samples_reserve(to, scan->samples.n) ||
	     !append(to, &scan->samples, keys, chains)))
		r = -ENOMEM;
	free(keys);
	free(chains);
	seam_samples_fini(&scan->samples);
	seam_callchains_fini(&scan->chains);
	return r;
}

/* The first scan's columns and chains become the profile's as they are. */
static int join(struct perf_loader *l)
{
	struct seam_perf_scan *first = &l->scans.items[0];
	int r = 0;

	l->profile->samples = first->samples;
	first->samples = (struct seam_samples) { 0 };
	l->chains = first->chains;
	first->chains = (struct seam_callchains) { 0 };
	for (size_t i = 0; r == 0 && i < first->tasks.keys.n; i++)
		if (seam_tasks_key(&l->tasks, first->tasks.keys.items[i].pid,
				   first->tasks.keys.items[i].tid) == SEAM_NONE)
			r = -ENOMEM;
	for (size_t i = 1; r == 0 && i < l->scans.n; i++)
		r = join_one(l, &l->scans.items[i]);
	return r;
}

/* -- who and where ------------------------------------------------------ */

static uint32_t stack_of(struct perf_loader *l, struct seam_callchain *chain,
			 uint32_t space, uint64_t time_ns)
{
	struct seam_resolver_where where = {
		.pid = chain->pid, .space = space, .time_ns = time_ns,
	};

	if (chain->space == space && time_ns >= chain->from_ns &&
	    time_ns < chain->to_ns)
		return chain->stack;
	chain->stack = seam_resolver_stack(&l->resolver,
			l->chains.words.items + chain->first, chain->n,
			&where);
	chain->space = space;
	chain->from_ns = where.from_ns;
	chain->to_ns = where.to_ns;
	return chain->stack;
}

static int resolve_samples(struct perf_loader *l)
{
	struct seam_samples *s = &l->profile->samples;
	struct seam_who who = { .key = SEAM_NONE };
	struct seam_progress progress;

	if (seam_symbols_expects(l->resolver.symbols))
		seam_expected_make(&l->resolver.expected, &l->chains);
	seam_progress_begin(&progress, "resolving", s->n);
	for (size_t i = 0; i < s->n; i++) {
		if (!seam_who_holds(&who, s->thread[i], s->time_ns[i]))
			who = seam_tasks_who(&l->tasks, s->thread[i],
					     s->time_ns[i]);
		s->thread[i] = who.thread;
		if (!seam_samples_set_comm(l->profile, i, who.name))
			return -ENOMEM;
		s->stack[i] = stack_of(l, &l->chains.items.items[s->stack[i]],
				       who.space, s->time_ns[i]);
		if (s->stack[i] == SEAM_NONE)
			return -ENOMEM;
		l->profile->events.items[s->event[i]].n_samples++;
		if (i % 4096 == 4095)
			seam_progress_step(&progress, 4096);
	}
	seam_progress_end(&progress);
	return 0;
}

/* A thread that no record named is called by its number, as in perf. */
static void name_the_nameless(struct seam_profile *profile)
{
	for (size_t i = 0; i < profile->threads.n; i++) {
		struct seam_thread *t = &profile->threads.items[i];
		struct seam_process *p = &profile->processes.items[t->process];
		char name[16];

		snprintf(name, sizeof(name), ":%" PRId32, t->tid);
		if (t->name == 0)
			t->name = seam_strings_put(&profile->strings,
				t->tid == 0 ? "swapper" : name);
		if (p->name == 0 && t->tid == p->pid)
			p->name = t->name;
	}
}

static void find_time_range(struct seam_profile *profile, bool has_times)
{
	struct seam_samples *s = &profile->samples;

	/* What stood in for a time was the order of the file. */
	if (!has_times) {
		seam_profile_note(profile, "the recording has no times");
		if (s->n)
			memset(s->time_ns, 0, s->n * sizeof(*s->time_ns));
	}
	for (size_t i = 0; i < s->n; i++) {
		if (i == 0 || s->time_ns[i] < profile->start_ns)
			profile->start_ns = s->time_ns[i];
		if (i == 0 || s->time_ns[i] > profile->end_ns)
			profile->end_ns = s->time_ns[i];
	}
}

/* -- what is missing ---------------------------------------------------- */

static void tell_damage(struct perf_loader *l, const struct seam_perf_scan *scan)
{
	struct seam_profile *p = l->profile;
	uint32_t data = put(l, "data");

	if (scan->n_damaged)
		seam_profile_lost(p, "record damaged", data, scan->n_damaged,
				  0);
	if (scan->n_unknown)
		seam_profile_lost(p, "event not described", data,
				  scan->n_unknown, 0);
	if (scan->n_stacks_dumped)
		seam_profile_note(p, "stack dumps are not unwound: their "
				  "samples show the innermost user function");
	if (scan->error == -EBADMSG || scan->error == -ENODATA) {
		seam_profile_lost(p, scan->error == -ENODATA ?
				  "file cut" : "record damaged", data, 0,
				  scan->limit - scan->stop);
		seam_profile_note(p, "reading stopped %" PRIu64 " bytes before "
				  "the end of the data: %s",
				  scan->limit - scan->stop,
				  scan->why.n_causes ? scan->why.cause[0] : "");
	}
}

/* A ring that overwrites is never full: first comes what a pause cost. */
static void tell_lost_event(struct perf_loader *l, const struct seam_profile_event *event,
			    uint64_t *n_paused)
{
	uint64_t paused = event->n_lost < *n_paused ? event->n_lost :
			  *n_paused;

	*n_paused -= paused;
	if (paused)
		seam_profile_lost(l->profile, "paused for a snapshot",
				  event->name, paused, 0);
	if (event->n_lost > paused)
		seam_profile_lost(l->profile, "ring full", event->name,
				  event->n_lost - paused, 0);
}

static void tell_aux(struct perf_loader *l)
{
	struct seam_profile *p = l->profile;

	if (l->aux.n_bytes)
		seam_profile_note(p, "there is a hardware trace of %" PRIu64
			" bytes, which 'perf script --itrace' decodes",
			l->aux.n_bytes);
	if (l->aux.n_truncated)
		seam_profile_note(p, "its area was full %" PRIu64 " times: "
			"the hardware trace has gaps", l->aux.n_truncated);
	if (l->aux.n_partial)
		seam_profile_note(p, "the hardware trace is not whole in %"
			PRIu64 " places, says the PMU", l->aux.n_partial);
	if (l->aux.n_collision)
		seam_profile_note(p, "samples of the hardware trace collided "
			"%" PRIu64 " times", l->aux.n_collision);
}

static void tell_losses(struct perf_loader *l)
{
	struct seam_profile *p = l->profile;
	uint64_t n_events = 0, n_paused = l->n_paused;

	for (size_t i = 0; i < p->events.n; i++) {
		n_events += p->events.items[i].n_lost;
		tell_lost_event(l, &p->events.items[i], &n_paused);
	}
	if (l->n_lost_ring > n_events)
		seam_profile_lost(p, "ring full", put(l, "any event"),
				  l->n_lost_ring - n_events, 0);
	tell_aux(l);
	if (l->data.n_missing_bytes)
		seam_profile_lost(p, "file cut", put(l, "data"), 0,
				  l->data.n_missing_bytes);
	if (l->data.is_cut)
		seam_profile_note(p, "the recording was not closed: its writer "
				  "was killed, or the file is cut");
}

/* Whether stacks are there, and reach their threads' beginnings. */
static void advise_stacks(struct perf_loader *l)
{
	bool has_chains = false, has_samples = false;

	for (size_t i = 0; i < l->scans.n; i++)
		if (l->scans.items[i].n_stacks_dumped)
			return;
	for (size_t i = 0; i < l->data.events.n; i++) {
		const struct seam_perf_attr *attr = &l->data.events.items[i]
						    .attr;

		if (!l->profile->events.items[i].n_samples)
			continue;
		/* a tracepoint may be all that was asked for */
		has_samples |= attr->type != PERF_TYPE_TRACEPOINT;
		has_chains |= (attr->sample_type & PERF_SAMPLE_CALLCHAIN) != 0;
	}
	if (has_chains || has_samples)
		seam_stack_advise(l->profile, has_chains);
}

/* -- all of it ---------------------------------------------------------- */

static int scan_file(struct perf_loader *l, struct seam_bytes bytes, uint64_t begin,
		     uint64_t end)
{
	size_t n = seam_perf_scan_parts(&l->data, begin, end);
	struct seam_perf_scan *scans;

	if (!SEAM_ARRAY_RESERVE(&l->scans, n))
		return -ENOMEM;
	scans = l->scans.items + l->scans.n;
	l->scans.n += n;
	return seam_perf_scan(&l->data, bytes, begin, end, scans, n);
}

/* First and last sample, and whether their clock is the one of dumps. */
static void tell_times(struct perf_loader *l)
{
	const struct seam_perf_attr *attr = &l->data.events.items[0].attr;

	l->jit.is_untimed =
		!seam_perf_attr_has(attr, SEAM_PERF_ATTR_USE_CLOCKID) ||
		attr->clockid != CLOCK_MONOTONIC;
	l->profile->has_other_clock = l->jit.is_untimed;
	l->jit.first_ns = UINT64_MAX;
	for (size_t i = 0; i < l->scans.n; i++) {
		const struct seam_samples *s = &l->scans.items[i].samples;

		for (size_t k = 0; k < s->n; k++) {
			if (s->time_ns[k] < l->jit.first_ns)
				l->jit.first_ns = s->time_ns[k];
			if (s->time_ns[k] > l->jit.last_ns)
				l->jit.last_ns = s->time_ns[k];
		}
	}
	if (l->jit.first_ns > l->jit.last_ns)
		l->jit.first_ns = l->jit.last_ns = 0;
}

static int by_time(const void *a, const void *b)
{
	const struct kernel_change *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Rings of several CPUs are not in order: sort first, then replay. */
static int seal_kernel(struct perf_loader *l)
{
	struct seam_spaces *kernel = &l->resolver.kernel;
	int r = 0;

	if (l->kernel_changes.n)
		qsort(l->kernel_changes.items, l->kernel_changes.n,
		      sizeof(*l->kernel_changes.items), by_time);
	for (size_t i = 0; r == 0 && i < l->kernel_changes.n; i++) {
		const struct kernel_change *c = &l->kernel_changes.items[i];

		r = c->mapping == SEAM_NONE ?
		    seam_spaces_unmap(kernel, 0, c->time_ns, c->begin,
				      c->end) :
		    seam_spaces_map(kernel, 0, c->time_ns, c->begin, c->end,
				    c->mapping);
	}
	return r ? r : seam_spaces_seal(kernel);
}

static int load(struct perf_loader *l, const struct seam_perf_input *input)
{
	int r = scan_file(l, l->data.bytes, l->data.data_begin,
			  l->data.data_end);

	for (size_t i = 0; r == 0 && i < input->n_parts; i++)
		r = scan_file(l, input->parts[i].bytes, 0,
			      input->parts[i].bytes.size);
	tell_times(l);
	for (size_t i = 0; r == 0 && i < l->scans.n; i++) {
		struct seam_perf_scan *scan = &l->scans.items[i];

		for (size_t k = 0; k < scan->asides.n; k++)
			if (!take_aside(l, &scan->asides.items[k]))
				scan->n_damaged++;
		tell_damage(l, scan);
		r = l->error;
	}
	tell_losses(l);
	if (r == 0)
		r = seam_jit_sources_seal(&l->jit);
	if (r == 0 && seam_jit_code_count(l->jit.code))
		l->resolver.jit = l->jit.code;
	if (r == 0)
		r = seam_resolver_kernel(&l->resolver, &l->kernel);
	if (r == 0)
		r = join(l);
	if (r == 0)
		r = seam_tasks_seal(&l->tasks, l->profile);
	if (r == 0)
		name_the_nameless(l->profile);
	if (r == 0)
		r = seal_kernel(l);
	if (r == 0)
		r = resolve_samples(l);
	return r;
}

int seam_load_perf(struct seam_profile *profile,
		   const struct seam_perf_input *input,
		   struct seam_symbols *symbols, struct seam_err *err)
{
	struct perf_loader l = {
		.profile = profile, .kernel = input->kernel,
		.vdso_build_id = input->vdso_build_id,
	};
	int r = seam_perf_data_open(&l.data, input->data->bytes, err);

	if (r == 0)
		r = add_events(&l, err);
	if (r == 0) {
		r = seam_resolver_init(&l.resolver, profile, symbols,
				       &l.tasks.spaces);
		if (r == 0)
			r = seam_jit_sources_init(&l.jit, profile,
						  &input->jit);
		if (r == 0) {
			l.resolver.all_unknown = input->all_unknown;
			l.n_paused = input->n_paused;
			read_header(&l, input);
			r = load(&l, input);
		}
		if (r < 0)
			seam_err_set(err, r, "out of memory");
	}
	if (r == 0) {
		seam_missing_tell(&l.resolver,
				  l.origin.machine == SEAM_ORIGIN_HERE);
		seam_jit_advise(profile, &l.jit);
		advise_stacks(&l);
		find_time_range(profile, l.data.events.items[0]
				.attr.sample_type & PERF_SAMPLE_TIME);
	}
	for (size_t i = 0; i < l.scans.n; i++)
		seam_perf_scan_fini(&l.scans.items[i]);
	free(l.scans.items);
	free(l.build_ids.items);
	free(l.kernel_changes.items);
	seam_callchains_fini(&l.chains);
	seam_resolver_fini(&l.resolver);
	seam_jit_sources_fini(&l.jit);
	seam_embedded_fini(&l.embedded);
	seam_tasks_fini(&l.tasks);
	seam_perf_data_close(&l.data);
	return r;
}
