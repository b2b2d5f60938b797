/* SPDX-License-Identifier: MIT */
/* jit_recorded.c - one walk for who had a JIT; see jit_recorded.h */
#include "model/jit_recorded.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/text.h"
#include "model/resolver.h"
#include "wire/perf_stream.h"

enum { FOUND_BYTES = 4096 };

/* A process that may have left a dump (path is not NULL) or a map. */
struct left {
	int32_t pid, inner_pid;
	char *path;
};

struct walk {
	struct seam_jit_recorded *to;
	const struct seam_perf_data *data;
	const struct seam_jit_places *places;
	void (*say)(const char *fmt, ...)
		__attribute__((format(printf, 1, 2)));
	SEAM_ARRAY(struct left) left;
	int32_t last_anon_pid;
	int error;
};

static void add_left(struct walk *w, int32_t pid, int32_t inner_pid,
		     const char *path)
{
	struct left *slot;

	for (size_t i = 0; i < w->left.n; i++) {
		const struct left *l = &w->left.items[i];

		if (l->pid == pid && !l->path == !path &&
		    (!path || strcmp(l->path, path) == 0))
			return;
	}
	slot = SEAM_ARRAY_PUSH(&w->left);
	if (!slot) {
		w->error = -ENOMEM;
		return;
	}
	*slot = (struct left) {
		.pid = pid, .inner_pid = inner_pid,
		.path = path ? strdup(path) : NULL,
	};
	if (path && !slot->path)
		w->error = -ENOMEM;
}

static void take_mapping(struct walk *w, const struct seam_perf_record *record,
			 struct seam_bytes payload)
{
	struct seam_perf_mapping m;
	int32_t inner;

	if (seam_perf_mapping_read(record->type, record->misc, payload,
				   w->data->endian, &m) || m.pid < 0)
		return;
	if (seam_jit_marker(m.filename, &inner)) {
		add_left(w, m.pid, inner, m.filename);
	} else if (m.pid != w->last_anon_pid && m.prot & PROT_EXEC &&
		   seam_resolver_kind(m.filename) == SEAM_MAPPING_ANON) {
		add_left(w, m.pid, 0, NULL);
		w->last_anon_pid = m.pid;
	}
}

static void take_fork(struct walk *w, struct seam_bytes payload,
		      uint64_t time_ns)
{
	struct seam_perf_task task;
	struct seam_jit_fork *slot;

	if (seam_perf_record_read(seam_perf_record_table(PERF_RECORD_FORK, 0),
				  payload, w->data->endian, &task) ||
	    task.pid == task.ppid)
		return;
	slot = SEAM_ARRAY_PUSH(&w->to->forks);
	if (!slot || seam_jit_code_fork(w->to->code, task.ppid, task.pid,
					time_ns)) {
		w->error = -ENOMEM;
		return;
	}
	*slot = (struct seam_jit_fork) { task.ppid, task.pid };
}

static void take_exec(struct walk *w, struct seam_bytes payload,
		      uint64_t time_ns)
{
	struct seam_perf_comm comm;

	if (seam_perf_record_read(seam_perf_record_table(PERF_RECORD_COMM, 0),
				  payload, w->data->endian, &comm) == 0 &&
	    seam_jit_code_exec(w->to->code, comm.pid, time_ns))
		w->error = -ENOMEM;
}

static void take_sample(struct walk *w, struct seam_bytes payload)
{
	const struct seam_perf_data *data = w->data;
	uint32_t event = seam_perf_data_event(data, seam_perf_sample_peek_id(
		&data->events.items[0].attr, data->endian, payload));
	struct seam_perf_core core;

	if (event == SEAM_NONE || !seam_perf_layout_read(
				&data->events.items[event].layout, payload,
				&core))
		return;
	if (!w->to->first_ns || core.time < w->to->first_ns)
		w->to->first_ns = core.time;
	if (core.time > w->to->last_ns)
		w->to->last_ns = core.time;
}

static void take_record(struct walk *w, const struct seam_perf_record *record)
{
	struct seam_bytes payload = record->payload;
	struct seam_perf_stamp stamp = { 0 };
	const struct seam_perf_attr *attr;

	if (record->type == PERF_RECORD_SAMPLE) {
		take_sample(w, payload);
		return;
	}
	if (!seam_perf_record_is_stamped(record->type))
		return;
	attr = &w->data->events.items[seam_perf_data_stamped(w->data,
							     payload)].attr;
	if (seam_perf_stamp_read(attr, w->data->endian, &payload, &stamp))
		return;
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		take_mapping(w, record, payload);
		break;
	case PERF_RECORD_FORK:
		take_fork(w, payload, stamp.time);
		break;
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			take_exec(w, payload, stamp.time);
		break;
	}
}

/* A file that is cut is read as far as it goes. */
static void walk(struct walk *w, struct seam_bytes bytes, uint64_t begin,
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

/* -- what they left ----------------------------------------------------- */

/* A map that is not there is no news: most processes write none. */
static void say_missing(struct walk *w, const struct left *left, int r,
			const struct seam_err *err)
{
	char path[200];

	for (int i = 0; i < err->n_causes; i++)
		w->say("process %" PRId32 ": %s", left->pid, err->cause[i]);
	if (left->path && r == -ENOENT)
		w->say("process %" PRId32 ": its dump '%s' is not there; "
		       "--jit says where to look", left->pid,
		       seam_text_copy(path, sizeof(path), left->path,
				      SEAM_TEXT_TERMINAL));
}

static int add_bytes(struct walk *w, const struct left *left,
		     struct seam_bytes bytes, struct seam_err *err)
{
	struct seam_jit_dump_options options = {
		.pid = left->pid, .first_ns = w->to->first_ns,
		.last_ns = w->to->last_ns, .is_untimed = w->to->is_untimed,
	};

	return left->path ?
	       seam_jit_code_add_dump(w->to->code, bytes, &options, err) :
	       seam_jit_code_add_map(w->to->code, left->pid, bytes, err);
}

static void read_left(struct walk *w, const struct left *left)
{
	struct seam_jit_owner owner = {
		.pid = left->pid, .inner_pid = left->inner_pid,
		.uid = (uid_t)-1, .root = -1,
	};
	struct seam_file *file;
	struct seam_err err = { 0 };
	char found[FOUND_BYTES];
	int r;

	if (!SEAM_ARRAY_RESERVE(&w->to->files, 1)) {
		w->error = -ENOMEM;
		return;
	}
	file = &w->to->files.items[w->to->files.n];
	r = seam_jit_find(w->places, &owner, left->path ? SEAM_JIT_DUMP :
			  SEAM_JIT_MAP, left->path, file, found,
			  sizeof(found), &err);
	if (r == 0) {
		w->to->files.n++;
		r = add_bytes(w, left, file->bytes, &err);
		if (r == 0)
			*(left->path ? &w->to->n_dumps : &w->to->n_maps) += 1;
	}
	if (r == -ENOMEM)
		w->error = r;
	else if (r < 0)
		say_missing(w, left, r, &err);
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
			   void (*say)(const char *fmt, ...)
				__attribute__((format(printf, 1, 2))),
			   struct seam_err *err)
{
	struct walk w = {
		.to = recorded, .data = data, .places = places, .say = say,
		.last_anon_pid = -1,
	};

	*recorded = (struct seam_jit_recorded) {
		.code = seam_jit_code_new(),
		.is_untimed = !is_monotonic(data),
	};
	if (!recorded->code)
		return seam_err_set(err, -ENOMEM, "out of memory");
	walk(&w, data->bytes, data->data_begin, data->data_end);
	for (size_t i = 0; i < n_parts; i++)
		walk(&w, parts[i].bytes, 0, parts[i].bytes.size);
	for (size_t i = 0; i < w.left.n; i++) {
		if (!w.error)
			read_left(&w, &w.left.items[i]);
		free(w.left.items[i].path);
	}
	free(w.left.items);
	if (!w.error)
		w.error = seam_jit_code_index(recorded->code);
	return w.error ? seam_err_set(err, w.error, "out of memory") : 0;
}

void seam_jit_recorded_fini(struct seam_jit_recorded *recorded)
{
	seam_jit_code_free(recorded->code);
	for (size_t i = 0; i < recorded->files.n; i++)
		seam_file_close(&recorded->files.items[i]);
	free(recorded->files.items);
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
