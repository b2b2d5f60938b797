/* SPDX-License-Identifier: MIT */
/* perf_dump.c - records as text and as JSON lines; see perf_dump.h */
#include "wire/perf_dump.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>

#include "base/text.h"
#include "wire/perf_stream.h"
#include "wire/tracepoints.h"

struct dump {
	FILE *out;
	const struct seam_perf_data *data;
	bool json;
	const struct seam_perf_namer *namer;
	struct seam_tracepoints *tracepoints;	/* NULL: none are described */
	uint64_t n_damaged;
};

/* One line that is being written. */
struct line {
	FILE *out;
	bool json;
	struct seam_json j;
};

static void put_u64(struct line *line, const char *name, uint64_t v)
{
	if (line->json)
		seam_json_u64(&line->j, name, v);
	else
		fprintf(line->out, " %s=%" PRIu64, name, v);
}

static void put_i64(struct line *line, const char *name, int64_t v)
{
	if (line->json)
		seam_json_i64(&line->j, name, v);
	else
		fprintf(line->out, " %s=%" PRId64, name, v);
}

/* An address: people read it in hex, JSON has numbers only. */
static void put_addr(struct line *line, const char *name, uint64_t v)
{
	if (line->json)
		seam_json_u64(&line->j, name, v);
	else
		fprintf(line->out, " %s=%#" PRIx64, name, v);
}

static void put_string(struct line *line, const char *name, const char *v)
{
	if (line->json) {
		seam_json_string(&line->j, name, v);
		return;
	}
	fprintf(line->out, " %s=\"", name);
	seam_text_put(line->out, v, SEAM_TEXT_TERMINAL);
	fputc('"', line->out);
}

static void put_bytes(struct line *line, const char *name,
		      struct seam_bytes bytes)
{
	if (line->json)
		seam_json_hex(&line->j, name, bytes);
	else
		fprintf(line->out, " %s=[%zu bytes]", name, bytes.size);
}

static void put_damaged(struct line *line)
{
	if (line->json)
		seam_json_bool(&line->j, "damaged", true);
	else
		fputs(" DAMAGED", line->out);
}

static void put_words(struct line *line, const char *name,
		      const struct seam_perf_u64s *words)
{
	if (line->json)
		seam_json_open(&line->j, name, '[');
	else
		fprintf(line->out, " %s=[", name);
	for (size_t i = 0; i < words->n; i++) {
		uint64_t v = seam_perf_u64(words, i);

		if (line->json)
			seam_json_u64(&line->j, NULL, v);
		else
			fprintf(line->out, "%s%#" PRIx64, i ? " " : "", v);
	}
	if (line->json)
		seam_json_close(&line->j);
	else
		fputc(']', line->out);
}

static void put_table(struct line *line, const struct seam_record *table,
		      const void *in)
{
	if (line->json)
		seam_wire_json(&line->j, table, in);
	else
		seam_wire_fields(line->out, table, in);
}

/* -- samples ------------------------------------------------------------ */

static void put_regs(struct line *line, const char *name,
		     const struct seam_perf_regs *regs)
{
	if (line->json)
		seam_json_open(&line->j, name, '{');
	put_u64(line, line->json ? "abi" : name, regs->abi);
	put_addr(line, "mask", regs->mask);
	put_words(line, "values", &regs->values);
	if (line->json)
		seam_json_close(&line->j);
}

/* RAW of a tracepoint is its fields, if the recording explains them. */
static void put_raw(struct dump *d, struct line *line,
		    const struct seam_perf_attr *attr,
		    const struct seam_perf_sample *s)
{
	put_bytes(line, "raw", s->raw);
	if (attr->type != PERF_TYPE_TRACEPOINT)
		return;
	if (line->json)
		seam_json_open(&line->j, "fields", '{');
	seam_tracepoints_fields(d->tracepoints, attr->config, s->raw,
				line->json ? &line->j : NULL, line->out);
	if (line->json)
		seam_json_close(&line->j);
}

static void put_sample_tail(struct line *line, uint64_t has,
			    const struct seam_perf_sample *s)
{
	if (has & PERF_SAMPLE_BRANCH_STACK)
		put_words(line, "branch_stack", &s->branches);
	if (has & PERF_SAMPLE_REGS_USER)
		put_regs(line, "regs_user", &s->user_regs);
	if (has & PERF_SAMPLE_STACK_USER)
		put_u64(line, "stack_user_size", s->user_stack.size);
	if (has & PERF_SAMPLE_WEIGHT_TYPE)
		put_u64(line, "weight", s->weight);
	if (has & PERF_SAMPLE_DATA_SRC)
		put_addr(line, "data_src", s->data_src);
	if (has & PERF_SAMPLE_TRANSACTION)
		put_u64(line, "transaction", s->transaction);
	if (has & PERF_SAMPLE_REGS_INTR)
		put_regs(line, "regs_intr", &s->intr_regs);
	if (has & PERF_SAMPLE_PHYS_ADDR)
		put_addr(line, "phys_addr", s->phys_addr);
	if (has & PERF_SAMPLE_CGROUP)
		put_u64(line, "cgroup", s->cgroup);
	if (has & PERF_SAMPLE_DATA_PAGE_SIZE)
		put_u64(line, "data_page_size", s->data_page_size);
	if (has & PERF_SAMPLE_CODE_PAGE_SIZE)
		put_u64(line, "code_page_size", s->code_page_size);
	if (has & PERF_SAMPLE_AUX)
		put_bytes(line, "aux", s->aux);
}

static void put_chain(struct dump *d, struct line *line,
		      const struct seam_perf_sample *s)
{
	if (!d->namer || !line->json) {
		put_words(line, "callchain", &s->callchain);
		return;
	}
	seam_json_open(&line->j, "callchain", '[');
	d->namer->chain(d->namer->context, &line->j, s);
	seam_json_close(&line->j);
}

static void put_sample(struct dump *d, struct line *line,
		       const struct seam_perf_event *event,
		       const struct seam_perf_sample *s)
{
	uint64_t has = event->attr.sample_type;

	put_string(line, "event", event->name);
	if (has & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID))
		put_u64(line, "id", s->id);
	if (has & PERF_SAMPLE_IP)
		put_addr(line, "ip", s->ip);
	if (has & PERF_SAMPLE_TID) {
		put_i64(line, "pid", s->pid);
		put_i64(line, "tid", s->tid);
	}
	if (has & PERF_SAMPLE_TIME)
		put_u64(line, "time", s->time);
	if (has & PERF_SAMPLE_ADDR)
		put_addr(line, "addr", s->addr);
	if (has & PERF_SAMPLE_STREAM_ID)
		put_u64(line, "stream_id", s->stream_id);
	if (has & PERF_SAMPLE_CPU)
		put_u64(line, "cpu", s->cpu);
	if (has & PERF_SAMPLE_PERIOD)
		put_u64(line, "period", s->period);
	if (has & PERF_SAMPLE_READ)
		put_words(line, "read", &s->read);
	if (has & PERF_SAMPLE_CALLCHAIN)
		put_chain(d, line, s);
	else if (d->namer)
		d->namer->chain(d->namer->context, NULL, s);
	if (has & PERF_SAMPLE_RAW)
		put_raw(d, line, &event->attr, s);
	put_sample_tail(line, has, s);
}

static int dump_sample(struct dump *d, struct line *line,
		       const struct seam_perf_record *record)
{
	const struct seam_perf_data *data = d->data;
	uint32_t event = seam_perf_data_event(data, seam_perf_sample_peek_id(
		&data->events.items[0].attr, data->endian, record->payload));
	struct seam_perf_sample sample;

	if (event == SEAM_NONE ||
	    seam_perf_sample_read(&data->events.items[event].attr,
				  data->endian, record->payload, &sample))
		return -EBADMSG;
	put_sample(d, line, &data->events.items[event], &sample);
	return 0;
}

/* -- everything else ---------------------------------------------------- */

static void put_stamp(struct line *line, const struct seam_perf_attr *attr,
		      const struct seam_perf_stamp *stamp)
{
	uint64_t has = attr->sample_type;

	if (seam_perf_stamp_bytes(attr) == 0)
		return;
	if (line->json)
		seam_json_open(&line->j, "sample_id", '{');
	else
		fputs(" |", line->out);
	if (has & PERF_SAMPLE_TID) {
		put_i64(line, "pid", stamp->pid);
		put_i64(line, "tid", stamp->tid);
	}
	if (has & PERF_SAMPLE_TIME)
		put_u64(line, "time", stamp->time);
	if (has & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER))
		put_u64(line, "id", stamp->id);
	if (has & PERF_SAMPLE_STREAM_ID)
		put_u64(line, "stream_id", stamp->stream_id);
	if (has & PERF_SAMPLE_CPU)
		put_u64(line, "cpu", stamp->cpu);
	if (line->json)
		seam_json_close(&line->j);
}

/* -- records that end in a list ----------------------------------------- */

struct link_info {
	uint64_t dev, ino;
};

#define F(member, text) SEAM_FIELD(struct link_info, member, text)
static const struct seam_field link_info_fields[] = {
	F(dev, "device of the namespace"), F(ino, "inode of the namespace"),
};
#undef F

struct id_entry {
	uint64_t id, idx, cpu, tid;
};

#define F(member, text) SEAM_FIELD(struct id_entry, member, text)
static const struct seam_field id_entry_fields[] = {
	F(id, "event on a CPU"), F(idx, "event"), F(cpu, "-1: any"),
	F(tid, "-1: any"),
};
#undef F

/* What the last field of a record is a list of; no fields: of u64. */
static const struct {
	uint32_t type;
	struct seam_record element;
	size_t bytes;
} lists[] = {
	{ PERF_RECORD_NAMESPACES, {
		.fields = link_info_fields,
		.n_fields = SEAM_ARRAY_SIZE(link_info_fields) }, 16 },
	{ SEAM_PERF_ID_INDEX, {
		.fields = id_entry_fields,
		.n_fields = SEAM_ARRAY_SIZE(id_entry_fields) }, 32 },
	{ PERF_RECORD_READ, { 0 }, 8 },
	{ SEAM_PERF_AUXTRACE_INFO, { 0 }, 8 },
	{ SEAM_PERF_CALLCHAIN_DEFERRED, { 0 }, 8 },
};

static void put_list(struct dump *d, struct line *line, const char *name,
		     const struct seam_record *element, size_t bytes,
		     struct seam_bytes rest)
{
	struct seam_cursor c = seam_cursor_make(rest.data, rest.size,
						d->data->endian);
	struct seam_perf_u64s words = { rest.data, rest.size / 8, c.swap };
	_Alignas(8) uint8_t in[SEAM_PERF_MAX_RECORD];

	if (element->n_fields == 0) {
		put_words(line, name, &words);
		return;
	}
	if (line->json)
		seam_json_open(&line->j, name, '[');
	else
		fprintf(line->out, " %s=[", name);
	while (seam_cursor_left(&c) >= bytes) {
		seam_wire_read(&c, element, in);
		if (line->json)
			seam_json_open(&line->j, NULL, '{');
		put_table(line, element, in);
		if (line->json)
			seam_json_close(&line->j);
		else
			fputc(';', line->out);
	}
	if (line->json)
		seam_json_close(&line->j);
	else
		fputc(']', line->out);
}

/* All fields of a record; the last may be a list. */
static void put_record(struct dump *d, struct line *line, uint32_t type,
		       const struct seam_record *table, const void *in)
{
	struct seam_record head = *table;
	const struct seam_field *last;
	struct seam_bytes rest;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(lists); i++) {
		if (lists[i].type != type)
			continue;
		last = &table->fields[--head.n_fields];
		memcpy(&rest, (const char *)in + last->offset, sizeof(rest));
		put_table(line, &head, in);
		put_list(d, line, last->name, &lists[i].element,
			 lists[i].bytes, rest);
		return;
	}
	put_table(line, table, in);
}

/* MMAP2 with a build id in the place of the inode. */
static int dump_mapping(struct dump *d, struct line *line,
			const struct seam_perf_record *record,
			struct seam_bytes payload)
{
	struct seam_perf_mmap2_build_id raw;
	struct seam_perf_mapping m;

	if (seam_perf_mapping_read(record->type, record->misc, payload,
				   d->data->endian, &m) ||
	    seam_perf_record_read(seam_perf_record_table(record->type,
							 record->misc),
				  payload, d->data->endian, &raw))
		return -EBADMSG;
	put_i64(line, "pid", m.pid);
	put_i64(line, "tid", m.tid);
	put_addr(line, "addr", m.addr);
	put_addr(line, "len", m.len);
	put_addr(line, "pgoff", m.pgoff);
	if (line->json) {
		seam_json_hex(&line->j, "build_id", (struct seam_bytes) {
			m.build_id, m.build_id_size });
	} else {
		fputs(" build_id=", line->out);
		for (size_t i = 0; i < m.build_id_size; i++)
			fprintf(line->out, "%02x", m.build_id[i]);
	}
	put_addr(line, "prot", m.prot);
	put_addr(line, "flags", raw.flags);
	put_string(line, "filename", m.filename);
	return 0;
}

/* A new attr with its ids, in a stream without a header. */
static int dump_attr(struct dump *d, struct line *line,
		     struct seam_bytes payload)
{
	struct seam_cursor c = seam_cursor_make(payload.data, payload.size,
						d->data->endian);
	struct seam_perf_attr attr;
	struct seam_perf_u64s ids = { .swap = c.swap };

	if (seam_perf_attr_read(&c, d->data->endian, &attr, NULL))
		return -EBADMSG;
	ids.n = seam_cursor_left(&c) / 8;
	ids.data = seam_cursor_bytes(&c, 8 * ids.n);
	if (line->json)
		seam_json_open(&line->j, "attr", '{');
	put_table(line, &seam_perf_attr_record, &attr);
	if (line->json)
		seam_json_close(&line->j);
	put_words(line, "ids", &ids);
	return 0;
}

static int dump_other(struct dump *d, struct line *line,
		      const struct seam_perf_record *record)
{
	const struct seam_perf_data *data = d->data;
	const struct seam_record *table = seam_perf_record_table(record->type,
								 record->misc);
	const struct seam_perf_attr *attr = &data->events.items[0].attr;
	struct seam_bytes payload = record->payload;
	_Alignas(8) uint8_t in[SEAM_PERF_MAX_RECORD];
	struct seam_perf_stamp stamp;
	int r;

	if (!table)
		return -EBADMSG;
	if (record->type == SEAM_PERF_HEADER_ATTR)
		return dump_attr(d, line, payload);
	if (seam_perf_record_is_stamped(record->type)) {
		attr = &data->events.items[seam_perf_data_stamped(data,
							payload)].attr;
		if (seam_perf_stamp_read(attr, data->endian, &payload, &stamp))
			return -EBADMSG;
	}
	if (record->type == PERF_RECORD_MMAP2 &&
	    record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		r = dump_mapping(d, line, record, payload);
	} else {
		r = seam_perf_record_read(table, payload, data->endian, in);
		if (r == 0)
			put_record(d, line, record->type, table, in);
	}
	if (r == 0 && seam_perf_record_is_stamped(record->type))
		put_stamp(line, attr, &stamp);
	return r;
}

static void dump_record(struct dump *d, const struct seam_perf_record *record,
			struct seam_bytes trailing)
{
	const char *name = seam_perf_record_name(record->type);
	struct line line = {
		.out = d->out, .json = d->json,
		.j = seam_json_make(d->out, false),
	};
	char number[32];
	int r;

	snprintf(number, sizeof(number), "TYPE_%" PRIu32, record->type);
	if (!name)
		name = number;
	if (d->json) {
		seam_json_open(&line.j, NULL, '{');
		seam_json_u64(&line.j, "offset", record->offset);
		seam_json_string(&line.j, "type", name);
		seam_json_u64(&line.j, "misc", record->misc);
	} else {
		fprintf(d->out, "%#10" PRIx64 " %-14s misc=%#x",
			record->offset, name, record->misc);
	}
	r = record->type == PERF_RECORD_SAMPLE ?
	    dump_sample(d, &line, record) : dump_other(d, &line, record);
	if (r < 0) {
		put_bytes(&line, "data", record->payload);
		if (seam_perf_record_name(record->type)) {
			put_damaged(&line);
			d->n_damaged++;
		}
	}
	if (trailing.size)
		put_u64(&line, "trailing_bytes", trailing.size);
	if (d->json)
		seam_json_close(&line.j);
	else
		fputc('\n', d->out);
}

int seam_perf_dump(FILE *out, const struct seam_perf_data *data,
		   struct seam_bytes bytes, uint64_t begin, uint64_t end,
		   bool json, const struct seam_perf_namer *namer,
		   uint64_t *n_damaged, struct seam_err *err)
{
	struct dump d = {
		.out = out, .data = data, .json = json, .namer = namer,
		.tracepoints = seam_tracepoints_new(
			data->features[SEAM_PERF_TRACING_DATA]),
	};
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	int r;

	seam_perf_stream_init(&stream, bytes, data->endian, begin, end, false);
	while ((r = seam_perf_stream_next(&stream, &record, err)) > 0 &&
	       !ferror(out))
		dump_record(&d, &record, stream.trailing);
	seam_perf_stream_fini(&stream);
	seam_tracepoints_free(d.tracepoints);
	*n_damaged = d.n_damaged;
	return r < 0 ? r : 0;
}
