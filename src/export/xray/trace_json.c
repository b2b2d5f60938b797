/* SPDX-License-Identifier: MIT */
/*
 * trace_json.c - the items of each thread as events; see exporter.h
 *
 * The two events of a call begin with the same text for every call of one
 * function in one thread.  That text is made once and copied; only the time's
 * digits change.  Both events have the function's name: speedscope ignores an
 * end event whose name is not that of the innermost open call.
 *
 * Source: "Trace Event Format", "Duration Events"; speedscope 1.25,
 * src/import/trace-event.ts.
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "model/xray/stream_calls.h"

enum {
	BUFFER_BYTES = 1 << 20,
	ROOM = 64,			/* for a number and its punctuation */
	FORK_PID = 1 << 30,		/* Linux pids are below 2^22 */
};

/* The events of a call up to the time, of phase B and E.  NULL: not made yet. */
struct heads {
	char *text[2];
	size_t size[2];
};

struct trace_writer {
	FILE *out;
	const struct seam_xray_map *names;
	const struct seam_event_names *event_names;	/* of this stream */
	const struct seam_time_range *range;
	char *buf;
	size_t used;
	SEAM_ARRAY(struct heads) heads;	/* by slot, of this stream */
	uint64_t ms;			/* of the last time */
	char ms_text[24];		/* its digits */
	size_t ms_size;
	int32_t pid, tid;
	bool is_begin;			/* arguments of the last event follow */
	unsigned int n_arguments;
	bool is_first;
	int error;
};

static void flush(struct trace_writer *w)
{
	if (!w->error && fwrite(w->buf, 1, w->used, w->out) != w->used)
		w->error = errno ? -errno : -EIO;
	w->used = 0;
}

static void put(struct trace_writer *w, const void *data, size_t size)
{
	if (size > BUFFER_BYTES - w->used)
		flush(w);
	if (size > BUFFER_BYTES) {
		if (!w->error && fwrite(data, 1, size, w->out) != size)
			w->error = errno ? -errno : -EIO;
		return;
	}
	memcpy(w->buf + w->used, data, size);
	w->used += size;
}

static void put_text(struct trace_writer *w, const char *text)
{
	put(w, text, strlen(text));
}

static char *put_digits(char *p, unsigned int below_1000)
{
	*p++ = (char)('0' + below_1000 / 100);
	*p++ = (char)('0' + below_1000 / 10 % 10);
	*p++ = (char)('0' + below_1000 % 10);
	return p;
}

/*
 * Microseconds with three decimals.  The digits of the milliseconds are cached:
 * the next time mostly has the same.
 */
static void put_time(struct trace_writer *w, uint64_t ns)
{
	unsigned int below_ms = (unsigned int)(ns % 1000000);
	char *p;

	if (BUFFER_BYTES - w->used < ROOM)
		flush(w);
	p = w->buf + w->used;
	if (ns < 1000000) {
		p += snprintf(p, ROOM, "%u", below_ms / 1000);
	} else {
		if (w->ms != ns / 1000000) {
			w->ms = ns / 1000000;
			w->ms_size = (size_t)snprintf(w->ms_text,
				sizeof(w->ms_text), "%" PRIu64, w->ms);
		}
		memcpy(p, w->ms_text, sizeof(w->ms_text));
		p = put_digits(p + w->ms_size, below_ms / 1000);
	}
	*p++ = '.';
	p = put_digits(p, below_ms % 1000);
	w->used = (size_t)(p - w->buf);
}

/*
 * Begin an event with @text, without its leading ",\n" if it is the first
 * event.
 */
static void put_head(struct trace_writer *w, const char *text, size_t size)
{
	size_t skipped = w->is_first ? 2 : 0;

	put(w, text + skipped, size - skipped);
	w->is_first = false;
	w->is_begin = false;
}

static void make_head(struct trace_writer *w, char phase, const char *name,
		      char **text, size_t *size)
{
	FILE *out = open_memstream(text, size);

	if (!out) {
		w->error = -ENOMEM;
		return;
	}
	fputs(",\n{\"name\":\"", out);
	seam_text_put(out, name, SEAM_TEXT_JSON);
	fprintf(out, "\",\"ph\":\"%c\",\"pid\":%" PRId32 ",\"tid\":%" PRId32
		",\"ts\":", phase, w->pid, w->tid);
	if (fclose(out))
		w->error = -ENOMEM;
}

/* Those of @function; NULL: out of memory. */
static const struct heads *find_heads(struct trace_writer *w,
				      struct seam_calls *calls,
				      uint32_t function)
{
	/* slots number the functions of one stream from 0 */
	uint32_t slot = seam_calls_slot(calls, function);
	char buf[SEAM_CALL_NAME];
	struct heads *heads;
	const char *name;

	if (!SEAM_ARRAY_GROW(&w->heads, (size_t)slot + 1)) {
		w->error = -ENOMEM;
		return NULL;
	}
	heads = &w->heads.items[slot];
	if (!heads->text[0]) {
		name = seam_call_name(w->names, function, buf);
		make_head(w, 'B', name, &heads->text[0], &heads->size[0]);
		make_head(w, 'E', name, &heads->text[1], &heads->size[1]);
	}
	return w->error ? NULL : heads;
}

/* An event of a call that began at @begin_ns, if that is in the range. */
static inline __attribute__((always_inline)) void
put_call(struct trace_writer *w, struct seam_calls *calls,
	 const struct seam_item *item, uint64_t begin_ns, bool is_end)
{
	const struct heads *heads =
		seam_time_range_has(w->range, begin_ns) ?
		find_heads(w, calls, item->function) : NULL;

	w->is_begin = false;
	if (!heads)
		return;
	put_head(w, heads->text[is_end], heads->size[is_end]);
	put_time(w, item->time_ns);
	put(w, "}", 1);
	w->is_begin = !is_end;
	w->n_arguments = 0;
}

/* The buffer ends with the begin event: replace its closing brackets. */
static void put_argument(struct trace_writer *w, uint64_t value)
{
	char text[ROOM];

	if (!w->is_begin)
		return;
	w->used -= w->n_arguments ? 2 : 1;
	snprintf(text, sizeof(text), "%s\"%u\":%" PRIu64 "}}",
		 w->n_arguments ? "," : ",\"args\":{", w->n_arguments, value);
	w->n_arguments++;
	put_text(w, text);
}

/* The bytes of an event: JSON, text if printable, else in hexadecimal. */
static void put_data(struct trace_writer *w, struct seam_bytes data)
{
	bool text = seam_text_are_printable(data);

	if (seam_json_check(data)) {
		put_text(w, ",\"args\":{\"data\":");
		put(w, data.data, data.size);
		put_text(w, "}}");
		return;
	}
	put_text(w, text ? ",\"args\":{\"data\":\"" : ",\"args\":{\"hex\":\"");
	for (size_t i = 0; i < data.size; i++) {
		char hex[3];

		if (text && (data.data[i] == '"' || data.data[i] == '\\'))
			put(w, "\\", 1);
		if (text) {
			put(w, &data.data[i], 1);
		} else {
			snprintf(hex, sizeof(hex), "%02x", data.data[i]);
			put(w, hex, 2);
		}
	}
	put_text(w, "\"}}");
}

/* The name under which the program registered a type of event. */
static void put_event_name(struct trace_writer *w, const struct seam_item *item)
{
	const char *name = item->kind == SEAM_ITEM_TYPED ?
		seam_event_name_find(w->event_names,
				     (uint16_t)item->type) : NULL;
	char text[6 * SEAM_EVENT_NAME_MAX];

	if (item->kind == SEAM_ITEM_LOSS)
		snprintf(text, sizeof(text), "records lost");
	else if (name)
		seam_text_copy(text, sizeof(text), name, SEAM_TEXT_JSON);
	else if (item->kind == SEAM_ITEM_TYPED)
		snprintf(text, sizeof(text), "typed event %u", item->type);
	else
		snprintf(text, sizeof(text), "custom event");
	put_text(w, text);
}

/* False: it is not in the selected time. */
static bool put_instant(struct trace_writer *w, const struct seam_item *item)
{
	static const char begin[] = ",\n{\"name\":\"";
	char text[2 * ROOM];

	if (!seam_time_range_has(w->range, item->time_ns))
		return false;
	put_head(w, begin, sizeof(begin) - 1);
	put_event_name(w, item);
	snprintf(text, sizeof(text), "\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%"
		 PRId32 ",\"tid\":%" PRId32 ",\"ts\":", w->pid, w->tid);
	put_text(w, text);
	put_time(w, item->time_ns);
	return true;
}

static void put_item(struct trace_writer *w, struct seam_calls *calls,
		     const struct seam_item *item)
{
	char text[ROOM];

	switch (item->kind) {
	case SEAM_ITEM_BEGIN:
		put_call(w, calls, item, item->time_ns, false);
		break;
	case SEAM_ITEM_ARGUMENT:
		put_argument(w, item->value);
		break;
	case SEAM_ITEM_END:
		put_call(w, calls, item, item->begin_ns, true);
		break;
	case SEAM_ITEM_CUSTOM:
	case SEAM_ITEM_TYPED:
		if (put_instant(w, item))
			put_data(w, item->data);
		break;
	case SEAM_ITEM_LOSS:
		/* damage, which has no mark in the log, is in the problems */
		if (!item->data.size || !put_instant(w, item))
			break;
		snprintf(text, sizeof(text), ",\"args\":{\"records\":%" PRIu64
			 "}}", item->value);
		put_text(w, text);
		break;
	case SEAM_ITEM_SAMPLE:
		break;
	}
}

/* A forked child logs its parent's ids; give it a pid (track) of its own. */
static void begin_stream(struct trace_writer *w,
			 const struct seam_trace_stream *stream)
{
	char text[4 * ROOM];

	w->pid = stream->pid;
	w->tid = stream->tid;
	if (!stream->is_fork)
		return;
	w->pid = (int32_t)((uint32_t)stream->log | FORK_PID);
	snprintf(text, sizeof(text), ",\n{\"name\":\"process_name\","
		 "\"ph\":\"M\",\"pid\":%" PRId32 ",\"args\":{\"name\":"
		 "\"forked from %" PRId32 "\"}}", w->pid, stream->pid);
	put_head(w, text, strlen(text));
}

static void put_stream(struct trace_writer *w, const struct seam_trace *trace,
		       size_t stream, struct seam_xray_problems *problems)
{
	struct seam_stream_items items;
	const struct seam_item *item;
	int r = seam_stream_items_open(&items, trace, stream);

	while (!r && !w->error &&
	       (item = seam_stream_items_next(&items)) != NULL)
		put_item(w, &items.calls, item);
	w->error = w->error ? w->error : items.calls.error;
	seam_xray_problems_merge(problems, &items.stream.reader.problems);
	seam_stream_items_close(&items);
	/* slots are those of one stream */
	for (size_t i = 0; i < w->heads.n; i++) {
		free(w->heads.items[i].text[0]);
		free(w->heads.items[i].text[1]);
	}
	w->heads.n = 0;
}

int seam_write_trace_json(const struct seam_export *export,
			  struct seam_err *err)
{
	const struct seam_trace *trace = export->trace;
	struct trace_writer w = {
		.out = export->out, .names = export->names, .is_first = true,
		.range = &trace->range, .buf = malloc(BUFFER_BYTES),
	};

	if (!w.buf)
		return seam_err_no_memory(err);
	put_text(&w, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (size_t i = 0; !w.error && i < trace->streams.n; i++) {
		w.event_names = &trace->logs.items[trace->streams.items[i].log]
				 .event_names;
		begin_stream(&w, &trace->streams.items[i]);
		put_stream(&w, trace, i, export->problems);
	}
	put_text(&w, "\n]}\n");
	flush(&w);
	free(w.buf);
	free(w.heads.items);
	if (w.error)
		return seam_err_set(err, w.error, "cannot write trace: %s",
				    strerror(-w.error));
	return 0;
}
