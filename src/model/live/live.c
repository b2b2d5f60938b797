/* SPDX-License-Identifier: MIT */
/* live.c - records to processes, maps and samples; see live.h */
#include "model/live/live.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "model/live/live_maps.h"
#include "model/live/live_waits.h"
#include "model/perf/resolver.h"
#include "wire/perf/perf_record.h"
#include "wire/perf/perf_sample.h"
#include "wire/perf/wait_events.h"

#define OTHER "[other]"

enum {
	MAX_PENDING_BYTES = 64 << 20,	/* side-band of one step */
	MAX_PENDING = 1 << 21,		/* samples of one step */
	MAX_MAPPINGS = 1 << 20,		/* of all processes */
	MAX_LOCATED = 1 << 20,		/* addresses, with 16 bytes each */
	KEYS_OF_ANY_PID = -1,
};

/* By process of the profile. */
struct live_process {
	struct seam_live_maps maps;
	uint32_t n_threads;		/* that live */
	bool is_own;			/* excluded */
};

enum live_kind {
	LIVE_SIDEBAND,
	LIVE_SAMPLE,
	LIVE_STACK,			/* of a wait */
	LIVE_SWITCH,			/* .state begins */
};

/* A sample or a record of the side-band, until the step. */
struct live_pending {
	uint64_t ns;
	uint32_t order;			/* in which they came */
	enum live_kind kind;
	size_t record;			/* side-band: in .bytes */
	int32_t pid, tid;
	uint32_t chain;			/* SEAM_NONE: one too many */
	uint32_t event;
	uint64_t weight;
	uint16_t cpu;
	enum seam_live_state state;
};

/* A stack that is still to be made, of a chain in a process. */
struct live_stack {
	uint32_t chain;
	size_t first;			/* of located */
	struct seam_resolver_where where;
	uint32_t stack;			/* once it is made */
};

/* A sample that waits for stacks to be made. */
struct live_waiting {
	uint32_t pending, thread;
	bool is_made;			/* its stack is, before this step */
	uint32_t stack;			/* of the profile, or of stacks */
};

struct live_id {
	uint64_t id;
	uint32_t event;
};

struct live_event {
	struct seam_perf_attr attr;
	struct seam_perf_layout layout;
	enum live_kind kind;		/* of its records */
	uint32_t event;			/* of the profile, of samples */
};

/* A pid or a tid that lives, and the index of its thread or process. */
struct live_number {
	int32_t pid, tid;		/* tid KEYS_OF_ANY_PID: a process */
	uint32_t index;			/* SEAM_NONE: it has ended */
};

struct seam_live {
	struct seam_profile profile;
	struct seam_symbols *symbols;
	struct seam_resolver resolver;
	struct seam_guest_symbols guest;	/* always empty */
	struct seam_live_names names;		/* of JIT code */
	struct seam_callchains chains;
	SEAM_ARRAY(uint32_t) changes;	/* by chain: of maps, when located */
	SEAM_ARRAY(uint32_t) waits_for;	/* by chain: of stacks, + 1; 0: none */
	SEAM_ARRAY(struct live_stack) stacks;
	SEAM_ARRAY(struct live_waiting) waiting;
	SEAM_ARRAY(struct seam_located) located;
	struct seam_live_maps kernel;
	struct seam_vma found;		/* by find_vma() */
	SEAM_ARRAY(struct live_process) processes;
	SEAM_ARRAY(struct live_number) numbers;
	struct seam_index by_number;
	SEAM_ARRAY(uint32_t) dying, dead;	/* processes: maps to free */

	struct live_event events[SEAM_LIVE_MAX_EVENTS];	/* of the stream */
	size_t n_events;
	uint32_t waits_event;		/* off-cpu; preempted is the next */
	uint32_t no_stack;		/* of a wait */
	struct seam_live_waits waits;
	SEAM_ARRAY(struct seam_thread_time) times_step, times_sum;
	SEAM_ARRAY(struct live_id) ids;
	struct seam_index by_id;

	SEAM_ARRAY(uint8_t) bytes;
	SEAM_ARRAY(struct live_pending) pending;
	struct seam_samples step, sum;	/* one of them is in the profile */
	bool has_sum;			/* which is */
	bool has_no_sum;
	struct seam_index by_sum;	/* of the sum, by thread, stack, event */
	uint32_t other_stack;
	uint64_t n_other, n_damaged;
};

static uint32_t put(struct seam_live *l, const char *text)
{
	return seam_strings_put(&l->profile.strings, text);
}

/* ---- maps ---- */

/* For the resolver: space is the process. */
static const struct seam_vma *find_vma(void *context, bool is_kernel,
				       uint32_t space, uint64_t addr)
{
	struct seam_live *l = context;
	const struct seam_live_maps *maps = is_kernel ? &l->kernel :
				       &l->processes.items[space].maps;
	size_t i = seam_live_maps_at(maps, addr);

	if (i == maps->vmas.n || maps->vmas.items[i].begin > addr)
		return NULL;
	/* offsets are from there, also where others cover its begin */
	l->found = maps->vmas.items[i];
	l->found.begin = l->profile.mappings.items[l->found.mapping].start_addr;
	return &l->found;
}

static int init_resolver(struct seam_live *l)
{
	l->resolver = (struct seam_resolver) {
		.profile = &l->profile, .symbols = l->symbols,
		.guest = &l->guest, .find = find_vma, .context = l,
		.jit = l->names.sources,
	};
	return seam_resolver_init(&l->resolver);
}

/* ---- processes and threads ---- */

static uint64_t hash_of(int32_t pid, int32_t tid)
{
	return seam_hash_add((uint32_t)pid, (uint32_t)tid);
}

static struct live_number *number_of(struct seam_live *l, int32_t pid,
				     int32_t tid)
{
	uint32_t i = SEAM_INDEX_INTERN(&l->by_number, hash_of(pid, tid),
		&l->numbers, k, l->numbers.items[k].pid == pid &&
		l->numbers.items[k].tid == tid,
		(struct live_number) { pid, tid, SEAM_NONE });

	return i == SEAM_NONE ? NULL : &l->numbers.items[i];
}

/* The process that has @pid now; SEAM_NONE: no memory. */
static uint32_t process_of(struct seam_live *l, int32_t pid)
{
	struct live_number *number = number_of(l, pid, KEYS_OF_ANY_PID);
	struct seam_process process = {
		.pid = pid, .name = put(l, "?"), .end_ns = UINT64_MAX,
		.parent = SEAM_NONE,
	};

	if (!number || number->index != SEAM_NONE)
		return number ? number->index : SEAM_NONE;
	if (l->profile.threads.n >= SEAM_LIVE_MAX_THREADS)
		return 0;
	if (!SEAM_ARRAY_ADD(&l->profile.processes, process))
		return SEAM_NONE;
	if (!SEAM_ARRAY_ADD(&l->processes, (struct live_process) { 0 })) {
		l->profile.processes.n--;
		return SEAM_NONE;
	}
	number->index = (uint32_t)l->profile.processes.n - 1;
	return number->index;
}

/* The thread that has @tid now; SEAM_NONE: no memory. */
static uint32_t thread_of(struct seam_live *l, int32_t pid, int32_t tid)
{
	uint32_t process = process_of(l, pid);
	struct live_number *number = process == SEAM_NONE ? NULL :
				     number_of(l, pid, tid);

	if (!number || number->index != SEAM_NONE)
		return number ? number->index : SEAM_NONE;
	if (l->profile.threads.n >= SEAM_LIVE_MAX_THREADS)
		return 0;
	if (!SEAM_ARRAY_ADD(&l->profile.threads, (struct seam_thread) {
		.process = process, .tid = tid, .end_ns = UINT64_MAX,
		.name = l->profile.processes.items[process].name,
	    }))
		return SEAM_NONE;
	number->index = (uint32_t)l->profile.threads.n - 1;
	l->processes.items[process].n_threads++;
	return number->index;
}

/*
 * The maps of an ended process are used by samples of this step and, if they
 * had to wait for a file, of the next.
 */
static int end_thread(struct seam_live *l, int32_t pid, int32_t tid,
		      uint64_t ns)
{
	struct live_number *thread = number_of(l, pid, tid);
	struct live_number *process = number_of(l, pid, KEYS_OF_ANY_PID);

	if (!thread || !process)
		return -ENOMEM;
	if (thread->index == SEAM_NONE || process->index == SEAM_NONE ||
	    thread->index == 0)
		return 0;
	if (l->waits_event &&
	    seam_live_waits_enter(&l->waits, thread->index, SEAM_LIVE_UNKNOWN,
				  ns))
		return -ENOMEM;
	thread->index = SEAM_NONE;
	if (--l->processes.items[process->index].n_threads)
		return 0;
	if (!SEAM_ARRAY_ADD(&l->dying, process->index) ||
	    seam_live_names_ended(&l->names, pid, ns))
		return -ENOMEM;
	process->index = SEAM_NONE;
	return 0;
}

static void free_dead(struct seam_live *l)
{
	for (size_t i = 0; i < l->dead.n; i++)
		seam_live_maps_clear(
			&l->processes.items[l->dead.items[i]].maps);
	l->dead.n = 0;
	(void)SEAM_ARRAY_EXTEND(&l->dead, l->dying.items, l->dying.n);
	l->dying.n = 0;
}

/* ---- records of the side-band ---- */

static int apply_mapping(struct seam_live *l, const struct seam_perf_mapping *m)
{
	bool is_kernel = m->pid == -1;
	struct seam_profile_module module = {
		.path = put(l, m->filename), .pid = m->pid,
		.kind = is_kernel ? SEAM_MODULE_KERNEL_MODULE :
			(uint8_t)seam_module_kind_of(m->filename),
		.evidence = m->ino ? SEAM_EVIDENCE_INODE : SEAM_EVIDENCE_PATH,
		.ino = m->ino, .ino_generation = m->ino_generation,
		.mapped_ns = m->ino ? seam_clock_now(CLOCK_REALTIME) : 0,
		.build_id_size = (uint8_t)m->build_id_size,
	};
	uint32_t process = is_kernel ? 0 : process_of(l, m->pid);
	uint64_t len = m->len > UINT64_MAX - m->addr ? UINT64_MAX - m->addr :
		       m->len;
	struct seam_vma vma = {
		.begin = m->addr, .end = m->addr + len,
		.mapping = (uint32_t)l->profile.mappings.n,
	};

	/* of the kernel's text all addresses are, without a mapping */
	if (!len || vma.mapping >= MAX_MAPPINGS ||
	    (is_kernel && strncmp(m->filename, "[kernel", 7) == 0))
		return 0;
	if (m->build_id)
		memcpy(module.build_id, m->build_id, m->build_id_size);
	if (process == SEAM_NONE || module.path == SEAM_NONE ||
	    (!is_kernel &&
	     seam_live_names_mapped(&l->names, m->pid, m->filename,
				    m->prot & PROT_EXEC && module.kind ==
				    SEAM_MODULE_ANON)) ||
	    !SEAM_ARRAY_ADD(&l->profile.mappings, (struct seam_mapping) {
		.start_addr = m->addr, .size = len, .pgoff = m->pgoff,
		.pid = m->pid, .is_executable = m->prot & PROT_EXEC,
		.module = seam_profile_module(&l->profile, &module),
	    }) ||
	    l->profile.mappings.items[vma.mapping].module == SEAM_NONE)
		return -ENOMEM;
	return seam_live_maps_add(is_kernel ? &l->kernel :
			&l->processes.items[process].maps, &vma);
}

static int apply_comm(struct seam_live *l, const struct seam_perf_sideband *r)
{
	uint32_t thread = thread_of(l, r->comm.pid, r->comm.tid);
	uint32_t name = put(l, r->comm.comm), process;

	if (thread == SEAM_NONE || name == SEAM_NONE)
		return -ENOMEM;
	if (thread == 0)
		return 0;
	process = l->profile.threads.items[thread].process;
	l->profile.threads.items[thread].name = name;
	if (r->comm.pid == r->comm.tid)
		l->profile.processes.items[process].name = name;
	if (r->misc & PERF_RECORD_MISC_COMM_EXEC) {
		l->processes.items[process].is_own = false;
		seam_live_maps_clear(&l->processes.items[process].maps);
		return seam_live_names_ended(&l->names, r->comm.pid,
					     r->sample_id.time);
	}
	return 0;
}

static int apply_fork(struct seam_live *l, const struct seam_perf_task *task,
		      uint64_t ns)
{
	uint32_t thread, process, parent;

	/* equal ids: a thread that ran before the recording */
	if (task->pid == task->ppid) {
		return thread_of(l, task->pid, task->tid) == SEAM_NONE ?
		       -ENOMEM : 0;
	}
	parent = process_of(l, task->ppid);
	thread = thread_of(l, task->pid, task->tid);
	if (parent == SEAM_NONE || thread == SEAM_NONE)
		return -ENOMEM;
	process = l->profile.threads.items[thread].process;
	if (thread == 0 || process == parent)
		return 0;
	l->processes.items[process].is_own = l->processes.items[parent].is_own;
	l->profile.processes.items[process].name =
		l->profile.processes.items[parent].name;
	l->profile.processes.items[process].parent = parent;
	l->profile.threads.items[thread].name =
		l->profile.processes.items[parent].name;
	return seam_live_maps_copy(&l->processes.items[process].maps,
			 &l->processes.items[parent].maps) ?:
	       seam_live_names_forked(&l->names, task->ppid, task->pid, ns);
}

/* BPF programs, which come and go. */
static int apply_ksymbol(struct seam_live *l,
			 const struct seam_perf_ksymbol *symbol)
{
	struct seam_vma vma = {
		.begin = symbol->addr, .end = symbol->addr + symbol->len,
		.mapping = (uint32_t)l->profile.mappings.n,
	};

	/* one that is gone is not run; another covers its addresses */
	if (symbol->flags & 1 || !symbol->len || vma.end < vma.begin)
		return 0;
	if (!SEAM_ARRAY_ADD(&l->profile.mappings, (struct seam_mapping) {
		.start_addr = symbol->addr, .size = symbol->len, .pid = -1,
		.module = l->profile.kernel,
		.function = put(l, symbol->name),
	    }))
		return -ENOMEM;
	return seam_live_maps_add(&l->kernel, &vma);
}

static int apply(struct seam_live *l, const uint8_t *bytes)
{
	struct seam_perf_record record = seam_perf_record_at(bytes);
	struct seam_perf_sideband r;

	if (seam_perf_sideband_read(&l->events[0].attr, SEAM_NATIVE, &record,
				    &r)) {
		l->n_damaged++;
		return 0;
	}
	switch (r.type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return apply_mapping(l, &r.mapping);
	case PERF_RECORD_COMM:
		return apply_comm(l, &r);
	case PERF_RECORD_FORK:
		return apply_fork(l, &r.task, r.sample_id.time);
	case PERF_RECORD_EXIT:
		return end_thread(l, r.task.pid, r.task.tid,
				  r.sample_id.time);
	case PERF_RECORD_KSYMBOL:
		return apply_ksymbol(l, &r.ksymbol);
	}
	return 0;
}

/* ---- records as they come ---- */

static int take_sample(struct seam_live *l,
		       const struct seam_perf_record *record)
{
	const struct seam_perf_layout *first = &l->events[0].layout;
	const struct live_event *event;
	struct live_pending sample = {
		.order = (uint32_t)l->pending.n,
		.chain = SEAM_NONE,
	};
	struct seam_perf_core core = { .n_chain = 0 };
	uint64_t id = record->payload.size < 8 ? 0 :
		seam_perf_layout_u64(record->payload.data, first->id, 0);
	uint32_t i = SEAM_INDEX_FIND(&l->by_id, seam_hash_u64(id), k,
				     l->ids.items[k].id == id);

	i = i == SEAM_NONE ? 0 : l->ids.items[i].event;
	event = &l->events[i];
	if (i >= l->n_events || !seam_perf_layout_read(&event->layout,
						       record->payload, &core)) {
		l->n_damaged++;
		return 0;
	}
	sample.kind = event->kind;
	sample.event = event->event;
	sample.ns = core.time;
	sample.pid = core.pid;
	sample.tid = core.tid;
	sample.cpu = core.cpu > UINT16_MAX ? UINT16_MAX : (uint16_t)core.cpu;
	sample.weight = core.period;
	if (l->pending.n >= MAX_PENDING) {
		l->n_damaged++;
		return 0;
	}
	/* without a chain the place is one */
	if (!core.n_chain) {
		core.chain = (const uint8_t *)&core.ip;
		core.n_chain = 1;
	}
	sample.chain = seam_callchains_add(&l->chains, core.pid, core.chain,
					   core.n_chain);
	return SEAM_ARRAY_ADD(&l->pending, sample) ? 0 : -ENOMEM;
}

static bool is_applied(uint32_t type)
{
	return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 ||
	       type == PERF_RECORD_COMM || type == PERF_RECORD_FORK ||
	       type == PERF_RECORD_EXIT || type == PERF_RECORD_KSYMBOL;
}

/* The thread of the record loses its CPU, or has it. */
static int take_switch(struct seam_live *l,
		       const struct seam_perf_record *record)
{
	bool is_out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
	struct seam_bytes payload = record->payload;
	struct live_pending pending = {
		.kind = LIVE_SWITCH, .order = (uint32_t)l->pending.n,
		.state = !is_out ? SEAM_LIVE_RUNNING :
			 record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ?
			 SEAM_LIVE_PREEMPTED : SEAM_LIVE_BLOCKED,
	};
	struct seam_perf_sample_id id;

	if (seam_perf_sample_id_read(&l->events[0].attr, SEAM_NATIVE, &payload,
				     &id) < 0 || l->pending.n >= MAX_PENDING) {
		l->n_damaged++;
		return 0;
	}
	/* of an idle CPU, and of a thread that has ended */
	if (id.tid <= 0)
		return 0;
	pending.ns = id.time;
	pending.pid = id.pid;
	pending.tid = id.tid;
	return SEAM_ARRAY_ADD(&l->pending, pending) ? 0 : -ENOMEM;
}

/* To be applied in the order of time. */
static int take_sideband(struct seam_live *l,
			 const struct seam_perf_record *record)
{
	struct seam_bytes payload = record->payload;
	const uint8_t *begin = payload.data - SEAM_PERF_HEADER_BYTES;
	size_t size = payload.size + SEAM_PERF_HEADER_BYTES;
	struct seam_perf_sample_id id;
	struct live_pending pending = {
		.record = l->bytes.n, .order = (uint32_t)l->pending.n,
	};

	if (!is_applied(record->type))
		return 0;
	if (seam_perf_sample_id_read(&l->events[0].attr, SEAM_NATIVE, &payload,
				     &id) < 0 ||
	    l->bytes.n + size > MAX_PENDING_BYTES) {
		l->n_damaged++;
		return 0;
	}
	pending.ns = id.time;
	return SEAM_ARRAY_EXTEND(&l->bytes, begin, size) &&
	       SEAM_ARRAY_ADD(&l->pending, pending) ? 0 : -ENOMEM;
}

int seam_live_take(struct seam_live *l, struct seam_bytes records)
{
	int r = 0;

	for (size_t at = 0; r == 0 &&
	     records.size - at >= SEAM_PERF_HEADER_BYTES;) {
		struct seam_perf_header header;
		struct seam_perf_record record;

		memcpy(&header, records.data + at, sizeof(header));
		if (header.size < sizeof(header) ||
		    header.size > records.size - at) {
			l->n_damaged++;
			return 0;
		}
		record = seam_perf_record_at(records.data + at);
		r = record.type == PERF_RECORD_SAMPLE ?
		    take_sample(l, &record) :
		    record.type == PERF_RECORD_SWITCH ||
		    record.type == PERF_RECORD_SWITCH_CPU_WIDE ?
		    take_switch(l, &record) : take_sideband(l, &record);
		at += header.size;
	}
	return r;
}

/* ---- a step ---- */

static bool push(struct seam_live *l, const struct live_pending *from,
		 uint32_t thread, uint32_t stack, uint64_t count)
{
	struct seam_samples *s = &l->profile.samples;
	size_t i = s->n;

	if (!seam_samples_reserve(s, 1))
		return false;
	s->time_ns[i] = from->ns;
	s->thread[i] = thread;
	s->stack[i] = stack;
	s->cpu[i] = from->cpu;
	s->event[i] = (uint16_t)from->event;
	if (!seam_samples_set_weight(s, i, from->weight) ||
	    !seam_samples_set_count(s, i, count))
		return false;
	s->n++;
	return true;
}

/* Add sample @i of @from to the sum, which the profile has. */
static bool sum_up(struct seam_live *l, const struct seam_samples *from,
		   size_t i)
{
	struct seam_samples *sum = &l->profile.samples;
	uint32_t thread = from->thread[i], stack = from->stack[i];
	const struct live_pending one = {
		.event = from->event[i], .cpu = from->cpu[i],
		.weight = seam_samples_weight(from, i),
	};
	uint64_t count = seam_samples_count(from, i);
	uint64_t hash;
	uint32_t k;

	if (sum->n >= SEAM_LIVE_MAX_SUMS) {
		thread = 0;
		stack = l->other_stack;
	}
	hash = seam_hash_add(seam_hash_add(thread, stack), one.event);
	k = SEAM_INDEX_FIND(&l->by_sum, hash, n, sum->thread[n] == thread &&
			    sum->stack[n] == stack &&
			    sum->event[n] == one.event);
	if (k == SEAM_NONE) {
		k = (uint32_t)sum->n;
		/* columns from the first one on: any value may change later */
		return push(l, &one, thread, stack, 1) &&
		       (k || seam_samples_set_count(sum, k, 0)) &&
		       (k || sum->weight ||
			seam_samples_split_weight(sum, k, one.weight)) &&
		       seam_samples_set_count(sum, k, count) &&
		       seam_index_add(&l->by_sum, hash, k) == 0;
	}
	return seam_samples_set_weight(sum, k, seam_samples_weight(sum, k) +
				       one.weight) &&
	       seam_samples_set_count(sum, k, seam_samples_count(sum, k) +
				      count);
}

/* Where the sample's process is now. */
static struct seam_resolver_where place_of(const struct live_pending *sample,
					   uint32_t process)
{
	return (struct seam_resolver_where) {
		.pid = sample->pid, .process = process, .space = process,
		.time_ns = sample->ns,
	};
}

/* Its chains have other names from now on. */
static void names_changed(void *context, int32_t pid)
{
	struct seam_live *l = context;
	uint32_t process = process_of(l, pid);

	if (process != SEAM_NONE)
		l->processes.items[process].maps.n_changes++;
}

/*
 * A process reads the files, and each message costs two switches.  So stacks
 * are made at the end of a step: until then a sample has the place of each
 * address in its file, as it was mapped then.
 */

/* A stack that may not be made yet, as a number, and back. */
static uint64_t ref_of(const struct live_waiting *w)
{
	return (uint64_t)!w->is_made << 32 | w->stack;
}

static uint32_t stack_of_ref(const struct seam_live *l, uint64_t ref)
{
	return ref >> 32 ? l->stacks.items[(uint32_t)ref].stack : (uint32_t)ref;
}

/* Samples of waits and, that count nothing, of the first event. */
static int flush_waits(struct seam_live *l)
{
	for (size_t i = 0; i < l->waits.waits.n; i++) {
		const struct seam_live_wait *w = &l->waits.waits.items[i];
		const struct live_pending wait = {
			.ns = w->to_ns - w->ns, .weight = w->ns,
			.event = l->waits_event + w->is_preempted,
			.cpu = UINT16_MAX,
		}, nothing = { .ns = wait.ns, .cpu = UINT16_MAX };
		uint32_t stack = w->has_stack ? stack_of_ref(l, w->stack) :
						l->no_stack;

		if (!push(l, &wait, w->thread, stack, 1) ||
		    !push(l, &nothing, w->thread, stack, 0))
			return -ENOMEM;
	}
	l->waits.waits.n = 0;
	for (size_t i = 0; i < l->waits.runs.n; i++) {
		struct seam_live_run *run = &l->waits.runs.items[i];

		if (run->stack_ns)
			run->stack = stack_of_ref(l, run->stack);
	}
	return 0;
}

/* Make the stacks that are waiting, and add their samples in order. */
static int flush(struct seam_live *l)
{
	for (size_t i = 0; i < l->stacks.n; i++) {
		struct live_stack *s = &l->stacks.items[i];
		struct seam_callchain *chain = &l->chains.items.items[s->chain];

		s->where.located = l->located.items + s->first;
		s->stack = seam_resolver_stack(&l->resolver,
				l->chains.words.items + chain->first, chain->n,
				&s->where);
		if (s->stack == SEAM_NONE)
			return -ENOMEM;
		chain->stack = s->stack;
	}
	for (size_t i = 0; i < l->waiting.n; i++) {
		const struct live_waiting *w = &l->waiting.items[i];

		if (!push(l, &l->pending.items[w->pending], w->thread,
			  stack_of_ref(l, ref_of(w)), 1))
			return -ENOMEM;
	}
	if (flush_waits(l))
		return -ENOMEM;
	for (size_t i = 0; i < l->stacks.n; i++)
		l->waits_for.items[l->stacks.items[i].chain] = 0;
	l->stacks.n = l->waiting.n = l->located.n = 0;
	return 0;
}

/* The stack of a sample, or where it will be, with the maps as they are now. */
static int find_stack(struct seam_live *l, const struct live_pending *p,
		      uint32_t process, struct live_waiting *w)
{
	uint32_t n_changes = l->processes.items[process].maps.n_changes;
	struct live_stack stack = {
		.chain = p->chain, .first = l->located.n,
		.where = place_of(p, process),
	};
	struct seam_callchain *chain;

	w->is_made = true;
	w->stack = l->other_stack;
	if (p->chain == SEAM_NONE ||
	    l->profile.stacks.n >= SEAM_LIVE_MAX_STACKS) {
		l->n_other++;
		return 0;
	}
	if (!SEAM_ARRAY_GROW(&l->changes, l->chains.items.n) ||
	    !SEAM_ARRAY_GROW(&l->waits_for, l->chains.items.n))
		return -ENOMEM;
	chain = &l->chains.items.items[p->chain];
	w->is_made = !l->waits_for.items[p->chain];
	w->stack = w->is_made ? chain->stack :
				l->waits_for.items[p->chain] - 1;
	if (chain->space == process &&
	    l->changes.items[p->chain] == n_changes)
		return 0;
	if (!SEAM_ARRAY_RESERVE(&l->located, chain->n))
		return -ENOMEM;
	seam_resolver_locate(&l->resolver,
			     l->chains.words.items + chain->first, chain->n,
			     &stack.where, l->located.items + l->located.n);
	l->located.n += chain->n;
	if (!SEAM_ARRAY_ADD(&l->stacks, stack))
		return -ENOMEM;
	w->is_made = false;
	w->stack = (uint32_t)l->stacks.n - 1;
	l->waits_for.items[p->chain] = (uint32_t)l->stacks.n;
	chain->space = process;
	l->changes.items[p->chain] = n_changes;
	return 0;
}

static int add_sample(struct seam_live *l, const struct live_pending *p)
{
	uint32_t thread = thread_of(l, p->pid, p->tid), process;
	struct live_waiting w = {
		.pending = (uint32_t)(p - l->pending.items), .thread = thread,
	};

	if (thread == SEAM_NONE)
		return -ENOMEM;
	process = l->profile.threads.items[thread].process;
	if (l->processes.items[process].is_own)
		return 0;
	if (p->kind == LIVE_SWITCH)
		return seam_live_waits_enter(&l->waits, thread, p->state,
					     p->ns);
	if (find_stack(l, p, process, &w) ||
	    (p->kind == LIVE_STACK ?
	     seam_live_waits_stack(&l->waits, thread, ref_of(&w), p->ns) :
	     SEAM_ARRAY_ADD(&l->waiting, w) ? 0 : -ENOMEM))
		return -ENOMEM;
	return l->located.n > MAX_LOCATED ? flush(l) : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct live_pending *x = a, *y = b;

	return SEAM_COMPARE(x->ns, y->ns) ?: SEAM_COMPARE(x->order, y->order);
}

static void swap_samples(struct seam_live *l, bool to_sum)
{
	if (to_sum == l->has_sum)
		return;
	*(l->has_sum ? &l->sum : &l->step) = l->profile.samples;
	l->profile.samples = to_sum ? l->sum : l->step;
	l->has_sum = to_sum;
}

/* ---- forget what has ended ---- */

/* New ids of what is kept, by the old ones; others are 0. */
struct kept_ids {
	SEAM_ARRAY(uint32_t) threads, processes, mappings;
};

static void keep_numbers(struct seam_live *l, const struct kept_ids *ids)
{
	size_t n = 0;

	seam_index_fini(&l->by_number);
	for (size_t i = 0; i < l->numbers.n; i++) {
		struct live_number number = l->numbers.items[i];
		const uint32_t *kept = number.tid == KEYS_OF_ANY_PID ?
				       ids->processes.items :
				       ids->threads.items;

		if (number.index == SEAM_NONE)
			continue;
		number.index = kept[number.index];
		l->numbers.items[n] = number;
		(void)seam_index_add(&l->by_number,
				     hash_of(number.pid, number.tid),
				     (uint32_t)n);
		n++;
	}
	l->numbers.n = n;
}

/* Mark those that live, then number them in their order. */
static void number_kept(const struct seam_live *l, struct kept_ids *ids)
{
	uint32_t n_threads = 1, n_processes = 1;

	for (size_t i = 0; i < l->numbers.n; i++) {
		const struct live_number *number = &l->numbers.items[i];

		if (number->index == SEAM_NONE)
			continue;
		if (number->tid == KEYS_OF_ANY_PID)
			ids->processes.items[number->index] = 1;
		else
			ids->threads.items[number->index] = 1;
	}
	for (size_t i = 1; i < ids->threads.n; i++)
		if (ids->threads.items[i])
			ids->threads.items[i] = n_threads++;
	for (size_t i = 1; i < ids->processes.n; i++)
		if (ids->processes.items[i])
			ids->processes.items[i] = n_processes++;
}

/* Number the mappings of @maps that have no number yet. */
static void keep_mappings(struct seam_live_maps *maps, struct kept_ids *ids,
			  uint32_t *n)
{
	for (size_t i = 0; i < maps->vmas.n; i++) {
		uint32_t *id = &maps->vmas.items[i].mapping;

		if (ids->mappings.items[*id] == SEAM_NONE)
			ids->mappings.items[*id] = (*n)++;
		*id = ids->mappings.items[*id];
	}
}

/* Mapping 0, of the kernel, stays. */
static int move_mappings(struct seam_live *l, struct kept_ids *ids)
{
	SEAM_ARRAY(struct seam_mapping) kept = { 0 };
	uint32_t n = 1;

	memset(ids->mappings.items, 0xff,
	       ids->mappings.n * sizeof(*ids->mappings.items));
	ids->mappings.items[0] = 0;
	keep_mappings(&l->kernel, ids, &n);
	for (size_t i = 0; i < l->processes.n; i++)
		keep_mappings(&l->processes.items[i].maps, ids, &n);
	if (!SEAM_ARRAY_GROW(&kept, n))
		return -ENOMEM;
	for (size_t i = 0; i < ids->mappings.n; i++)
		if (ids->mappings.items[i] != SEAM_NONE)
			kept.items[ids->mappings.items[i]] =
				l->profile.mappings.items[i];
	memcpy(l->profile.mappings.items, kept.items,
	       n * sizeof(*kept.items));
	l->profile.mappings.n = n;
	free(kept.items);
	return 0;
}

static void add_times(struct seam_thread_time *to,
		      const struct seam_thread_time *from)
{
	to->running_ns += from->running_ns;
	to->blocked_ns += from->blocked_ns;
	to->preempted_ns += from->preempted_ns;
}

static void move_threads(struct seam_live *l, const struct kept_ids *ids)
{
	struct seam_profile *p = &l->profile;
	size_t n = 0;

	for (size_t i = 0; i < p->threads.n; i++) {
		struct seam_thread thread = p->threads.items[i];
		bool is_kept = i == 0 || ids->threads.items[i];

		if (i < l->waits.runs.n && is_kept)
			l->waits.runs.items[n] = l->waits.runs.items[i];
		if (i < l->times_sum.n && is_kept)
			l->times_sum.items[n] = l->times_sum.items[i];
		else if (i < l->times_sum.n)
			add_times(&l->times_sum.items[0],
				  &l->times_sum.items[i]);
		if (!is_kept)
			continue;
		thread.process = ids->processes.items[thread.process];
		p->threads.items[n++] = thread;
	}
	p->threads.n = n;
	if (l->waits.runs.n > n)
		l->waits.runs.n = l->waits.times.n = n;
	if (l->times_sum.n > n)
		l->times_sum.n = n;
	l->times_step.n = 0;
}

static void move_processes(struct seam_live *l, const struct kept_ids *ids)
{
	const uint32_t *to = ids->processes.items;
	struct seam_profile *p = &l->profile;
	size_t n = 0;

	for (size_t i = 0; i < p->processes.n; i++) {
		struct seam_process process = p->processes.items[i];

		if (i && !to[i]) {
			seam_live_maps_clear(&l->processes.items[i].maps);
			continue;
		}
		if (process.parent != SEAM_NONE)
			process.parent = to[process.parent] ?
					 to[process.parent] : SEAM_NONE;
		p->processes.items[n] = process;
		l->processes.items[n++] = l->processes.items[i];
	}
	p->processes.n = l->processes.n = n;
	l->dying.n = l->dead.n = 0;
}

/* Add the sums up again: of threads that are kept, and of all others. */
static bool move_sums(struct seam_live *l, const struct kept_ids *ids)
{
	struct seam_samples old;
	bool r = true;

	swap_samples(l, true);
	old = l->profile.samples;
	l->profile.samples = (struct seam_samples) { 0 };
	seam_index_fini(&l->by_sum);
	for (size_t i = 0; r && i < old.n; i++) {
		old.thread[i] = ids->threads.items[old.thread[i]];
		r = sum_up(l, &old, i);
	}
	seam_samples_fini(&old);
	return r;
}

/*
 * Once half of the room is taken.  Threads, processes and mappings get other
 * ids, so all that was found by their ids is looked up again, once.
 */
static int forget_ended(struct seam_live *l)
{
	struct kept_ids ids = { 0 };
	int r = -ENOMEM;

	if (l->profile.threads.n < SEAM_LIVE_MAX_THREADS / 2 &&
	    l->profile.mappings.n < MAX_MAPPINGS / 2)
		return 0;
	if (!SEAM_ARRAY_GROW(&ids.threads, l->profile.threads.n) ||
	    !SEAM_ARRAY_GROW(&ids.processes, l->profile.processes.n) ||
	    !SEAM_ARRAY_GROW(&ids.mappings, l->profile.mappings.n))
		goto out;
	number_kept(l, &ids);
	keep_numbers(l, &ids);
	move_threads(l, &ids);
	move_processes(l, &ids);
	if (!move_sums(l, &ids) || move_mappings(l, &ids))
		goto out;
	seam_resolver_fini(&l->resolver);
	r = init_resolver(l);
	/* samples of the step that begins have chains already */
	for (size_t i = 0; i < l->chains.items.n; i++)
		l->chains.items.items[i].space = SEAM_NONE;
out:
	free(ids.threads.items);
	free(ids.processes.items);
	free(ids.mappings.items);
	return r;
}

/* A callchain is resolved once while it is known, so forget them rarely. */
static void forget_chains(struct seam_live *l)
{
	if (l->chains.items.n < SEAM_LIVE_MAX_CHAINS / 2)
		return;
	seam_callchains_fini(&l->chains);
	l->chains.max_items = SEAM_LIVE_MAX_CHAINS;
	l->changes.n = l->waits_for.n = 0;
}

/* The times of the step are added to the sum. */
static int take_times(struct seam_live *l)
{
	size_t n = l->profile.threads.n;

	if (!SEAM_ARRAY_GROW(&l->waits.times, n) ||
	    !SEAM_ARRAY_GROW(&l->times_sum, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		add_times(&l->times_sum.items[i], &l->waits.times.items[i]);
	l->times_step.n = 0;
	if (!SEAM_ARRAY_EXTEND(&l->times_step, l->waits.times.items, n))
		return -ENOMEM;
	seam_live_waits_next(&l->waits);
	return 0;
}

/* Those of the step, or of all; without memory none. */
static void show_times(struct seam_live *l)
{
	l->profile.thread_times.n = 0;
	if (l->waits_event)
		(void)SEAM_ARRAY_EXTEND(&l->profile.thread_times, l->has_sum ?
				l->times_sum.items : l->times_step.items,
				l->times_step.n);
}

int seam_live_step(struct seam_live *l, uint64_t now_ns)
{
	bool had_sum = l->has_sum;
	int r = forget_ended(l);

	swap_samples(l, false);
	l->profile.samples.n = 0;
	SEAM_ARRAY_SORT(&l->pending, by_time);
	for (size_t i = 0; r == 0 && i < l->pending.n; i++) {
		const struct live_pending *p = &l->pending.items[i];

		r = p->kind != LIVE_SIDEBAND ? add_sample(l, p) :
		    apply(l, l->bytes.items + p->record);
	}
	if (r == 0)
		r = seam_live_waits_step(&l->waits, now_ns);
	if (r == 0)
		r = seam_live_names_update(&l->names, names_changed, l);
	if (r == 0)
		r = flush(l);
	l->pending.n = l->bytes.n = 0;
	free_dead(l);
	forget_chains(l);
	swap_samples(l, true);
	for (size_t i = 0; r == 0 && !l->has_no_sum && i < l->step.n; i++)
		r = sum_up(l, &l->step, i) ? 0 : -ENOMEM;
	swap_samples(l, had_sum);
	if (r == 0 && l->waits_event)
		r = take_times(l);
	show_times(l);
	return r;
}

void seam_live_select(struct seam_live *l, bool all)
{
	swap_samples(l, all);
	show_times(l);
}

/* ---- begin and end ---- */

/* Thread 0 and process 0, and a stack, for all beyond the limits. */
static int add_other(struct seam_live *l)
{
	uint32_t name = put(l, OTHER), function, frame;

	function = seam_profile_function(&l->profile, &(struct seam_function) {
		.name = name, .layer = SEAM_LAYER_NATIVE, .is_named = true,
	});
	frame = function == SEAM_NONE ? SEAM_NONE :
		seam_profile_frame(&l->profile, &(struct seam_frame) {
			.function = function, .code = SEAM_NONE,
		});
	l->other_stack = frame == SEAM_NONE ? SEAM_NONE :
			 seam_profile_stack(&l->profile, 0, frame);
	return l->other_stack != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&l->processes, (struct live_process) {
			.n_threads = 1 }) &&
	       SEAM_ARRAY_ADD(&l->profile.processes, (struct seam_process) {
			.name = name, .end_ns = UINT64_MAX,
			.parent = SEAM_NONE }) &&
	       SEAM_ARRAY_ADD(&l->profile.threads, (struct seam_thread) {
			.name = name, .end_ns = UINT64_MAX }) ? 0 : -ENOMEM;
}

static int add_kernel(struct seam_live *l, const struct seam_kernel *kernel)
{
	struct seam_profile_module module = {
		.path = put(l, "[kernel.kallsyms]"), .pid = -1,
		.kind = SEAM_MODULE_KERNEL, .text_addr = kernel->text_addr,
		.build_id_size = (uint8_t)kernel->build_id_size,
	};

	if (kernel->build_id_size)
		memcpy(module.build_id, kernel->build_id,
		       kernel->build_id_size);
	l->profile.kernel = seam_profile_module(&l->profile, &module);
	l->profile.boot_id = put(l, kernel->boot_id);
	/* mapping 0: of kernel addresses without one */
	return l->profile.kernel != SEAM_NONE &&
	       SEAM_ARRAY_ADD(&l->profile.mappings, (struct seam_mapping) {
			.module = l->profile.kernel, .pid = -1 }) ?
	       0 : -ENOMEM;
}

struct seam_live *seam_live_new(const struct seam_symbols_options *options,
				const struct seam_kernel *kernel)
{
	struct seam_live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->chains.max_items = SEAM_LIVE_MAX_CHAINS;
	l->symbols = seam_symbols_new(options);
	if (!l->symbols || seam_profile_init(&l->profile) ||
	    add_kernel(l, kernel) || add_other(l) ||
	    seam_live_names_init(&l->names, &l->profile))
		goto fail;
	if (init_resolver(l))
		goto fail;
	return l;
fail:
	seam_live_free(l);
	return NULL;
}

void seam_live_free(struct seam_live *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->processes.n; i++)
		seam_live_maps_clear(&l->processes.items[i].maps);
	seam_live_maps_clear(&l->kernel);
	swap_samples(l, false);
	seam_samples_fini(&l->sum);
	seam_resolver_fini(&l->resolver);
	seam_callchains_fini(&l->chains);
	seam_live_names_fini(&l->names);
	seam_profile_fini(&l->profile);
	seam_symbols_free(l->symbols);
	free(l->processes.items);
	free(l->numbers.items);
	seam_index_fini(&l->by_number);
	free(l->dying.items);
	free(l->dead.items);
	free(l->ids.items);
	seam_index_fini(&l->by_id);
	free(l->changes.items);
	free(l->waits_for.items);
	free(l->stacks.items);
	free(l->waiting.items);
	free(l->located.items);
	seam_live_waits_fini(&l->waits);
	free(l->times_step.items);
	free(l->times_sum.items);
	free(l->bytes.items);
	free(l->pending.items);
	seam_index_fini(&l->by_sum);
	free(l);
}

/* Of the profile; its number goes to *@number. */
static int add_profile_event(struct seam_live *l, const char *name,
			     enum seam_unit unit, bool is_wait,
			     uint32_t *number)
{
	*number = (uint32_t)l->profile.events.n;
	return SEAM_ARRAY_ADD(&l->profile.events, (struct seam_profile_event) {
		.name = put(l, name), .unit = (uint8_t)unit,
		.is_wait = is_wait }) ? 0 : -ENOMEM;
}

/* Of waits without a stack. */
static int make_no_stack(struct seam_live *l)
{
	uint32_t frame = seam_profile_marker(&l->profile,
					     "[stack not recorded]");

	l->no_stack = frame == SEAM_NONE ? SEAM_NONE :
		      seam_profile_stack(&l->profile, 0, frame);
	return l->no_stack == SEAM_NONE ? -ENOMEM : 0;
}

/* The events off-cpu and preempted, and their stack without one. */
static int add_waits(struct seam_live *l)
{
	uint32_t preempted;

	return make_no_stack(l) ?:
	       add_profile_event(l, "off-cpu", SEAM_UNIT_NS, true,
				 &l->waits_event) ?:
	       add_profile_event(l, "preempted", SEAM_UNIT_NS, true,
				 &preempted);
}

int seam_live_add_event(struct seam_live *l,
			const struct seam_live_event *event)
{
	struct live_event *e = &l->events[l->n_events];

	if (l->n_events == SEAM_LIVE_MAX_EVENTS)
		return -EOVERFLOW;
	*e = (struct live_event) {
		.attr = event->attr, .kind = LIVE_SAMPLE,
		.layout = seam_perf_layout_make(&event->attr, SEAM_NATIVE),
	};
	l->n_events++;
	if (strcmp(event->name, SEAM_SWITCH_STACK_EVENT) == 0 ||
	    strcmp(event->name, SEAM_BLOCKED_STACK_EVENT) == 0) {
		e->kind = LIVE_STACK;
		return 0;
	}
	if (strcmp(event->name, SEAM_SWITCH_EVENT) == 0)
		return add_waits(l);
	return add_profile_event(l, event->name,
				 seam_perf_attr_is_clock(&event->attr) ?
				 SEAM_UNIT_NS : SEAM_UNIT_COUNT, false,
				 &e->event);
}

int seam_live_add_id(struct seam_live *l, uint64_t id, uint32_t event)
{
	return SEAM_INDEX_APPEND(&l->by_id, seam_hash_u64(id), &l->ids,
				 (struct live_id) { id, event }) == SEAM_NONE ?
	       -ENOMEM : 0;
}

void seam_live_follow_names(struct seam_live *l, seam_live_owner *owner)
{
	l->names.owner = owner;
}

void seam_live_without_sum(struct seam_live *l)
{
	l->has_no_sum = true;
}

void seam_live_forget_files(struct seam_live *l)
{
	seam_symbols_rest(l->symbols);
}

void seam_live_set_min_wait(struct seam_live *l, uint64_t min_ns)
{
	l->waits.min_ns = min_ns;
}

int seam_live_exclude(struct seam_live *l, int32_t pid)
{
	uint32_t process = process_of(l, pid);

	if (process == SEAM_NONE)
		return -ENOMEM;
	l->processes.items[process].is_own = true;
	return 0;
}

/* ---- go on with another object ---- */

static int copy_events(struct seam_live *to, const struct seam_live *from)
{
	const struct seam_profile *p = &from->profile;
	int r = 0;

	/* in this order: of events and of the profile */
	for (size_t i = 0; r == 0 && i < p->events.n; i++)
		r = SEAM_ARRAY_ADD(&to->profile.events,
				   (struct seam_profile_event) {
			.name = put(to, seam_profile_text(p,
						p->events.items[i].name)),
			.unit = p->events.items[i].unit,
			.is_wait = p->events.items[i].is_wait }) ? 0 : -ENOMEM;
	memcpy(to->events, from->events, sizeof(to->events));
	to->n_events = from->n_events;
	to->waits_event = from->waits_event;
	for (size_t i = 0; r == 0 && i < from->ids.n; i++)
		r = seam_live_add_id(to, from->ids.items[i].id,
				     from->ids.items[i].event);
	if (r == 0 && to->waits_event)
		r = make_no_stack(to);
	return r;
}

static int copy_maps(struct seam_live *to, struct seam_live_maps *maps,
		     const struct seam_live *from,
		     const struct seam_live_maps *old)
{
	for (size_t i = 0; i < old->vmas.n; i++) {
		struct seam_vma vma = old->vmas.items[i];
		struct seam_mapping m = from->profile.mappings
						.items[vma.mapping];
		struct seam_profile_module module =
			from->profile.modules.items[m.module];
		const char *path = seam_profile_text(&from->profile,
						     module.path);

		module.path = put(to, path);
		m.module = m.module == from->profile.kernel ?
			   to->profile.kernel :
			   seam_profile_module(&to->profile, &module);
		m.function = m.function ? put(to, seam_profile_text(
					&from->profile, m.function)) : 0;
		vma.mapping = (uint32_t)to->profile.mappings.n;
		if (m.module == SEAM_NONE || m.function == SEAM_NONE ||
		    !SEAM_ARRAY_ADD(&to->profile.mappings, m) ||
		    !SEAM_ARRAY_ADD(&maps->vmas, vma) ||
		    (m.pid != -1 &&
		     seam_live_names_mapped(&to->names, m.pid, path,
					    m.is_executable && module.kind ==
					    SEAM_MODULE_ANON)))
			return -ENOMEM;
	}
	maps->n_changes++;
	return 0;
}

static int copy_process(struct seam_live *to, const struct seam_live *from,
			int32_t pid, uint32_t old)
{
	const struct seam_process *process =
		&from->profile.processes.items[old];
	uint32_t i = process_of(to, pid);

	if (i == SEAM_NONE)
		return -ENOMEM;
	to->profile.processes.items[i].name =
		put(to, seam_profile_text(&from->profile, process->name));
	if (i == 0)
		return 0;
	to->processes.items[i].is_own = from->processes.items[old].is_own;
	return copy_maps(to, &to->processes.items[i].maps, from,
			 &from->processes.items[old].maps);
}

static int copy_thread(struct seam_live *to, const struct seam_live *from,
		       const struct live_number *number)
{
	const struct seam_thread *thread =
		&from->profile.threads.items[number->index];
	uint32_t i = thread_of(to, number->pid, number->tid);

	if (i == SEAM_NONE)
		return -ENOMEM;
	to->profile.threads.items[i].name =
		put(to, seam_profile_text(&from->profile, thread->name));
	if (number->index >= from->waits.runs.n)
		return 0;
	if (!SEAM_ARRAY_GROW(&to->waits.runs, (size_t)i + 1) ||
	    !SEAM_ARRAY_GROW(&to->waits.times, to->waits.runs.n))
		return -ENOMEM;
	to->waits.runs.items[i] = from->waits.runs.items[number->index];
	to->waits.runs.items[i].stack_ns = 0;
	return 0;
}

struct seam_live *seam_live_renewed(const struct seam_live *from,
				    const struct seam_symbols_options *options,
				    const struct seam_kernel *kernel)
{
	struct seam_live *to = seam_live_new(options, kernel);
	int r = to ? copy_events(to, from) : -ENOMEM;

	if (!to)
		return NULL;
	to->names.owner = from->names.owner;
	to->has_no_sum = from->has_no_sum;
	to->waits.min_ns = from->waits.min_ns;
	to->n_other = from->n_other;
	to->n_damaged = from->n_damaged;
	if (r == 0)
		r = copy_maps(to, &to->kernel, from, &from->kernel);
	for (size_t i = 0; r == 0 && i < from->numbers.n; i++) {
		const struct live_number *number = &from->numbers.items[i];

		if (number->index == SEAM_NONE || number->index == 0)
			continue;
		r = number->tid == KEYS_OF_ANY_PID ?
		    copy_process(to, from, number->pid, number->index) :
		    copy_thread(to, from, number);
	}
	if (r == 0)
		return to;
	seam_live_free(to);
	return NULL;
}

const struct seam_profile *seam_live_profile(const struct seam_live *l)
{
	return &l->profile;
}

uint64_t seam_live_n_other(const struct seam_live *l)
{
	return l->n_other;
}

uint64_t seam_live_n_damaged(const struct seam_live *l)
{
	return l->n_damaged;
}
