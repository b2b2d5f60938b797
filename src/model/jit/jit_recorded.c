/* SPDX-License-Identifier: MIT */
/* jit_recorded.c - one walk for who had a JIT; see jit_recorded.h */
#include "model/jit/jit_recorded.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "model/perf/resolver.h"
#include "wire/perf/perf_stream.h"

struct jit_walk {
	struct seam_jit_recorded *to;
	const struct seam_perf_data *data;
	bool only_times;	/* first those, then what they judge */
	int error;
};

static void take_mapping(struct jit_walk *w, const struct seam_perf_mapping *m)
{
	struct seam_jit_sources *sources = &w->to->sources;
	enum seam_mapping_kind kind;
	int r = 0;

	if (m->pid < 0)
		return;
	kind = seam_resolver_kind(m->filename);
	if (kind == SEAM_MAPPING_ANON && m->prot & PROT_EXEC)
		r = seam_jit_sources_anonymous(sources, m->pid);
	else if (kind == SEAM_MAPPING_FILE)
		r = seam_jit_sources_mapped(sources, m->pid, m->filename);
	if (r < 0)
		w->error = r;
}

static void take_fork(struct jit_walk *w, const struct seam_perf_task *task,
		      uint64_t time_ns)
{
	struct seam_jit_fork *slot;

	if (task->pid == task->ppid)
		return;
	slot = SEAM_ARRAY_PUSH(&w->to->forks);
	if (!slot || seam_jit_code_fork(w->to->sources.code, task->ppid,
					task->pid, time_ns)) {
		w->error = -ENOMEM;
		return;
	}
	*slot = (struct seam_jit_fork) { task->ppid, task->pid };
}

static void take_sample(struct jit_walk *w, struct seam_bytes payload)
{
	const struct seam_perf_data *data = w->data;
	uint32_t event = seam_perf_data_event(data, seam_perf_sample_peek_id(
		&data->events.items[0].attr, data->endian, payload));
	struct seam_jit_sources *sources;
	struct seam_perf_core core;

	if (event == SEAM_NONE || !seam_perf_layout_read(
				&data->events.items[event].layout, payload,
				&core))
		return;
	sources = &w->to->sources;
	if (!sources->first_ns || core.time < sources->first_ns)
		sources->first_ns = core.time;
	if (core.time > sources->last_ns)
		sources->last_ns = core.time;
}

static void take_record(struct jit_walk *w, const struct seam_perf_record *record)
{
	struct seam_perf_sideband r;

	if (w->only_times) {
		if (record->type == PERF_RECORD_SAMPLE)
			take_sample(w, record->payload);
		return;
	}
	if (seam_perf_data_sideband(w->data, record, &r))
		return;
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		take_mapping(w, &r.mapping);
		break;
	case PERF_RECORD_FORK:
		take_fork(w, &r.task, r.sample_id.time);
		break;
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC &&
		    seam_jit_code_exec(w->to->sources.code, r.comm.pid,
				       r.sample_id.time))
			w->error = -ENOMEM;
		break;
	}
}

/* A file that is cut is read as far as it goes. */
static void walk(struct jit_walk *w, struct seam_bytes bytes, uint64_t begin,
		 uint64_t end)
{
	struct seam_perf_stream stream;
	struct seam_perf_record record;

	seam_perf_stream_init(&stream, bytes, w->data->endian, begin, end,
			      false);
	while (!w->error && seam_perf_stream_next(&stream, &record, NULL) > 0)
		take_record(w, &record);
	seam_perf_stream_fini(&stream);
}

/* What perf demands with -k mono, and Seam always records. */
static bool is_monotonic(const struct seam_perf_data *data)
{
	for (size_t i = 0; i < data->events.n; i++) {
		const struct seam_perf_attr *attr =
			&data->events.items[i].attr;

		if (!seam_perf_attr_has(attr, SEAM_PERF_ATTR_USE_CLOCKID) ||
		    attr->clockid != CLOCK_MONOTONIC)
			return false;
	}
	return true;
}

int seam_jit_recorded_read(struct seam_jit_recorded *recorded,
			   const struct seam_perf_data *data,
			   const struct seam_file *parts, size_t n_parts,
			   const struct seam_jit_places *places,
			   struct seam_profile *notes)
{
	struct jit_walk w = { .to = recorded, .data = data };

	*recorded = (struct seam_jit_recorded) { 0 };
	if (seam_jit_sources_init(&recorded->sources, notes, places))
		return -ENOMEM;
	recorded->sources.is_untimed = !is_monotonic(data);
	for (int pass = 0; pass < 2 && !w.error; pass++) {
		w.only_times = pass == 0;
		walk(&w, data->bytes, data->data_begin, data->data_end);
		for (size_t i = 0; i < n_parts; i++)
			walk(&w, parts[i].bytes, 0, parts[i].bytes.size);
	}
	return w.error ? w.error : seam_jit_sources_seal(&recorded->sources);
}

void seam_jit_recorded_fini(struct seam_jit_recorded *recorded)
{
	seam_jit_sources_fini(&recorded->sources);
	free(recorded->forks.items);
	*recorded = (struct seam_jit_recorded) { 0 };
}

int32_t seam_jit_recorded_parent(const struct seam_jit_recorded *recorded,
				 int32_t pid)
{
	for (size_t i = recorded->forks.n; i-- > 0;)
		if (recorded->forks.items[i].child == pid)
			return recorded->forks.items[i].parent;
	return -1;
}

/* What uname says of a machine, as ELF calls it. */
uint32_t seam_jit_recorded_machine(const struct seam_perf_data *data)
{
	static const struct { const char *name; uint32_t machine; } all[] = {
		{ "x86_64", EM_X86_64 }, { "aarch64", EM_AARCH64 },
		{ "riscv64", EM_RISCV }, { "ppc64le", EM_PPC64 },
		{ "ppc64", EM_PPC64 }, { "s390x", EM_S390 },
		{ "loongarch64", EM_LOONGARCH }, { "i686", EM_386 },
	};
	const char *arch = seam_perf_data_string(data, SEAM_PERF_FEATURE_ARCH);

	for (size_t i = 0; arch && i < SEAM_ARRAY_SIZE(all); i++)
		if (strcmp(all[i].name, arch) == 0)
			return all[i].machine;
	return EM_NONE;
}
