/* SPDX-License-Identifier: MIT */
/* live_sideband.c - mappings, execs and tasks of live_stacks.h */
#include "record/stacks/live_stacks.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

/* A file that @pid has mapped beside, or under, the mapping at @addr. */
static uint32_t file_near(const struct seam_live_stacks *stacks, int32_t pid,
			  uint64_t addr)
{
	const struct seam_process_map *map =
		seam_process_maps_find(&stacks->maps, pid);
	uint32_t i;

	if (!map || !map->n)
		return SEAM_NONE;
	i = (uint32_t)SEAM_ARRAY_SEARCH(k, map->n, map->items[k].begin <= addr);
	return map->items[i ? i - 1 : 0].file;
}

static void add_mapping(struct seam_live_stacks *stacks,
			const struct seam_perf_mapping *m, bool is_new)
{
	struct seam_process_mapping mapping = {
		.begin = m->addr, .end = m->addr + m->len, .offset = m->pgoff,
	};

	if (!(m->prot & PROT_EXEC))
		return;
	mapping.file = seam_cfi_files_add(&stacks->files, m, is_new,
					  file_near(stacks, m->pid, m->addr));
	if (mapping.file != SEAM_NONE &&
	    stacks->files.mappings.items[mapping.file].is_jvm)
		mapping.flags = SEAM_LIVE_IS_JVM;
	seam_process_maps_add(&stacks->maps, m->pid, &mapping);
	seam_cfi_files_use(&stacks->files, mapping.file, -1);
}

static void exec(struct seam_live_stacks *stacks, int32_t pid, uint64_t time_ns)
{
	seam_process_maps_exec(&stacks->maps, pid);
	seam_live_jit_exec(&stacks->jit, pid, time_ns);
}

void seam_live_stacks_sideband(struct seam_live_stacks *stacks,
			       const struct seam_perf_sideband *record,
			       bool is_new)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		add_mapping(stacks, &record->mapping, is_new);
		return;
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			exec(stacks, record->comm.pid, record->sample_id.time);
		return;
	case PERF_RECORD_FORK:
		seam_process_maps_fork(&stacks->maps, record->task.pid,
				       record->task.ppid);
		if (record->task.pid != record->task.ppid)
			seam_live_jit_fork(&stacks->jit, record->task.pid,
					   record->task.ppid,
					   record->sample_id.time);
		return;
	case PERF_RECORD_EXIT:
		seam_process_maps_exit(&stacks->maps, record->task.pid);
		return;
	}
}
