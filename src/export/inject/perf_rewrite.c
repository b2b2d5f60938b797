/* SPDX-License-Identifier: MIT */
/* perf_rewrite.c - one walk, one copy; see perf_rewrite.h */
#include "export/inject/perf_rewrite.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "wire/perf/perf_stream.h"

enum {
	DATA_SIZE_AT = offsetof(struct seam_perf_file_header, data.size),
	SECTION_BYTES = sizeof(struct seam_perf_file_section),
};

/* Offset of an AUXTRACE record in the old and in the new file. */
struct moved {
	uint64_t from, to;
};

struct rewriter {
	struct seam_perf_rewrite *what;
	const struct seam_perf_data *data;
	FILE *out;
	size_t next;		/* mapping to add */
	uint64_t data_bytes;	/* written */
	SEAM_ARRAY(struct moved) traces;	/* by @from */
	int error;		/* the first one of writing, or -ENOMEM */
};

static void put_u64(const struct seam_perf_data *data, uint8_t *to, uint64_t v)
{
	seam_wire_put_uint(to, v, 8, data->endian);
}

static uint64_t get_u64(const struct seam_perf_data *data, uint64_t pos)
{
	struct seam_cursor c = seam_cursor_over(data->bytes, data->endian);

	seam_cursor_skip(&c, (size_t)pos);
	return seam_cursor_u64(&c);
}

static void write_bytes(struct rewriter *w, const void *bytes, size_t size)
{
	if (size && !w->error && fwrite(bytes, 1, size, w->out) != size)
		w->error = errno ? -errno : -EIO;
}

/* The same for bytes of the data section. */
static void put_bytes(struct rewriter *w, const void *bytes, size_t size)
{
	write_bytes(w, bytes, size);
	w->data_bytes += size;
}

static void put_header(struct rewriter *w, uint32_t type, uint16_t misc,
		       size_t payload)
{
	size_t size = SEAM_PERF_HEADER_BYTES + payload;
	struct seam_perf_header header = {
		.type = type, .size = (uint16_t)size,
		/* A size of 32 bits: see perf_stream.h. */
		.misc = type < SEAM_PERF_FIRST_SIMPLEPERF ? misc :
			(uint16_t)(size >> 16),
	};
	uint8_t bytes[SEAM_PERF_HEADER_BYTES];

	seam_wire_write(&seam_perf_header_record, &header, w->data->endian,
			bytes, sizeof(bytes));
	put_bytes(w, bytes, sizeof(bytes));
}

/* -- added mappings ----------------------------------------------------- */

static void put_added(struct rewriter *w, const struct seam_perf_added *m)
{
	const struct seam_perf_event *event = &w->data->events.items[0];
	uint64_t id = seam_perf_data_first_id(w->data);
	struct seam_perf_mmap2 mapping = {
		.pid = m->pid, .tid = m->pid, .addr = m->addr, .len = m->len,
		.pgoff = m->pgoff, .maj = m->maj, .min = m->min,
		.ino = m->ino, .prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE, .filename = m->filename,
	};
	struct seam_perf_sample_id sample_id = {
		.pid = m->pid, .tid = m->pid, .time = m->time_ns, .id = id,
		.stream_id = id,
	};
	uint8_t bytes[SEAM_PERF_SIDEBAND_MAX];
	size_t n = seam_perf_sideband_write(&event->attr, w->data->endian,
			PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &mapping,
			&sample_id, bytes, sizeof(bytes));

	if (n == 0)		/* the path is longer than any kernel's */
		return;
	put_bytes(w, bytes, n);
	w->what->n_written++;
}

/* Write the mappings that precede a record of time @time_ns. */
static void put_due(struct rewriter *w, uint64_t time_ns)
{
	const struct seam_perf_rewrite *what = w->what;

	while (w->next < what->n_added &&
	       what->added[w->next].time_ns <= time_ns)
		put_added(w, &what->added[w->next++]);
}

/* -- copied records ----------------------------------------------------- */

/* The time of a record; false for those without one. */
static bool time_of(const struct seam_perf_data *data,
		    const struct seam_perf_record *record,
		    struct seam_bytes *payload, uint64_t *time_ns)
{
	const struct seam_perf_attr *attr = &data->events.items[0].attr;
	struct seam_perf_sample_id id = { 0 };
	struct seam_perf_sample sample;
	uint32_t event;

	if (!(attr->sample_type & PERF_SAMPLE_TIME))
		return false;
	if (record->type == PERF_RECORD_SAMPLE) {
		event = seam_perf_data_event(data, seam_perf_sample_peek_id(
				attr, data->endian, *payload));
		if (event == SEAM_NONE)
			return false;
		seam_perf_sample_read(&data->events.items[event].attr,
				      data->endian, *payload, &sample);
		*time_ns = sample.time;
		return sample.time != 0;
	}
	if (!seam_perf_record_has_sample_id(record->type))
		return false;
	if (seam_perf_sample_id_read(seam_perf_data_attr_of(data, *payload),
				     data->endian, payload, &id))
		return false;
	*time_ns = id.time;
	/* time 0: synthesized before the recording; perf does not queue it */
	return id.time != 0;
}

static bool is_left_out(struct rewriter *w,
			const struct seam_perf_record *record,
			struct seam_bytes payload, uint64_t time_ns)
{
	struct seam_perf_mapping m;

	return w->what->leaves_out &&
	       (record->type == PERF_RECORD_MMAP ||
		record->type == PERF_RECORD_MMAP2) &&
	       seam_perf_mapping_read(record->type, record->misc, payload,
				      w->data->endian, &m) == 0 &&
	       w->what->leaves_out(w->what->context, &m, time_ns);
}

static void note_trace(struct rewriter *w,
		       const struct seam_perf_record *record)
{
	/* not in the file: unpacked, so that the index has no offset of it */
	uint64_t from = (uintptr_t)record->payload.data -
			(uintptr_t)w->data->bytes.data;

	if (record->type != SEAM_PERF_AUXTRACE || from >= w->data->bytes.size)
		return;
	if (!SEAM_ARRAY_ADD(&w->traces, (struct moved) {
		.from = from - SEAM_PERF_HEADER_BYTES,
		.to = w->data->data_begin + w->data_bytes }))
		w->error = -ENOMEM;
}

static void put_record(struct rewriter *w,
		       const struct seam_perf_record *record,
		       struct seam_bytes trailing)
{
	struct seam_bytes payload = record->payload;
	uint64_t time_ns = 0;

	if (time_of(w->data, record, &payload, &time_ns))
		put_due(w, time_ns);
	if (is_left_out(w, record, payload, time_ns)) {
		w->what->n_left_out++;
		return;
	}
	note_trace(w, record);
	put_header(w, record->type, record->misc, record->payload.size);
	put_bytes(w, record->payload.data, record->payload.size);
	put_bytes(w, trailing.data, trailing.size);
}

/* Without times, all mappings come before the first sample. */
static bool has_times(const struct seam_perf_data *data)
{
	return data->events.items[0].attr.sample_type & PERF_SAMPLE_TIME;
}

static int put_records(struct rewriter *w, struct seam_err *err)
{
	const struct seam_perf_data *data = w->data;
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	int r;

	seam_perf_stream_init(&stream, data->bytes, data->endian,
			      data->data_begin, data->data_end, false);
	while ((r = seam_perf_stream_next(&stream, &record, err)) > 0 &&
	       !w->error) {
		if (!has_times(data) && record.type == PERF_RECORD_SAMPLE)
			put_due(w, UINT64_MAX);
		put_record(w, &record, stream.trailing);
	}
	if (r < 0 && !stream.unpacked && stream.pos < data->data_end)
		put_bytes(w, data->bytes.data + stream.pos,
			  (size_t)(data->data_end - stream.pos));
	seam_perf_stream_fini(&stream);
	return r;
}

/* -- the header and the features ----------------------------------------- */

static int by_from(const void *key, const void *entry)
{
	const uint64_t *from = key;
	const struct moved *moved = entry;

	return SEAM_COMPARE(*from, moved->from);
}

/*
 * The AUXTRACE index: a count, then offset and size of each record.  @rest is a
 * copy of the bytes after the data.
 */
static void move_index(struct rewriter *w, uint8_t *rest)
{
	const struct seam_perf_data *data = w->data;
	struct seam_bytes index = data->features[SEAM_PERF_FEATURE_AUXTRACE];
	uint64_t at = index.size ? (uint64_t)(index.data - data->bytes.data) :
		      0;

	if (at < data->data_end || !w->traces.n)
		return;
	for (uint64_t i = 8; i + SECTION_BYTES <= index.size;
	     i += SECTION_BYTES) {
		uint64_t from = get_u64(data, at + i);
		const struct moved *moved = bsearch(&from, w->traces.items,
				w->traces.n, sizeof(*moved), by_from);

		if (moved)
			put_u64(data, rest + (at - data->data_end) + i,
				moved->to);
	}
}

/* Features: a table of sections right after the data, then their bytes. */
static void put_features(struct rewriter *w)
{
	const struct seam_perf_data *data = w->data;
	uint64_t end = data->data_end, size = data->bytes.size;
	uint64_t shift = data->data_begin + w->data_bytes - end;
	uint8_t *rest = malloc((size_t)(size - end) + 1);
	uint64_t table_end = size;

	if (!rest) {
		w->error = -ENOMEM;
		return;
	}
	memcpy(rest, data->bytes.data + end, (size_t)(size - end));
	/* The table ends where the first section begins. */
	for (uint64_t at = end; at + SECTION_BYTES <= table_end;
	     at += SECTION_BYTES) {
		uint64_t offset = get_u64(data, at);

		if (offset < end)
			continue;
		if (offset < table_end)
			table_end = offset;
		put_u64(data, rest + (at - end), offset + shift);
	}
	move_index(w, rest);
	write_bytes(w, rest, (size_t)(size - end));
	free(rest);
}

static void patch_size(struct rewriter *w)
{
	uint8_t bytes[8];

	put_u64(w->data, bytes, w->data_bytes);
	if (fseeko(w->out, DATA_SIZE_AT, SEEK_SET) == 0)
		write_bytes(w, bytes, sizeof(bytes));
	fseeko(w->out, 0, SEEK_END);
}

/* Whether attributes and ids, which are not moved, precede the data. */
static bool stays_in_place(const struct seam_perf_data *data)
{
	return data->data_begin >= SEAM_PERF_FILE_HEADER_BYTES &&
	       data->described_begin >= SEAM_PERF_FILE_HEADER_BYTES &&
	       data->described_end <= data->data_begin;
}

int seam_perf_rewrite(struct seam_perf_rewrite *rewrite, FILE *out,
		      struct seam_err *err)
{
	const struct seam_perf_data *data = rewrite->data;
	struct rewriter w = { .what = rewrite, .data = data, .out = out };
	int r;

	if (!data->is_pipe && !stays_in_place(data))
		return seam_err_set(err, -ENOTSUP, "the event "
				    "attributes are not between header and "
				    "data");
	rewrite->n_written = rewrite->n_left_out = 0;
	write_bytes(&w, data->bytes.data, (size_t)data->data_begin);
	r = put_records(&w, err);
	if (!data->is_pipe && !data->is_cut)
		put_features(&w);
	if (!data->is_pipe)
		patch_size(&w);
	free(w.traces.items);
	if (!w.error && fflush(out))
		w.error = -errno;
	if (w.error == -ENOMEM)
		return seam_err_no_memory(err);
	return w.error ? seam_err_set(err, w.error, "cannot write: %s",
				      strerror(-w.error)) : r;
}
