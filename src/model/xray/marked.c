/* SPDX-License-Identifier: MIT */
/* marked.c - begins and ends of a stream joined, and added up; see marked.h */
#include "model/xray/marked.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/text.h"

struct open_mark {
	bool is_typed;
	uint16_t type;
	struct seam_bytes name;		/* of a custom event; in the log */
	struct seam_bytes text;
	uint64_t begin_ns;
	struct seam_off_time before;
};

struct mark_reader {
	const struct seam_trace_log *log;
	struct seam_wait_cursor waits;
	struct open_mark open[SEAM_MARKED_MAX_OPEN];
	size_t n_open;
	struct seam_marked_unpaired unpaired;
	seam_marked_fn *found;
	void *context;
};

/* Take the word in front of @data, and the spaces after it. */
static struct seam_bytes take_word(struct seam_bytes *data)
{
	struct seam_bytes word = { .data = data->data };

	while (word.size < data->size && data->data[word.size] > ' ')
		word.size++;
	data->data += word.size;
	data->size -= word.size;
	while (data->size && *data->data == ' ') {
		data->data++;
		data->size--;
	}
	return word;
}

static bool is_word(struct seam_bytes word, const char *text)
{
	return word.size == strlen(text) &&
	       memcmp(word.data, text, word.size) == 0;
}

/* The text without what ends a C string or a line. */
static struct seam_bytes trimmed(struct seam_bytes data)
{
	while (data.size && data.data[data.size - 1] <= ' ')
		data.size--;
	return data;
}

/* 1 for a begin, -1 for an end, with the place of @mark; 0: neither. */
static int parse(const struct seam_xray_event *event,
		 const struct seam_xray_payload *payload,
		 struct open_mark *mark)
{
	struct seam_bytes data = trimmed(payload->data);
	struct seam_bytes word = take_word(&data);
	int side = is_word(word, "begin") ? 1 : is_word(word, "end") ? -1 : 0;

	*mark = (struct open_mark) {
		.is_typed = event->kind == SEAM_XRAY_TYPED,
		.type = payload->type, .begin_ns = event->tsc,
	};
	if (side && !mark->is_typed) {
		mark->name = take_word(&data);
		if (!mark->name.size || mark->name.size >= SEAM_MARKED_NAME ||
		    !seam_text_are_printable(mark->name))
			return 0;
	}
	if (seam_text_are_printable(data))
		mark->text = data;
	return side;
}

static bool has_same_name(const struct open_mark *a, const struct open_mark *b)
{
	return a->is_typed == b->is_typed &&
	       (a->is_typed ? a->type == b->type :
		a->name.size == b->name.size &&
		memcmp(a->name.data, b->name.data, a->name.size) == 0);
}

static void remove_open(struct mark_reader *r, size_t i)
{
	r->n_open--;
	memmove(&r->open[i], &r->open[i + 1],
		(r->n_open - i) * sizeof(*r->open));
}

static void cut(struct mark_reader *r)
{
	r->unpaired.n_begins += r->n_open;
	r->n_open = 0;
}

static void begin_mark(struct mark_reader *r, struct open_mark *mark)
{
	if (r->n_open == SEAM_MARKED_MAX_OPEN) {
		r->unpaired.n_begins++;
		remove_open(r, 0);
	}
	mark->before = seam_waits_until(&r->waits, mark->begin_ns);
	r->open[r->n_open++] = *mark;
}

static void put_name(const struct mark_reader *r, const struct open_mark *mark,
		     char name[SEAM_MARKED_NAME])
{
	const char *known = mark->is_typed ?
		seam_event_name_find(&r->log->event_names, mark->type) : NULL;

	if (known)
		snprintf(name, SEAM_MARKED_NAME, "%s", known);
	else if (mark->is_typed)
		snprintf(name, SEAM_MARKED_NAME, "typed event %u", mark->type);
	else
		snprintf(name, SEAM_MARKED_NAME, "%.*s", (int)mark->name.size,
			 (const char *)mark->name.data);
}

/* 0, or what found() returned. */
static int end_mark(struct mark_reader *r, const struct open_mark *end)
{
	struct seam_marked marked = { .end_ns = end->begin_ns };
	const struct open_mark *begin;
	size_t i = r->n_open;

	while (i > 0 && !has_same_name(&r->open[i - 1], end))
		i--;
	if (i-- == 0) {
		r->unpaired.n_ends++;
		return 0;
	}
	begin = &r->open[i];
	marked.begin_ns = begin->begin_ns;
	marked.text = begin->text;
	marked.off = seam_off_time_less(seam_waits_until(&r->waits,
							 marked.end_ns),
					begin->before);
	put_name(r, begin, marked.name);
	remove_open(r, i);
	return r->found(r->context, &marked);
}

/* The events of a batch from @from on. */
static int read_batch(struct mark_reader *r,
		      const struct seam_xray_batch *batch, size_t from)
{
	int error = 0;

	for (size_t i = from; i < batch->n && !error; i++) {
		const struct seam_xray_event *event = &batch->events[i];
		const struct seam_xray_payload *payload;
		struct open_mark mark;
		int side;

		if (event->kind != SEAM_XRAY_CUSTOM &&
		    event->kind != SEAM_XRAY_TYPED)
			continue;
		payload = &batch->payloads[event->function];
		if (event->kind == SEAM_XRAY_TYPED &&
		    seam_xray_is_lost(payload)) {
			cut(r);
			continue;
		}
		side = parse(event, payload, &mark);
		if (side > 0)
			begin_mark(r, &mark);
		else if (side < 0)
			error = end_mark(r, &mark);
	}
	return error;
}

/* What is missing around the events of a batch. */
struct batch_gaps {
	uint64_t n_problems;	/* of the reader, so far */
	size_t next_block;
	bool is_before, is_after;
};

static void find_gaps(struct batch_gaps *gaps,
		      const struct seam_trace_reader *reader)
{
	uint64_t n = reader->problems.n - gaps->n_problems;

	/* a problem ends the block that the last events are of */
	gaps->is_after = n > 0 && !reader->in_block;
	/* damage between blocks may be of a block of any thread */
	gaps->is_before = n > gaps->is_after ||
			  (reader->trace->problems.n > 0 &&
			   reader->next_block != gaps->next_block);
	gaps->n_problems += n;
	gaps->next_block = reader->next_block;
}

int seam_marked_read(const struct seam_trace *trace, uint32_t stream,
		     struct seam_wait_cursor waits, seam_marked_fn *found,
		     void *context, struct seam_marked_unpaired *unpaired)
{
	struct mark_reader r = {
		.log = &trace->logs.items[trace->streams.items[stream].log],
		.waits = waits, .found = found, .context = context,
	};
	struct seam_xray_batch *batch = malloc(sizeof(*batch));
	struct seam_trace_reader reader;
	struct batch_gaps gaps = { 0 };
	size_t from;
	int error = batch ? 0 : -ENOMEM;

	if (batch)
		seam_trace_read(&reader, trace, stream);
	while (!error && seam_trace_next(&reader, batch, &from)) {
		find_gaps(&gaps, &reader);
		if (gaps.is_before)
			cut(&r);
		error = read_batch(&r, batch, from);
		if (gaps.is_after)
			cut(&r);
	}
	cut(&r);
	if (unpaired) {
		unpaired->n_begins += r.unpaired.n_begins;
		unpaired->n_ends += r.unpaired.n_ends;
	}
	free(batch);
	return error;
}

/* -- sums --------------------------------------------------------------- */

/* The row of @name; NULL: no memory. */
static struct seam_account_row *find_row(struct seam_marked_sums *sums,
					 const char *name)
{
	struct seam_account_row *rows = sums->account.rows.items;
	uint32_t id = seam_strings_put(&sums->names, name), row;

	if (id == SEAM_NONE)
		return NULL;
	row = SEAM_INDEX_FIND(&sums->rows, seam_hash_u64(id), i,
			      rows[i].function == id);
	if (row == SEAM_NONE)
		row = SEAM_INDEX_APPEND(&sums->rows, seam_hash_u64(id),
			&sums->account.rows, (struct seam_account_row) {
				.function = id, .min_ns = UINT64_MAX });
	return row == SEAM_NONE ? NULL : &sums->account.rows.items[row];
}

static int add_up(void *context, const struct seam_marked *marked)
{
	uint64_t ns = marked->end_ns - marked->begin_ns;
	struct seam_marked_sums *sums = context;
	struct seam_account_row *row;

	if (!seam_time_range_has(&sums->range, marked->begin_ns))
		return 0;
	row = find_row(sums, marked->name);
	if (!row || !seam_account_count(&sums->account, row, ns))
		return -ENOMEM;
	row->count++;
	row->sum_ns += ns;
	row->total_ns += ns;
	row->min_ns = ns < row->min_ns ? ns : row->min_ns;
	row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	seam_off_time_add(&row->off, marked->off);
	return 0;
}

int seam_marked_sums_build(struct seam_marked_sums *sums,
			   const struct seam_trace *trace,
			   const struct seam_thread_waits *waits)
{
	int r = 0;

	*sums = (struct seam_marked_sums) {
		.account.in_ticks = trace->in_ticks, .account.waits = waits,
		.range = trace->range,
	};
	for (uint32_t s = 0; s < trace->streams.n && !r; s++) {
		struct seam_open_waits open = { 0 };

		if (waits)
			seam_open_waits_begin(&open, waits, trace, s);
		r = seam_marked_read(trace, s, open.cursor, add_up, sums,
				     &sums->unpaired);
	}
	return r;
}

void seam_marked_sums_fini(struct seam_marked_sums *sums)
{
	seam_account_fini(&sums->account);
	seam_strings_fini(&sums->names);
	seam_index_fini(&sums->rows);
}
