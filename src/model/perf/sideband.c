/* SPDX-License-Identifier: MIT */
/* sideband.c - collect, then sort and replay; see sideband.h */
#include "model/perf/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "model/profile/timeline.h"

#define KERNEL_NAME "[kernel.kallsyms]"

/* A build id that the header or a record lists. */
struct seam_listed_id {
	uint32_t path;			/* string */
	uint8_t id[20];
	uint8_t size;
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
	if (!SEAM_ARRAY_ADD(&sb->profile->mappings, mapping))
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

/* In a KVM guest, whose kernel and files are not those of this machine. */
static bool is_of_kvm(uint16_t misc)
{
	misc &= PERF_RECORD_MISC_CPUMODE_MASK;
	return misc == PERF_RECORD_MISC_GUEST_KERNEL ||
	       misc == PERF_RECORD_MISC_GUEST_USER;
}

static bool take_build_id(void *context, const struct seam_perf_build_id *id)
{
	struct seam_sideband *sb = context;
	struct seam_listed_id listed = {
		.size = (uint8_t)id->build_id_size,
	};
	static const uint8_t zeros[sizeof(listed.id)];
	const struct seam_listed_id *all;

	/* simpleperf writes zeros for a file without a build id */
	if (is_of_kvm(id->misc) ||
	    memcmp(id->build_id, zeros, id->build_id_size) == 0)
		return true;
	if (is_kernel_name(id->filename)) {
		set_build_id(kernel_of(sb), id->build_id, id->build_id_size);
		return true;
	}
	listed.path = put(sb, id->filename);
	memcpy(listed.id, id->build_id, listed.size);
	all = sb->build_ids.items;
	if (SEAM_INDEX_INTERN(&sb->by_path, seam_hash_u64(listed.path),
			      &sb->build_ids, i, all[i].path == listed.path,
			      listed) == SEAM_NONE)
		sb->error = -ENOMEM;
	return sb->error == 0;
}

int seam_sideband_init(struct seam_sideband *sb,
		       const struct seam_kernel *kernel)
{
	uint32_t space = seam_spaces_add(&sb->tasks.kernel);

	sb->profile->kernel = add_module(sb, &(struct seam_profile_module) {
		.path = put(sb, KERNEL_NAME), .kind = SEAM_MODULE_KERNEL,
		.pid = -1, .text_addr = kernel->text_addr,
	});
	set_build_id(kernel_of(sb), kernel->build_id, kernel->build_id_size);
	add_mapping(sb, (struct seam_mapping) {
		.module = sb->profile->kernel, .pid = -1,
	});
	seam_perf_data_build_ids(sb->data, take_build_id, sb);
	return space == SEAM_NONE ? -ENOMEM : sb->error;
}

/* -- records ------------------------------------------------------------ */

static void change(struct seam_sideband *sb, struct seam_change c)
{
	if (!SEAM_ARRAY_ADD(&sb->tasks.changes, c))
		sb->error = -ENOMEM;
}

/*
 * MMAP of pid -1: the kernel's text, or one of its modules.  They are mapped
 * from time 0, whenever they were recorded; later KSYMBOLs cover them.
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
	if (seam_spaces_map(&sb->tasks.kernel, 0, 0, m->addr, m->addr + m->len,
			    mapping))
		sb->error = -ENOMEM;
}

/* A vdso below this is that of a 32-bit process. */
#define FIRST_64_BIT_ADDR (UINT64_C(1) << 32)

/* The best source of a build id: the record, the header, the bundle. */
static void find_build_id(const struct seam_sideband *sb,
			  const struct seam_perf_mapping *m,
			  struct seam_profile_module *module)
{
	const struct seam_listed_id *all = sb->build_ids.items;
	uint32_t listed = SEAM_INDEX_FIND(&sb->by_path,
			seam_hash_u64(module->path), i,
			all[i].path == module->path);

	if (m->build_id)
		set_build_id(module, m->build_id, m->build_id_size);
	else if (listed != SEAM_NONE)
		set_build_id(module, all[listed].id, all[listed].size);
	else if (module->kind == SEAM_MODULE_VDSO &&
		 m->addr >= FIRST_64_BIT_ADDR)
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
			.is_executable = m->prot & PROT_EXEC,
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

static void take_comm(struct seam_sideband *sb,
		      const struct seam_perf_sideband *r)
{
	bool is_exec = r->misc & PERF_RECORD_MISC_COMM_EXEC;

	if (is_exec && seam_jit_code_exec(sb->jit->code, r->comm.pid,
					  r->sample_id.time))
		sb->error = -ENOMEM;
	change(sb, (struct seam_change) {
		.kind = is_exec ? SEAM_CHANGE_EXEC : SEAM_CHANGE_NAME,
		.time_ns = r->sample_id.time, .pid = r->comm.pid,
		.tid = r->comm.tid, .name = put(sb, r->comm.comm),
	});
}

static void take_task(struct seam_sideband *sb,
		      const struct seam_perf_sideband *r)
{
	const struct seam_perf_task *task = &r->task;
	bool is_fork = r->type == PERF_RECORD_FORK;

	if (is_fork && task->pid != task->ppid &&
	    seam_jit_code_fork(sb->jit->code, task->ppid, task->pid,
			       r->sample_id.time))
		sb->error = -ENOMEM;
	/* Equal ids: a thread that existed when recording began. */
	if (is_fork && task->pid == task->ppid && task->tid == task->ptid)
		return;
	change(sb, (struct seam_change) {
		.kind = is_fork ? SEAM_CHANGE_FORK : SEAM_CHANGE_EXIT,
		.time_ns = r->sample_id.time, .pid = task->pid,
		.tid = task->tid, .ppid = task->ppid, .ptid = task->ptid,
	});
}

#define KSYMBOL_UNREGISTER 1	/* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */

static void take_ksymbol(struct seam_sideband *sb,
			 const struct seam_perf_sideband *r)
{
	const struct seam_perf_ksymbol *symbol = &r->ksymbol;

	change(sb, (struct seam_change) {
		.kind = SEAM_CHANGE_KERNEL, .time_ns = r->sample_id.time,
		.addr = symbol->addr, .len = symbol->len,
		.mapping = symbol->flags & KSYMBOL_UNREGISTER ? SEAM_NONE :
			add_mapping(sb, (struct seam_mapping) {
				.start_addr = symbol->addr,
				.size = symbol->len, .pid = -1,
				.from_ns = r->sample_id.time,
				.module = sb->profile->kernel,
				.function = put(sb, symbol->name),
			}),
	});
}

/*
 * LOST, in the ring where records are missing, counts those of all events and
 * of the side-band, LOST_SAMPLES those of one event.  Neither contains the
 * other: the larger sum is reported.
 *
 * A mark in the timeline of the thread that ran when the kernel could write
 * again.  Until sealing, its thread is a task key.
 */
static void mark_loss(struct seam_sideband *sb,
		      const struct seam_perf_sideband *r)
{
	uint32_t key;

	/* without a sample_id trailer both are 0; tid 0 is an idle CPU */
	if (r->sample_id.tid <= 0 || !r->sample_id.time)
		return;
	key = seam_tasks_key(&sb->tasks, r->sample_id.pid, r->sample_id.tid);
	if (key == SEAM_NONE ||
	    !SEAM_ARRAY_ADD(&sb->profile->marks, (struct seam_profile_mark) {
		.time_ns = r->sample_id.time, .thread = key,
		.event = seam_perf_data_event(sb->data, r->lost.id),
		.kind = SEAM_ITEM_LOSS, .value = r->lost.lost,
	    }))
		sb->error = -ENOMEM;
}

/* Take a record that is no BUILD_ID.  False when it is damaged. */
static bool take(struct seam_sideband *sb,
		 const struct seam_sideband_record *record)
{
	const struct seam_perf_attr *attr =
		seam_perf_data_attr_of(sb->data, record->record.payload);
	struct seam_perf_sideband r;
	uint32_t event;

	if (seam_perf_sideband_read(attr, sb->data->endian, &record->record,
				    &r))
		return false;
	if (record->time_ns)
		r.sample_id.time = record->time_ns;
	switch (r.type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		if (is_of_kvm(r.misc))
			break;
		if (r.mapping.len > UINT64_MAX - r.mapping.addr)
			r.mapping.len = UINT64_MAX - r.mapping.addr;
		if (r.mapping.pid == -1)
			take_kernel_mapping(sb, &r.mapping);
		else
			take_user_mapping(sb, r.sample_id.time, &r.mapping);
		break;
	case PERF_RECORD_COMM:
		take_comm(sb, &r);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		take_task(sb, &r);
		break;
	case PERF_RECORD_KSYMBOL:
		take_ksymbol(sb, &r);
		break;
	case PERF_RECORD_CGROUP:
		if (seam_cgroup_paths_put(&sb->cgroups,
					  &(struct seam_cgroup_path) {
				r.cgroup.id, put(sb, r.cgroup.path) }))
			sb->error = -ENOMEM;
		break;
	case PERF_RECORD_LOST:
		sb->n_lost_ring += r.lost.lost;
		mark_loss(sb, &r);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		event = seam_perf_data_event(sb->data, r.sample_id.id);
		if (event != SEAM_NONE)
			sb->profile->events.items[event].n_lost +=
				r.lost_samples.lost;
		break;
	case PERF_RECORD_AUX:
		/* not decoded: its size and gaps are noted */
		sb->aux.n_bytes += r.aux.aux_size;
		sb->aux.n_truncated += !!(r.aux.flags &
					  PERF_AUX_FLAG_TRUNCATED);
		sb->aux.n_other += !!(r.aux.flags & (PERF_AUX_FLAG_PARTIAL |
						     PERF_AUX_FLAG_COLLISION));
		break;
	case PERF_RECORD_THROTTLE:
		sb->is_throttled = true;
		break;
	}
	return true;
}

/* -- the end ------------------------------------------------------------ */

/* Of @scan, the BUILD_ID records or all others. */
static void take_records(struct seam_sideband *sb, struct seam_perf_scan *scan,
			 bool build_ids)
{
	for (size_t i = 0; i < scan->sideband.n && sb->error == 0; i++) {
		const struct seam_sideband_record *r = &scan->sideband.items[i];
		struct seam_perf_build_id id;
		bool is_whole;

		if ((r->record.type == SEAM_PERF_HEADER_BUILD_ID) != build_ids)
			continue;
		is_whole = build_ids ? !seam_perf_build_id_read(&r->record,
				sb->data->endian, &id) : take(sb, r);
		if (is_whole && build_ids)
			take_build_id(sb, &id);
		scan->n_damaged += !is_whole;
	}
}

/* Task keys become threads. */
static void seal_marks(struct seam_sideband *sb)
{
	for (size_t i = 0; i < sb->profile->marks.n; i++) {
		struct seam_profile_mark *mark = &sb->profile->marks.items[i];

		mark->thread = seam_tasks_find(&sb->tasks, mark->thread,
					       mark->time_ns).thread;
	}
}

int seam_sideband_read(struct seam_sideband *sb, struct seam_perf_scan *scans,
		       size_t n)
{
	/* the build id of a file may come after its mappings */
	for (size_t i = 0; i < n; i++)
		take_records(sb, &scans[i], true);
	for (size_t i = 0; i < n; i++)
		take_records(sb, &scans[i], false);
	if (sb->error == 0)
		sb->error = seam_jit_sources_seal(sb->jit);
	if (sb->error == 0)
		sb->error = seam_tasks_seal(&sb->tasks, sb->profile);
	if (sb->error == 0)
		seal_marks(sb);
	return sb->error;
}

void seam_sideband_fini(struct seam_sideband *sb)
{
	free(sb->build_ids.items);
	seam_index_fini(&sb->by_path);
	seam_cgroup_paths_fini(&sb->cgroups);
	seam_tasks_fini(&sb->tasks);
}
