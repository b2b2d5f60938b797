/* SPDX-License-Identifier: MIT */
/* inject_code.c - objects to files, placements to mappings; inject_code.h */
#include "export/inject/inject_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/radix_sort.h"
#include "model/profile/profile.h"

/* Pids are reused: a chain of parents may have a cycle. */
enum { MAX_ANCESTORS = 64 };

/* -- functions ---------------------------------------------------------- */

static int add_function(struct seam_inject_code *code, uint32_t object)
{
	const struct seam_jit_object *o =
		seam_jit_code_object(code->profile->jit->code, object);
	size_t n = code->functions.n;

	if (code->function_of[object] != SEAM_NONE)
		return 0;
	if (!SEAM_ARRAY_ADD(&code->functions, (struct seam_inject_function) {
			.name = o->name, .size = o->size, .code = o->code,
			.eh_frame = o->eh_frame,
			.eh_frame_offset = o->eh_frame_offset,
		}))
		return -ENOMEM;
	code->function_of[object] = (uint32_t)n;
	return 0;
}

/* -- files -------------------------------------------------------------- */

static int make_file(struct seam_inject_code *code,
		     struct seam_inject_process *process, uint32_t elf_machine,
		     struct seam_err *err)
{
	const char *name = basename(process->path);
	int r, fd = code->create(code->context, name, err);
	struct stat st = { 0 };

	if (fd < 0)
		return fd;
	r = seam_inject_elf(fd, code->functions.items + process->first,
			    process->n, elf_machine, &code->n_bad_tables, err);
	if (r == 0 && fstat(fd, &st))
		r = seam_err_errno(err, "cannot read '%s'", name);
	if (close(fd) && r == 0)
		r = seam_err_errno(err, "cannot write '%s'", name);
	process->maj = major(st.st_dev);
	process->min = minor(st.st_dev);
	process->ino = st.st_ino;
	return r;
}

static struct seam_inject_process *find_process(struct seam_inject_code *code,
						int32_t pid)
{
	for (size_t i = 0; i < code->processes.n; i++)
		if (code->processes.items[i].pid == pid)
			return &code->processes.items[i];
	return NULL;
}

/* -- ranges ------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct seam_inject_range *x = a, *y = b;

	return SEAM_COMPARE(x->start_addr, y->start_addr);
}

static void seal_ranges(struct seam_inject_code *code,
			const struct seam_inject_process *process)
{
	struct seam_inject_range *r = code->ranges.items +
				      process->first_range;
	uint64_t reach = 0;

	seam_array_sort(r, process->n_ranges, sizeof(*r), by_address);
	for (size_t i = 0; i < process->n_ranges; i++) {
		if (r[i].end_addr > reach)
			reach = r[i].end_addr;
		r[i].reach = reach;
	}
}

/* Scan backwards from the last range that begins before @end. */
static bool overlaps(const struct seam_inject_code *code,
		     const struct seam_inject_process *process,
		     uint64_t begin, uint64_t end, uint64_t time_ns)
{
	const struct seam_inject_range *r = code->ranges.items +
					    process->first_range;
	size_t n = SEAM_ARRAY_SEARCH(i, process->n_ranges,
				     r[i].start_addr < end);

	while (n-- > 0 && r[n].reach > begin)
		if (r[n].end_addr > begin && r[n].time_ns <= time_ns)
			return true;
	return false;
}

/* The parent of the last process with @pid that has one; -1: none. */
static int32_t parent_of(const struct seam_profile *profile, int32_t pid)
{
	const struct seam_process *processes = profile->processes.items;

	for (size_t i = profile->processes.n; i-- > 0;)
		if (processes[i].pid == pid && processes[i].parent != SEAM_NONE)
			return processes[processes[i].parent].pid;
	return -1;
}

bool seam_inject_code_is_hidden_by(void *context,
				   const struct seam_perf_mapping *mapping,
				   uint64_t time_ns)
{
	struct seam_inject_code *code = context;
	int32_t pid = mapping->pid;

	if (seam_module_kind_of(mapping->filename) != SEAM_MODULE_ANON)
		return false;
	for (int i = 0; pid >= 0 && i < MAX_ANCESTORS; i++) {
		const struct seam_inject_process *process =
			find_process(code, pid);

		if (process && overlaps(code, process, mapping->addr,
					mapping->addr + mapping->len, time_ns))
			return true;
		pid = parent_of(code->profile, pid);
	}
	return false;
}

/* -- all ---------------------------------------------------------------- */

static struct seam_inject_process *add_process(struct seam_inject_code *code,
					       int32_t pid, const char *folder)
{
	struct seam_inject_process *p = SEAM_ARRAY_PUSH(&code->processes);
	char *path = NULL;
	int n = asprintf(&path, "%s/jitted-%" PRId32 ".so", folder, pid);

	if (p)
		*p = (struct seam_inject_process) {
			.pid = pid, .first = code->functions.n,
			.first_range = code->ranges.n,
			.path = n < 0 ? NULL : seam_arena_text(&code->arena,
							path, (size_t)n),
		};
	if (n >= 0)
		free(path);
	return p && p->path ? p : NULL;
}

/* Placements are sorted by process. */
static int take_placements(struct seam_inject_code *code, const char *folder)
{
	struct seam_inject_process *process = NULL;

	for (size_t i = 0; i < code->placements.list.n; i++) {
		const struct seam_jit_placement *p =
			&code->placements.list.items[i];

		if (!process || process->pid != p->pid)
			process = add_process(code, p->pid, folder);
		if (!process || (p->object != SEAM_NONE &&
				 add_function(code, p->object)) ||
		    !SEAM_ARRAY_ADD(&code->ranges, (struct seam_inject_range) {
				p->start_addr, p->start_addr + p->size,
				p->time_ns, 0 }))
			return -ENOMEM;
		process->n = code->functions.n - process->first;
		process->n_ranges = code->ranges.n - process->first_range;
	}
	return 0;
}

static void add_mapping(struct seam_inject_code *code,
			const struct seam_jit_placement *p)
{
	const struct seam_inject_process *process = find_process(code, p->pid);
	struct seam_perf_added *slot = SEAM_ARRAY_PUSH(&code->added);

	*slot = (struct seam_perf_added) {
		.time_ns = p->time_ns, .pid = p->pid, .addr = p->start_addr,
		.len = p->size, .filename = "//anon",
	};
	if (p->object == SEAM_NONE)
		return;
	slot->pgoff = p->offset + code->functions.items[
			code->function_of[p->object]].file_offset;
	slot->filename = process->path;
	slot->maj = process->maj;
	slot->min = process->min;
	slot->ino = process->ino;
}

/* The machine in the dump of process @pid; perf maps have none. */
static uint32_t machine_of(const struct seam_inject_code *code, int32_t pid)
{
	for (size_t i = 0; i < code->placements.list.n; i++) {
		const struct seam_jit_placement *p =
			&code->placements.list.items[i];
		uint32_t machine = p->pid != pid || p->object == SEAM_NONE ?
			0 : seam_jit_code_object(code->profile->jit->code,
						 p->object)->elf_machine;

		if (machine)
			return machine;
	}
	return code->profile->elf_machine;
}

static int make_mappings(struct seam_inject_code *code, struct seam_err *err)
{
	size_t n = code->placements.list.n;

	if (SEAM_RADIX_SORT(&code->placements.list, time_ns) ||
	    !SEAM_ARRAY_RESERVE(&code->added, n + 1))
		return seam_err_no_memory(err);
	for (size_t i = 0; i < n; i++)
		add_mapping(code, &code->placements.list.items[i]);
	return 0;
}

int seam_inject_code_make(struct seam_inject_code *code, const char *path,
			  struct seam_err *err)
{
	size_t n = seam_jit_code_count(code->profile->jit->code);
	int r = 0;

	code->function_of = malloc((n + 1) * sizeof(*code->function_of));
	if (!code->function_of)
		return seam_err_no_memory(err);
	memset(code->function_of, 0xff, n * sizeof(*code->function_of));
	if (seam_jit_placements_read(&code->placements,
				     code->profile->jit->code) ||
	    take_placements(code, path))
		return seam_err_no_memory(err);
	for (size_t i = 0; r == 0 && i < code->processes.n; i++) {
		struct seam_inject_process *p = &code->processes.items[i];

		seal_ranges(code, p);
		r = make_file(code, p, machine_of(code, p->pid), err);
	}
	return r ? r : make_mappings(code, err);
}

void seam_inject_code_fini(struct seam_inject_code *code)
{
	free(code->placements.list.items);
	free(code->functions.items);
	free(code->processes.items);
	free(code->ranges.items);
	free(code->added.items);
	free(code->function_of);
	seam_arena_fini(&code->arena);
}
