/* SPDX-License-Identifier: MIT */
/* sideband.c - collect, then sort and replay; see sideband.h */
#include "model/perf/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KERNEL_NAME "[kernel.kallsyms]"

/* A build id that the header lists. */
struct seam_listed_id {
	uint32_t path;			/* string */
	uint8_t id[20];
	uint8_t size;
};

/* Code of the kernel that was added or removed. */
struct seam_kernel_change {
	uint64_t time_ns, order;
	uint64_t begin, end;
	uint32_t mapping;		/* SEAM_NONE: removed */
};

static uint32_t put(struct seam_sideband *sb, const char *text)
{
	uint32_t string = seam_strings_put(&sb->profile->strings, text);

	if (string == SEAM_NONE)
		sb->error = -ENOMEM;
	return string;
}

/* -- modules and mappings ----------------------------------------------- */

static uint32_t add_module(struct seam_sideband *sb,
			   const struct seam_profile_module *module)
{
	uint32_t id = seam_profile_module(sb->profile, module);

	if (id != SEAM_NONE)
		return id;
	sb->error = -ENOMEM;
	return 0;
}

/* The number of a new mapping. */
static uint32_t add_mapping(struct seam_sideband *sb,
			    struct seam_mapping mapping)
{
	struct seam_mapping *slot = SEAM_ARRAY_PUSH(&sb->profile->mappings);

	if (slot)
		*slot = mapping;
	else
		sb->error = -ENOMEM;
	return (uint32_t)(sb->profile->mappings.n - 1);
}

static bool is_kernel_name(const char *filename)
{
	return strncmp(filename, KERNEL_NAME, strlen(KERNEL_NAME)) == 0;
}

static struct seam_profile_module *kernel_of(struct seam_sideband *sb)
{
	return &sb->profile->modules.items[sb->profile->kernel];
}

static void set_build_id(struct seam_profile_module *module,
			 const uint8_t *id, size_t size)
{
	if (size == 0 || size > sizeof(module->build_id))
		return;
	memcpy(module->build_id, id, size);
	module->build_id_size = (uint8_t)size;
}

/* -- the header --------------------------------------------------------- */

/* Of a KVM guest: its kernel and its files are not this machine's. */
static bool is_of_kvm(uint16_t misc)
{
	misc &= PERF_RECORD_MISC_CPUMODE_MASK;
	return misc == PERF_RECORD_MISC_GUEST_KERNEL ||
	       misc == PERF_RECORD_MISC_GUEST_USER;
}

/* simpleperf writes zeros for a file without a build id. */
static bool is_zero(const uint8_t *id, size_t size)
{
	while (size > 0 && id[size - 1] == 0)
		size--;
	return size == 0;
}

static bool take_build_id(void *context, const struct seam_perf_build_id *id)
{
	struct seam_sideband *sb = context;
	struct seam_listed_id *slot;

	if (is_of_kvm(id->misc) || is_zero(id->build_id, id->build_id_size))
		return true;
	if (is_kernel_name(id->filename)) {
		set_build_id(kernel_of(sb), id->build_id, id->build_id_size);
		return true;
	}
	slot = SEAM_ARRAY_PUSH(&sb->build_ids);
	if (!slot) {
		sb->error = -ENOMEM;
		return false;
	}
	slot->path = put(sb, id->filename);
	slot->size = (uint8_t)id->build_id_size;
	memcpy(slot->id, id->build_id, slot->size);
	return true;
}

static int by_path(const void *a, const void *b)
{
	const struct seam_listed_id *x = a, *y = b;

	return x->path < y->path ? -1 : x->path > y->path;
}

int seam_sideband_init(struct seam_sideband *sb,
		       const struct seam_kernel *kernel)
{
	uint32_t space = seam_spaces_add(&sb->kernel);

	sb->profile->kernel = add_module(sb, &(struct seam_profile_module) {
		.path = put(sb, KERNEL_NAME), .kind = SEAM_MODULE_KERNEL,
		.pid = -1, .text_addr = kernel->text_addr,
	});
	set_build_id(kernel_of(sb), kernel->build_id, kernel->build_id_size);
	add_mapping(sb, (struct seam_mapping) {
		.module = sb->profile->kernel, .pid = -1,
	});
	seam_perf_data_build_ids(sb->data, take_build_id, sb);
	if (sb->build_ids.n)
		qsort(sb->build_ids.items, sb->build_ids.n,
		      sizeof(*sb->build_ids.items), by_path);
	return space == SEAM_NONE ? -ENOMEM : sb->error;
}

/* -- records ------------------------------------------------------------ */

static void change(struct seam_sideband *sb, struct seam_change c)
{
	c.order = sb->order++;
	if (seam_tasks_change(&sb->tasks, &c))
		sb->error = -ENOMEM;
}

/*
 * MMAP of pid -1: the kernel's text, or one of its modules.  These hold from
 * the start, whenever they are recorded; KSYMBOLs then cover them.
 */
static void take_kernel_mapping(struct seam_sideband *sb,
				const struct seam_perf_mapping *m)
{
	bool is_core = is_kernel_name(m->filename);
	struct seam_profile_module *kernel = kernel_of(sb);
	uint32_t mapping;

	if (is_core)
		kernel->text_addr = m->pgoff;
	if (is_core && m->build_id)
		set_build_id(kernel, m->build_id, m->build_id_size);
	mapping = add_mapping(sb, (struct seam_mapping) {
		.start_addr = m->addr, .size = m->len, .pgoff = m->pgoff,
		.pid = -1, .module = is_core ? sb->profile->kernel :
			add_module(sb, &(struct seam_profile_module) {
				.path = put(sb, m->filename), .pid = -1,
				.kind = SEAM_MODULE_KERNEL_MODULE,
			}),
	});
	if (seam_spaces_map(&sb->kernel, 0, 0, m->addr, m->addr + m->len,
			    mapping))
		sb->error = -ENOMEM;
}

/* The best source of a build id: the record, the header, the bundle. */
static void find_build_id(const struct seam_sideband *sb,
			  const struct seam_perf_mapping *m,
			  struct seam_profile_module *module)
{
	const struct seam_listed_id key = { .path = module->path };
	const struct seam_listed_id *listed = sb->build_ids.n == 0 ? NULL :
		bsearch(&key, sb->build_ids.items, sb->build_ids.n,
			sizeof(key), by_path);

	if (m->build_id)
		set_build_id(module, m->build_id, m->build_id_size);
	else if (listed)
		set_build_id(module, listed->id, listed->size);
	else if (module->kind == SEAM_MODULE_VDSO)
		set_build_id(module, sb->vdso_build_id.data,
			     sb->vdso_build_id.size);
}

static void take_user_mapping(struct seam_sideband *sb, uint64_t time_ns,
			      const struct seam_perf_mapping *m)
{
	struct seam_profile_module module = {
		.kind = m->is_jit_symfile ? SEAM_MODULE_ANON :
			(uint8_t)seam_module_kind_of(m->filename),
		.pid = m->pid, .path = put(sb, m->filename),
	};
	int r = 0;

	find_build_id(sb, m, &module);
	if (module.kind == SEAM_MODULE_FILE)
		seam_origin_identify(&sb->origin, m, time_ns, &module);
	change(sb, (struct seam_change) {
		.kind = SEAM_CHANGE_MAP, .time_ns = time_ns, .pid = m->pid,
		.tid = m->tid, .addr = m->addr, .len = m->len,
		.mapping = add_mapping(sb, (struct seam_mapping) {
			.start_addr = m->addr, .size = m->len,
			.pgoff = m->pgoff, .from_ns = time_ns, .pid = m->pid,
			.module = add_module(sb, &module),
		}),
	});
	if (module.kind == SEAM_MODULE_ANON && m->prot & PROT_EXEC)
		r = seam_jit_sources_anonymous(sb->jit, m->pid);
	else if (module.kind == SEAM_MODULE_FILE)
		r = seam_jit_sources_mapped(sb->jit, m->pid, m->filename);
	if (r < 0)
		sb->error = r;
}

static bool take_mapping(struct seam_sideband *sb,
			 const struct seam_sideband_record *record)
{
	struct seam_perf_mapping m;

	if (seam_perf_mapping_read(record->record.type, record->record.misc,
				   record->record.payload, sb->data->endian,
				   &m))
		return false;
	if (is_of_kvm(record->record.misc))
		return true;
	if (m.len > UINT64_MAX - m.addr)
		m.len = UINT64_MAX - m.addr;
	if (m.pid == -1)
		take_kernel_mapping(sb, &m);
	else
		take_user_mapping(sb, record->sample_id.time, &m);
	return true;
}

/* The fields of a record whose table is that of @type.  False: damaged. */
static bool read_record(const struct seam_sideband *sb, uint32_t type,
			const struct seam_sideband_record *record, void *out)
{
	return seam_perf_record_read(seam_perf_record_table(type, 0),
				     record->record.payload, sb->data->endian,
				     out) == 0;
}

static bool take_comm(struct seam_sideband *sb,
		      const struct seam_sideband_record *record)
{
	bool is_exec = record->record.misc & PERF_RECORD_MISC_COMM_EXEC;
	uint64_t time_ns = record->sample_id.time;
	struct seam_perf_comm comm;

	if (!read_record(sb, PERF_RECORD_COMM, record, &comm))
		return false;
	if (is_exec && seam_jit_code_exec(sb->jit->code, comm.pid, time_ns))
		sb->error = -ENOMEM;
	change(sb, (struct seam_change) {
		.kind = is_exec ? SEAM_CHANGE_EXEC : SEAM_CHANGE_NAME,
		.time_ns = time_ns, .pid = comm.pid, .tid = comm.tid,
		.name = put(sb, comm.comm),
	});
	return true;
}

static bool take_task(struct seam_sideband *sb,
		      const struct seam_sideband_record *record)
{
	bool is_fork = record->record.type == PERF_RECORD_FORK;
	uint64_t time_ns = record->sample_id.time;
	struct seam_perf_task task;

	if (!read_record(sb, PERF_RECORD_FORK, record, &task))
		return false;
	if (is_fork && task.pid != task.ppid &&
	    seam_jit_code_fork(sb->jit->code, task.ppid, task.pid, time_ns))
		sb->error = -ENOMEM;
	/* Equal ids: a thread that existed when recording began. */
	if (is_fork && task.pid == task.ppid && task.tid == task.ptid)
		return true;
	change(sb, (struct seam_change) {
		.kind = is_fork ? SEAM_CHANGE_FORK : SEAM_CHANGE_EXIT,
		.time_ns = time_ns, .pid = task.pid, .tid = task.tid,
		.ppid = task.ppid, .ptid = task.ptid,
	});
	return true;
}

#define KSYMBOL_UNREGISTER 1	/* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */

static bool take_ksymbol(struct seam_sideband *sb,
			 const struct seam_sideband_record *record)
{
	struct seam_perf_ksymbol symbol;
	struct seam_kernel_change *c;

	if (!read_record(sb, PERF_RECORD_KSYMBOL, record, &symbol))
		return false;
	c = SEAM_ARRAY_PUSH(&sb->kernel_changes);
	if (!c) {
		sb->error = -ENOMEM;
		return true;
	}
	*c = (struct seam_kernel_change) {
		.time_ns = record->sample_id.time, .order = sb->order++,
		.begin = symbol.addr, .end = symbol.addr + symbol.len,
		.mapping = symbol.flags & KSYMBOL_UNREGISTER ? SEAM_NONE :
			add_mapping(sb, (struct seam_mapping) {
				.start_addr = symbol.addr, .size = symbol.len,
				.from_ns = record->sample_id.time, .pid = -1,
				.module = sb->profile->kernel,
				.function = put(sb, symbol.name),
			}),
	};
	return true;
}

/*
 * The kernel reports loss twice: LOST is in the ring where records are missing,
 * side-band among them; LOST_SAMPLES counts one event up to the end.  Neither
 * contains the other, so the larger is reported.
 */
static bool take_lost(struct seam_sideband *sb,
		      const struct seam_sideband_record *record)
{
	struct seam_cursor c = seam_cursor_make(record->record.payload.data,
						record->record.payload.size,
						sb->data->endian);
	bool by_event = record->record.type == PERF_RECORD_LOST_SAMPLES;
	uint64_t id = by_event ? record->sample_id.id : seam_cursor_u64(&c);
	uint64_t n = seam_cursor_u64(&c);
	uint32_t event = seam_perf_data_event(sb->data, id);

	if (c.error)
		return false;
	if (!by_event)
		sb->n_lost_ring += n;
	else if (event != SEAM_NONE)
		sb->profile->events.items[event].n_lost += n;
	return true;
}

/* Of a hardware trace: only that it is there, and whether it is complete. */
static bool take_aux(struct seam_sideband *sb,
		     const struct seam_sideband_record *record)
{
	struct seam_perf_aux aux;

	if (!read_record(sb, PERF_RECORD_AUX, record, &aux))
		return false;
	sb->aux.n_bytes += aux.aux_size;
	sb->aux.n_truncated += !!(aux.flags & PERF_AUX_FLAG_TRUNCATED);
	sb->aux.n_partial += !!(aux.flags & PERF_AUX_FLAG_PARTIAL);
	sb->aux.n_collision += !!(aux.flags & PERF_AUX_FLAG_COLLISION);
	return true;
}

bool seam_sideband_take(struct seam_sideband *sb,
			const struct seam_sideband_record *record)
{
	switch (record->record.type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return take_mapping(sb, record);
	case PERF_RECORD_COMM:
		return take_comm(sb, record);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return take_task(sb, record);
	case PERF_RECORD_KSYMBOL:
		return take_ksymbol(sb, record);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return take_lost(sb, record);
	case PERF_RECORD_AUX:
		return take_aux(sb, record);
	case PERF_RECORD_THROTTLE:
		sb->is_throttled = true;
		return true;
	}
	return true;
}

/* -- the end ------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
	const struct seam_kernel_change *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Rings of several CPUs are not in order: sort first, then replay. */
static int seal_kernel(struct seam_sideband *sb)
{
	int r = 0;

	if (sb->kernel_changes.n)
		qsort(sb->kernel_changes.items, sb->kernel_changes.n,
		      sizeof(*sb->kernel_changes.items), by_time);
	for (size_t i = 0; r == 0 && i < sb->kernel_changes.n; i++) {
		const struct seam_kernel_change *c =
			&sb->kernel_changes.items[i];

		r = seam_spaces_map(&sb->kernel, 0, c->time_ns, c->begin,
				    c->end, c->mapping);
	}
	return r ? r : seam_spaces_seal(&sb->kernel);
}

int seam_sideband_seal(struct seam_sideband *sb)
{
	int r = sb->error;

	if (r == 0)
		r = seam_jit_sources_seal(sb->jit);
	if (r == 0)
		r = seam_tasks_seal(&sb->tasks, sb->profile);
	return r ? r : seal_kernel(sb);
}

void seam_sideband_fini(struct seam_sideband *sb)
{
	free(sb->build_ids.items);
	free(sb->kernel_changes.items);
	seam_tasks_fini(&sb->tasks);
	seam_spaces_fini(&sb->kernel);
}
