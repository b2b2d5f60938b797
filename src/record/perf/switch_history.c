/* SPDX-License-Identifier: MIT */
/* switch_history.c - add, forget, copy; see switch_history.h */
#include "record/perf/switch_history.h"

#include <linux/perf_event.h>
#include <stdlib.h>

#include "wire/perf/perf_sample.h"

enum { MAX_SWITCH_BYTES = 64 };

/* What a thread did when the records begin. */
struct seam_last_switch {
	uint32_t tid;				/* 0: a free slot */
	uint8_t record[MAX_SWITCH_BYTES];	/* SWITCH; of size 0: none */
	uint8_t *stack;				/* SAMPLE, owned; or NULL */
};

static struct seam_perf_header header_of(const void *record)
{
	struct seam_perf_header header;

	memcpy(&header, record, sizeof(header));
	return header;
}

/* Where the time of a record is. */
static size_t time_pos(const struct seam_switch_history *h,
		       const struct seam_perf_header *header)
{
	return header->type == PERF_RECORD_SAMPLE ? h->time_pos :
	       header->size - h->time_from_end;
}

static uint32_t tid_of(const struct seam_switch_history *h,
		       const uint8_t *record,
		       const struct seam_perf_header *header)
{
	uint32_t tid;

	memcpy(&tid, record + (header->type == PERF_RECORD_SAMPLE ?
			       h->tid_pos + sizeof(tid) :
			       header->size - h->tid_from_end), sizeof(tid));
	return tid;
}

/* ---- what is forgotten ---- */

static void clear(struct seam_last_switch *thread)
{
	free(thread->stack);
	*thread = (struct seam_last_switch) { .tid = 0 };
}

static void clear_all(struct seam_switch_history *h)
{
	for (size_t i = 0; i < SEAM_SWITCH_HISTORY_THREADS; i++)
		if (h->threads[i].tid)
			clear(&h->threads[i]);
}

static void keep_switch(struct seam_last_switch *thread, const uint8_t *record,
			size_t size)
{
	uint32_t tid = thread->tid;

	clear(thread);
	thread->tid = tid;
	if (size <= sizeof(thread->record))
		memcpy(thread->record, record, size);
}

static void keep_stack(struct seam_last_switch *thread, const uint8_t *record,
		       size_t size)
{
	free(thread->stack);
	thread->stack = malloc(size);
	if (thread->stack)
		memcpy(thread->stack, record, size);
}

/* The oldest record goes; what it says of its thread stays. */
static void forget(struct seam_switch_history *h, const uint8_t *record)
{
	struct seam_perf_header header = header_of(record);
	uint32_t tid = tid_of(h, record, &header);
	struct seam_last_switch *thread =
		&h->threads[tid % SEAM_SWITCH_HISTORY_THREADS];
	uint64_t time_ns;

	memcpy(&time_ns, record + time_pos(h, &header), sizeof(time_ns));
	if (time_ns > h->forgotten_ns)
		h->forgotten_ns = time_ns;
	if (header.type == PERF_RECORD_LOST) {
		clear_all(h);
		return;
	}
	if (thread->tid != tid)
		clear(thread);
	thread->tid = tid;
	if (header.type == PERF_RECORD_EXIT)
		clear(thread);
	else if (header.type == PERF_RECORD_SAMPLE)
		keep_stack(thread, record, header.size);
	else
		keep_switch(thread, record, header.size);
}

bool seam_switch_history_add(struct seam_switch_history *h, const void *record)
{
	struct seam_perf_header header = header_of(record);
	size_t least = header.type == PERF_RECORD_SAMPLE ?
		       h->time_pos + sizeof(uint64_t) :
		       sizeof(header) + h->tid_from_end;
	const uint8_t *oldest;

	/* of the kernel, or our own: none is too short */
	if (header.size < least || header.size % sizeof(uint64_t))
		return true;
	if (!seam_newest_records_add(&h->records, record, header.size))
		return false;
	while ((oldest = seam_newest_records_drop(&h->records)))
		forget(h, oldest);
	return true;
}

/* ---- a copy ---- */

/* Append @record, at @time_ns. */
static void copy_at(const struct seam_switch_history *h,
		    struct seam_switch_copy *copy, const uint8_t *record,
		    uint64_t time_ns)
{
	struct seam_perf_header header = header_of(record);
	uint8_t *to = copy->records.items + copy->records.n;

	if (!header.size)
		return;
	memcpy(to, record, header.size);
	memcpy(to + time_pos(h, &header), &time_ns, sizeof(time_ns));
	copy->records.n += header.size;
}

/* The states of threads: a stack lies in its wait, after the begin. */
static void copy_states(const struct seam_switch_history *h,
			struct seam_switch_copy *copy)
{
	for (size_t i = 0; i < SEAM_SWITCH_HISTORY_THREADS; i++) {
		const struct seam_last_switch *thread = &h->threads[i];

		if (!thread->tid)
			continue;
		copy_at(h, copy, thread->record, h->forgotten_ns);
		if (thread->stack)
			copy_at(h, copy, thread->stack, h->forgotten_ns + 1);
	}
}

/* Room for the states, and for all records. */
static size_t copy_bytes(const struct seam_switch_history *h)
{
	size_t bytes = h->records.bytes.n - h->records.first;

	for (size_t i = 0; i < SEAM_SWITCH_HISTORY_THREADS; i++) {
		const struct seam_last_switch *thread = &h->threads[i];

		bytes += header_of(thread->record).size;
		if (thread->stack)
			bytes += header_of(thread->stack).size;
	}
	return bytes;
}

int seam_switch_history_copy(const struct seam_switch_history *h,
			     struct seam_switch_copy *copy, uint64_t *from_ns,
			     struct seam_err *err)
{
	const uint8_t *all = h->records.bytes.items;
	struct seam_perf_header header;

	*from_ns = h->forgotten_ns;
	if (!SEAM_ARRAY_RESERVE(&copy->records, copy_bytes(h)))
		return seam_err_no_memory(err);
	copy_states(h, copy);
	for (size_t at = h->records.first; at < h->records.bytes.n;
	     at += header.size) {
		header = header_of(all + at);
		if (header.type != PERF_RECORD_EXIT)
			(void)SEAM_ARRAY_EXTEND(&copy->records, all + at,
						header.size);
	}
	return 0;
}

/* ---- life ---- */

int seam_switch_history_init(struct seam_switch_history *h,
			     const struct seam_perf_attr *common,
			     struct seam_err *err)
{
	struct seam_perf_layout layout = seam_perf_layout_make(common,
							       SEAM_NATIVE);

	h->tid_pos = sizeof(struct seam_perf_header) + layout.tid;
	h->time_pos = sizeof(struct seam_perf_header) + layout.time;
	/* the trailer begins with pid, tid and time */
	h->time_from_end = seam_perf_sample_id_bytes(common) - 8;
	h->tid_from_end = h->time_from_end + 4;
	h->records.max_bytes = SEAM_SWITCH_HISTORY_BYTES;
	h->threads = calloc(SEAM_SWITCH_HISTORY_THREADS, sizeof(*h->threads));
	return h->threads ? 0 : seam_err_no_memory(err);
}

void seam_switch_history_fini(struct seam_switch_history *h)
{
	if (h->threads)
		clear_all(h);
	free(h->threads);
	seam_newest_records_fini(&h->records);
	*h = (struct seam_switch_history) { 0 };
}
