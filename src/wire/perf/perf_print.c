/* SPDX-License-Identifier: MIT */
/* perf_print.c - records as text and as JSON lines; see perf_print.h */
#include "wire/perf/perf_print.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>

#include "wire/guest/guest_decode.h"
#include "wire/perf/perf_stream.h"
#include "wire/perf/tracepoints.h"

struct perf_printer {
	FILE *out;
	const struct seam_perf_data *data;
	enum seam_line_form form;
	const struct seam_perf_namer *namer;
	struct seam_tracepoints *tracepoints;	/* NULL: none are described */
	uint64_t n_damaged;
};

static void put_words(struct seam_line *line, const char *name,
		      const struct seam_perf_u64s *words)
{
	seam_line_open(line, name, '[');
	for (size_t i = 0; i < words->n; i++)
		seam_line_hex(line, NULL, seam_perf_u64(words, i));
	seam_line_close(line, ']');
}

/* -- samples ------------------------------------------------------------ */

static void put_regs(struct seam_line *line, const char *name,
		     const struct seam_perf_regs *regs)
{
	seam_line_open(line, name, '{');
	seam_line_u64(line, "abi", regs->abi);
	seam_line_hex(line, "mask", regs->mask);
	put_words(line, "values", &regs->values);
	seam_line_close(line, '}');
}

/*
 * RAW of a tracepoint also as fields, if the recording has its format; that of
 * a VM's sample as its record.
 */
static void put_raw(struct perf_printer *d, struct seam_line *line,
		    const struct seam_perf_event *event,
		    const struct seam_perf_sample *s)
{
	enum seam_guest_event guest = seam_guest_event_of(event->name);

	seam_line_data(line, "raw", s->raw);
	if (guest)
		seam_guest_print(line, guest, s->raw);
	if (event->attr.type != PERF_TYPE_TRACEPOINT)
		return;
	seam_line_open(line, "fields", '{');
	seam_tracepoints_fields(d->tracepoints, event->attr.config, s->raw,
				line);
	seam_line_close(line, '}');
}

static void put_sample_tail(struct seam_line *line, uint64_t has,
			    const struct seam_perf_sample *s)
{
	if (has & PERF_SAMPLE_BRANCH_STACK)
		put_words(line, "branch_stack", &s->branches);
	if (has & PERF_SAMPLE_REGS_USER)
		put_regs(line, "regs_user", &s->user_regs);
	if (has & PERF_SAMPLE_STACK_USER)
		seam_line_u64(line, "stack_user_size", s->user_stack.size);
	if (has & PERF_SAMPLE_WEIGHT_TYPE)
		seam_line_u64(line, "weight", s->weight);
	if (has & PERF_SAMPLE_DATA_SRC)
		seam_line_hex(line, "data_src", s->data_src);
	if (has & PERF_SAMPLE_TRANSACTION)
		seam_line_u64(line, "transaction", s->transaction);
	if (has & PERF_SAMPLE_REGS_INTR)
		put_regs(line, "regs_intr", &s->intr_regs);
	if (has & PERF_SAMPLE_PHYS_ADDR)
		seam_line_hex(line, "phys_addr", s->phys_addr);
	if (has & PERF_SAMPLE_CGROUP)
		seam_line_u64(line, "cgroup", s->cgroup);
	if (has & PERF_SAMPLE_DATA_PAGE_SIZE)
		seam_line_u64(line, "data_page_size", s->data_page_size);
	if (has & PERF_SAMPLE_CODE_PAGE_SIZE)
		seam_line_u64(line, "code_page_size", s->code_page_size);
	if (has & PERF_SAMPLE_AUX)
		seam_line_data(line, "aux", s->aux);
}

static void put_chain(struct perf_printer *d, struct seam_line *line,
		      const struct seam_perf_sample *s)
{
	if (!d->namer || !seam_line_is_json(line)) {
		put_words(line, "callchain", &s->callchain);
		return;
	}
	seam_line_open(line, "callchain", '[');
	d->namer->chain(d->namer->context, &line->j, s);
	seam_line_close(line, ']');
}

static void put_sample(struct perf_printer *d, struct seam_line *line,
		       const struct seam_perf_event *event,
		       const struct seam_perf_sample *s)
{
	uint64_t has = event->attr.sample_type;

	seam_line_string(line, "event", event->name);
	if (has & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID))
		seam_line_u64(line, "id", s->id);
	if (has & PERF_SAMPLE_IP)
		seam_line_hex(line, "ip", s->ip);
	if (has & PERF_SAMPLE_TID) {
		seam_line_i64(line, "pid", s->pid);
		seam_line_i64(line, "tid", s->tid);
	}
	if (has & PERF_SAMPLE_TIME)
		seam_line_u64(line, "time", s->time);
	if (has & PERF_SAMPLE_ADDR)
		seam_line_hex(line, "addr", s->addr);
	if (has & PERF_SAMPLE_STREAM_ID)
		seam_line_u64(line, "stream_id", s->stream_id);
	if (has & PERF_SAMPLE_CPU)
		seam_line_u64(line, "cpu", s->cpu);
	if (has & PERF_SAMPLE_PERIOD)
		seam_line_u64(line, "period", s->period);
	if (has & PERF_SAMPLE_READ)
		put_words(line, "read", &s->read);
	if (has & PERF_SAMPLE_CALLCHAIN)
		put_chain(d, line, s);
	else if (d->namer)
		d->namer->chain(d->namer->context, NULL, s);
	if (has & PERF_SAMPLE_RAW)
		put_raw(d, line, event, s);
	put_sample_tail(line, has, s);
}

static int print_sample(struct perf_printer *d, struct seam_line *line,
			const struct seam_perf_record *record)
{
	const struct seam_perf_data *data = d->data;
	uint32_t event = seam_perf_data_event(data, seam_perf_sample_peek_id(
		&data->events.items[0].attr, data->endian, record->payload));
	struct seam_perf_sample sample;

	if (event == SEAM_NONE ||
	    seam_perf_sample_read(&data->events.items[event].attr,
				  data->endian, record->payload, &sample)) {
		if (d->namer)
			d->namer->chain(d->namer->context, NULL, NULL);
		return -EBADMSG;
	}
	put_sample(d, line, &data->events.items[event], &sample);
	return 0;
}

/* -- the trailer -------------------------------------------------------- */

static void put_sample_id(struct seam_line *line,
			  const struct seam_perf_attr *attr,
			  const struct seam_perf_sample_id *id)
{
	uint64_t has = attr->sample_type;

	if (seam_perf_sample_id_bytes(attr) == 0)
		return;
	seam_line_open(line, "sample_id", '{');
	if (has & PERF_SAMPLE_TID) {
		seam_line_i64(line, "pid", id->pid);
		seam_line_i64(line, "tid", id->tid);
	}
	if (has & PERF_SAMPLE_TIME)
		seam_line_u64(line, "time", id->time);
	if (has & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER))
		seam_line_u64(line, "id", id->id);
	if (has & PERF_SAMPLE_STREAM_ID)
		seam_line_u64(line, "stream_id", id->stream_id);
	if (has & PERF_SAMPLE_CPU)
		seam_line_u64(line, "cpu", id->cpu);
	seam_line_close(line, '}');
}

/* -- records that end in a list ----------------------------------------- */

struct link_info {
	uint64_t dev, ino;		/* of a namespace */
};

struct id_entry {
	uint64_t id, idx, cpu, tid;	/* of an event; -1: any CPU, thread */
};

#define F(record, member) SEAM_FIELD(struct record, member, NULL)

/* The list that is the last field of a record; no fields: of u64. */
static const struct {
	uint32_t type;
	struct seam_record element;
	size_t bytes;
} lists[] = {
	{ PERF_RECORD_NAMESPACES, SEAM_RECORD("namespace", NULL,
		F(link_info, dev), F(link_info, ino)), 16 },
	{ SEAM_PERF_ID_INDEX, SEAM_RECORD("id", NULL, F(id_entry, id),
		F(id_entry, idx), F(id_entry, cpu), F(id_entry, tid)), 32 },
	{ PERF_RECORD_READ, { 0 }, 8 },
	{ SEAM_PERF_AUXTRACE_INFO, { 0 }, 8 },
	{ SEAM_PERF_CALLCHAIN_DEFERRED, { 0 }, 8 },
};

static void put_list(struct perf_printer *d, struct seam_line *line,
		     const char *name, const struct seam_record *element,
		     size_t bytes, struct seam_bytes rest)
{
	struct seam_cursor c = seam_cursor_over(rest, d->data->endian);
	struct seam_perf_u64s words = { rest.data, rest.size / 8, c.swap };
	_Alignas(8) uint8_t in[SEAM_PERF_MAX_RECORD];

	if (element->n_fields == 0) {
		put_words(line, name, &words);
		return;
	}
	seam_line_open(line, name, '[');
	while (seam_cursor_left(&c) >= bytes) {
		seam_wire_read(&c, element, in);
		seam_line_open(line, NULL, '{');
		seam_line_record(line, element, in);
		seam_line_close(line, '}');
	}
	seam_line_close(line, ']');
}

/* All fields of a record; the last may be a list. */
static void put_record(struct perf_printer *d, struct seam_line *line,
		       uint32_t type, const struct seam_record *table,
		       const void *in)
{
	struct seam_record head = *table;
	const struct seam_field *last;
	struct seam_bytes rest;

	for (size_t i = 0; i < SEAM_ARRAY_SIZE(lists); i++) {
		if (lists[i].type != type)
			continue;
		last = &table->fields[--head.n_fields];
		memcpy(&rest, (const char *)in + last->offset, sizeof(rest));
		seam_line_record(line, &head, in);
		put_list(d, line, last->name, &lists[i].element,
			 lists[i].bytes, rest);
		return;
	}
	seam_line_record(line, table, in);
}

/* MMAP2 with a build id in the place of the inode. */
static int print_mapping(struct perf_printer *d, struct seam_line *line,
			 const struct seam_perf_record *record,
			 struct seam_bytes payload)
{
	struct seam_perf_mapping m;

	if (seam_perf_mapping_read(record->type, record->misc, payload,
				   d->data->endian, &m))
		return -EBADMSG;
	seam_line_i64(line, "pid", m.pid);
	seam_line_i64(line, "tid", m.tid);
	seam_line_hex(line, "addr", m.addr);
	seam_line_hex(line, "len", m.len);
	seam_line_hex(line, "pgoff", m.pgoff);
	seam_line_bytes(line, "build_id",
			(struct seam_bytes) { m.build_id, m.build_id_size });
	seam_line_hex(line, "prot", m.prot);
	seam_line_hex(line, "flags", m.flags);
	seam_line_string(line, "filename", m.filename);
	return 0;
}

/* A new attr with its ids, in a stream without a header. */
static int print_attr(struct perf_printer *d, struct seam_line *line,
		      struct seam_bytes payload)
{
	struct seam_cursor c = seam_cursor_over(payload, d->data->endian);
	struct seam_perf_attr attr;
	struct seam_perf_u64s ids = { .swap = c.swap };

	if (seam_perf_attr_read(&c, d->data->endian, &attr, NULL))
		return -EBADMSG;
	ids.n = seam_cursor_left(&c) / 8;
	ids.data = seam_cursor_bytes(&c, 8 * ids.n);
	seam_line_open(line, "attr", '{');
	seam_line_record(line, &seam_perf_attr_record, &attr);
	seam_line_close(line, '}');
	put_words(line, "ids", &ids);
	return 0;
}

static int print_other(struct perf_printer *d, struct seam_line *line,
		       const struct seam_perf_record *record)
{
	const struct seam_perf_data *data = d->data;
	const struct seam_record *table = seam_perf_record_table(record->type,
								 record->misc);
	const struct seam_perf_attr *attr = &data->events.items[0].attr;
	struct seam_bytes payload = record->payload;
	_Alignas(8) uint8_t in[SEAM_PERF_MAX_RECORD];
	struct seam_perf_sample_id id;
	int r;

	if (!table)
		return -EBADMSG;
	if (record->type == SEAM_PERF_HEADER_ATTR)
		return print_attr(d, line, payload);
	if (seam_perf_record_has_sample_id(record->type)) {
		attr = seam_perf_data_attr_of(data, payload);
		if (seam_perf_sample_id_read(attr, data->endian, &payload,
					     &id))
			return -EBADMSG;
	}
	table = seam_perf_record_table_of(record->type, record->misc, payload,
					  data->endian);
	if (record->type == PERF_RECORD_MMAP2 && table ==
	    seam_perf_record_table(PERF_RECORD_MMAP2,
				   PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		r = print_mapping(d, line, record, payload);
	} else {
		r = seam_perf_record_read(table, payload, data->endian, in);
		if (r == 0)
			put_record(d, line, record->type, table, in);
	}
	if (r == 0 && seam_perf_record_has_sample_id(record->type))
		put_sample_id(line, attr, &id);
	return r;
}

static void print_record(struct perf_printer *d,
			 const struct seam_perf_record *record,
			 struct seam_bytes trailing)
{
	const char *name = seam_perf_record_name(record->type);
	struct seam_line line;
	char number[32];
	int r;

	snprintf(number, sizeof(number), "TYPE_%" PRIu32, record->type);
	line = seam_line_begin(d->out, d->form, record->offset,
			       name ? name : number, 14);
	seam_line_hex(&line, "misc", record->misc);
	r = record->type == PERF_RECORD_SAMPLE ?
	    print_sample(d, &line, record) : print_other(d, &line, record);
	if (r < 0) {
		seam_line_data(&line, "data", record->payload);
		if (name) {
			seam_line_mark(&line, "damaged", "DAMAGED");
			d->n_damaged++;
		}
	}
	if (trailing.size)
		seam_line_u64(&line, "trailing_bytes", trailing.size);
	seam_line_end(&line);
}

int seam_perf_print(FILE *out, const struct seam_perf_data *data,
		    struct seam_bytes bytes, uint64_t begin, uint64_t end,
		    enum seam_line_form form,
		    const struct seam_perf_namer *namer, uint64_t *n_damaged,
		    struct seam_err *err)
{
	struct perf_printer d = {
		.out = out, .data = data, .form = form, .namer = namer,
		.tracepoints = seam_tracepoints_new(
			data->features[SEAM_PERF_FEATURE_TRACING_DATA]),
	};
	struct seam_perf_stream stream;
	struct seam_perf_record record;
	int r;

	seam_perf_stream_init(&stream, bytes, data->endian, begin, end, false);
	while ((r = seam_perf_stream_next(&stream, &record, err)) > 0 &&
	       !ferror(out))
		print_record(&d, &record, stream.trailing);
	seam_perf_stream_fini(&stream);
	seam_tracepoints_free(d.tracepoints);
	*n_damaged = d.n_damaged;
	return r < 0 ? r : 0;
}
