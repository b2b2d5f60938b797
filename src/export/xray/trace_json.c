/* SPDX-License-Identifier: MIT */
/*
 * trace_json.c - a thread's items as events; see trace_json.h
 *
 * The beginning of a call's event is the same text for every call of one
 * function in one thread.  It is made once and copied; only the time's digits
 * are made anew.
 */
#include "export/xray/trace_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "model/xray/stream_items.h"

enum {
	BUFFER_BYTES = 1 << 20,
	ROOM = 64,			/* for a number and what is around it */
	FORK_PID = 1 << 30,		/* pids of Linux are below 2^22 */
};

struct head {
	char *text;			/* up to the time; NULL: not made yet */
	size_t size;
};

struct trace_writer {
	FILE *out;
	const struct seam_call_names *names;
	const struct seam_time_range *range;
	char *buf;
	size_t used;
	SEAM_ARRAY(struct head) heads;	/* by slot, of this stream */
	struct head end_head;
	int32_t pid, tid;
	bool is_begin_open;		/* a begin event may get arguments */
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

/* @v in decimal at @p, two digits at a time.  Returns the end. */
static char *put_u64(char *p, uint64_t v)
{
	static const char pairs[] =
		"0001020304050607080910111213141516171819"
		"2021222324252627282930313233343536373839"
		"4041424344454647484950515253545556575859"
		"6061626364656667686970717273747576777879"
		"8081828384858687888990919293949596979899";
	char digits[20];
	size_t at = sizeof(digits);

	while (v >= 100) {
		at -= 2;
		memcpy(digits + at, pairs + 2 * (v % 100), 2);
		v /= 100;
	}
	if (v >= 10) {
		at -= 2;
		memcpy(digits + at, pairs + 2 * v, 2);
	} else {
		digits[--at] = (char)('0' + v);
	}
	memcpy(p, digits + at, sizeof(digits) - at);
	return p + sizeof(digits) - at;
}

/* Microseconds with three decimals. */
static void put_time(struct trace_writer *w, uint64_t ns)
{
	unsigned int rest = (unsigned int)(ns % 1000);
	char *p;

	if (BUFFER_BYTES - w->used < ROOM)
		flush(w);
	p = put_u64(w->buf + w->used, ns / 1000);
	*p++ = '.';
	*p++ = (char)('0' + rest / 100);
	*p++ = (char)('0' + rest / 10 % 10);
	*p++ = (char)('0' + rest % 10);
	w->used = (size_t)(p - w->buf);
}

static void close_begin(struct trace_writer *w)
{
	if (w->is_begin_open)
		put_text(w, w->n_arguments ? "}}" : "}");
	w->is_begin_open = false;
}

/* Finish the event before, begin the next. */
static void next_event(struct trace_writer *w)
{
	close_begin(w);
	if (!w->is_first)
		put_text(w, ",\n");
	w->is_first = false;
}

static void make_head(struct trace_writer *w, struct head *head, uint32_t function)
{
	char buf[SEAM_CALL_NAME];
	FILE *out = open_memstream(&head->text, &head->size);

	if (!out) {
		w->error = -ENOMEM;
		return;
	}
	fputs("{\"name\":\"", out);
	seam_text_put(out, seam_call_name(w->names, function, buf),
		      SEAM_TEXT_JSON);
	fprintf(out, "\",\"ph\":\"B\",\"pid\":%" PRId32 ",\"tid\":%" PRId32
		",\"ts\":", w->pid, w->tid);
	if (fclose(out))
		w->error = -ENOMEM;
}

/* Functions of one stream have small numbers in it, their slots. */
static const struct head *find_head(struct trace_writer *w, uint32_t slot,
				    uint32_t function)
{
	while (w->heads.n <= slot) {
		struct head *head = SEAM_ARRAY_PUSH(&w->heads);

		if (!head) {
			w->error = -ENOMEM;
			return NULL;
		}
		*head = (struct head) { 0 };
	}
	if (!w->heads.items[slot].text)
		make_head(w, &w->heads.items[slot], function);
	return w->error ? NULL : &w->heads.items[slot];
}

static void put_begin(struct trace_writer *w, struct seam_calls *calls,
		      const struct seam_item *item)
{
	const struct head *head;

	close_begin(w);
	if (!seam_time_range_has(w->range, item->time_ns))
		return;
	head = find_head(w, seam_calls_slot(calls, item->function),
			 item->function);
	if (!head)
		return;
	next_event(w);
	put(w, head->text, head->size);
	put_time(w, item->time_ns);
	w->is_begin_open = true;
	w->n_arguments = 0;
}

static void put_end(struct trace_writer *w, const struct seam_item *item)
{
	if (!seam_time_range_has(w->range, item->begin_ns))
		return;
	next_event(w);
	put(w, w->end_head.text, w->end_head.size);
	put_time(w, item->time_ns);
	put(w, "}", 1);
}

static void put_argument(struct trace_writer *w, uint64_t value)
{
	char text[ROOM];

	if (!w->is_begin_open)
		return;
	snprintf(text, sizeof(text), "%s\"%u\":%" PRIu64,
		 w->n_arguments ? "," : ",\"args\":{", w->n_arguments, value);
	w->n_arguments++;
	put_text(w, text);
}

static bool is_text(struct seam_bytes data)
{
	for (size_t i = 0; i < data.size; i++)
		if (!seam_text_is_printable(data.data[i]))
			return false;
	return true;
}

/* The bytes of an event: as text if they are, else in hexadecimal. */
static void put_data(struct trace_writer *w, struct seam_bytes data)
{
	bool text = is_text(data);

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

static void put_instant(struct trace_writer *w, const struct seam_item *item)
{
	char text[2 * ROOM];

	if (!seam_time_range_has(w->range, item->time_ns))
		return;
	if (item->kind == SEAM_ITEM_TYPED)
		snprintf(text, sizeof(text), "{\"name\":\"typed event %u\"",
			 item->type);
	else
		snprintf(text, sizeof(text), "{\"name\":\"custom event\"");
	next_event(w);
	put_text(w, text);
	snprintf(text, sizeof(text), ",\"ph\":\"i\",\"s\":\"t\",\"pid\":%"
		 PRId32 ",\"tid\":%" PRId32 ",\"ts\":", w->pid, w->tid);
	put_text(w, text);
	put_time(w, item->time_ns);
	put_data(w, item->data);
}

static void put_item(struct trace_writer *w, struct seam_calls *calls,
		     const struct seam_item *item)
{
	switch (item->kind) {
	case SEAM_ITEM_BEGIN:
		put_begin(w, calls, item);
		break;
	case SEAM_ITEM_ARGUMENT:
		put_argument(w, item->value);
		break;
	case SEAM_ITEM_END:
		put_end(w, item);
		break;
	case SEAM_ITEM_CUSTOM:
	case SEAM_ITEM_TYPED:
		put_instant(w, item);
		break;
	case SEAM_ITEM_LOSS:	/* among the problems */
	case SEAM_ITEM_SAMPLE:
		break;
	}
}

/* A forked child has its parent's ids: it needs a track of its own. */
static void begin_stream(struct trace_writer *w,
			 const struct seam_trace_stream *stream)
{
	char text[4 * ROOM], end[2 * ROOM];

	w->pid = stream->pid;
	w->tid = stream->tid;
	if (stream->is_fork) {
		w->pid = (int32_t)((uint32_t)stream->log | FORK_PID);
		snprintf(text, sizeof(text), "{\"name\":\"process_name\","
			 "\"ph\":\"M\",\"pid\":%" PRId32 ",\"args\":{\"name\":"
			 "\"forked from %" PRId32 "\"}}", w->pid, stream->pid);
		next_event(w);
		put_text(w, text);
	}
	snprintf(end, sizeof(end), "{\"ph\":\"E\",\"pid\":%" PRId32
		 ",\"tid\":%" PRId32 ",\"ts\":", w->pid, w->tid);
	free(w->end_head.text);
	w->end_head.text = strdup(end);
	w->end_head.size = strlen(end);
	if (!w->end_head.text)
		w->error = -ENOMEM;
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
	close_begin(w);
	w->error = w->error ? w->error : items.calls.error;
	seam_xray_problems_merge(problems, &items.stream.reader.problems);
	seam_stream_items_close(&items);
	/* slots are of one stream */
	for (size_t i = 0; i < w->heads.n; i++)
		free(w->heads.items[i].text);
	w->heads.n = 0;
}

int seam_trace_json(FILE *out, const struct seam_trace *trace,
		    const struct seam_call_names *names,
		    struct seam_xray_problems *problems, struct seam_err *err)
{
	struct trace_writer w = {
		.out = out, .names = names, .is_first = true,
		.range = &trace->range,
		.buf = malloc(BUFFER_BYTES),
	};

	if (!w.buf)
		return seam_err_set(err, -ENOMEM, "out of memory");
	put_text(&w, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (size_t i = 0; !w.error && i < trace->streams.n; i++) {
		begin_stream(&w, &trace->streams.items[i]);
		if (!w.error)
			put_stream(&w, trace, i, problems);
	}
	put_text(&w, "\n]}\n");
	flush(&w);
	free(w.buf);
	free(w.heads.items);
	free(w.end_head.text);
	if (w.error == -EOVERFLOW)
		return seam_calls_failed(w.error, err);
	if (w.error)
		return seam_err_set(err, w.error, "cannot write trace: %s",
				    strerror(-w.error));
	return 0;
}
