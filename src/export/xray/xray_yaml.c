/* SPDX-License-Identifier: MIT */
/*
 * xray_yaml.c - a merge of all threads by TSC; see exporter.h
 *
 * The lanes, one per thread, are in a heap by the TSC of their next event.
 */
#include "export/exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/text.h"

struct lane {
	struct seam_trace_reader reader;
	struct seam_xray_batch batch;
	size_t at;			/* next event of the batch */
	uint32_t function;		/* the last one entered or left */
	size_t order;			/* for equal TSCs */
};

static uint64_t tsc_of(const struct lane *lane)
{
	return lane->batch.events[lane->at].tsc;
}

static bool is_before(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;

	return tsc_of(x) != tsc_of(y) ? tsc_of(x) < tsc_of(y) :
					x->order < y->order;
}

/* Read a batch if the last is used up; skip events copied by fork(). */
static bool fill(struct lane *lane)
{
	size_t n_shadow;

	while (lane->at >= lane->batch.n) {
		if (!seam_trace_next(&lane->reader, &lane->batch, &n_shadow))
			return false;
		lane->at = n_shadow;
	}
	return true;
}

/*
 * A double-quoted scalar.  \xNN is a character in YAML, and a byte for
 * llvm-xray's reader; the two differ from 0x80 on.
 */
static void put_scalar(FILE *out, const uint8_t *data, size_t size)
{
	fputc('"', out);
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '"' || data[i] == '\\')
			fprintf(out, "\\%c", data[i]);
		else if (seam_text_is_printable(data[i]))
			fputc(data[i], out);
		else
			fprintf(out, "\\x%02x", data[i]);
	}
	fputc('"', out);
}

static const char *kind_name(unsigned int kind)
{
	static const char *const names[] = {
		[SEAM_XRAY_ENTRY] = "function-enter",
		[SEAM_XRAY_EXIT] = "function-exit",
		[SEAM_XRAY_TAIL_EXIT] = "function-tail-exit",
		[SEAM_XRAY_ENTRY_ARGS] = "function-enter-arg",
		[SEAM_XRAY_CUSTOM] = "custom-event",
		[SEAM_XRAY_TYPED] = "typed-event",
	};

	return names[kind];
}

/*
 * The arguments after the entry just taken; they have no time of their own.
 * Returns whether there are any.
 */
static bool put_arguments(FILE *out, struct lane *lane)
{
	bool have = false;

	while (fill(lane) &&
	       lane->batch.events[lane->at].kind == SEAM_XRAY_ARGUMENT) {
		fprintf(out, "%s%" PRIu64, have ? ", " : ", args: [ ",
			lane->batch.events[lane->at++].tsc);
		have = true;
	}
	if (have)
		fputs(" ]", out);
	return have;
}

/* @id is a function's number in the log of @lane. */
static void put_name(FILE *out, const struct seam_xray_map *names,
		     const struct lane *lane, uint32_t id)
{
	uint32_t function = seam_trace_function(lane->reader.ids, id);
	char buf[SEAM_CALL_NAME];
	const char *name = seam_call_name(names, function, buf);

	fprintf(out, "func-id: %" PRIu32 ", function: ", id);
	/* llvm-xray has the bare number where there is no map */
	if (seam_xray_map_find(names, function))
		put_scalar(out, (const uint8_t *)name, strlen(name));
	else
		fprintf(out, "'%" PRIu32 "'", id);
}

static void put_record(FILE *out, const struct seam_xray_map *names,
		       struct lane *lane)
{
	const struct seam_trace_stream *stream = lane->reader.stream;
	struct seam_xray_event event = lane->batch.events[lane->at++];
	struct seam_bytes data = { 0 };

	if (event.kind <= SEAM_XRAY_ENTRY_ARGS)
		lane->function = event.function;
	else if (event.kind != SEAM_XRAY_ARGUMENT)
		data = lane->batch.payloads[event.function].data;
	else
		return;
	fputs("  - { type: 0, ", out);
	put_name(out, names, lane, lane->function);
	/* an entry with arguments has no kind of its own in an FDR log */
	if (event.kind <= SEAM_XRAY_ENTRY_ARGS && put_arguments(out, lane))
		event.kind = SEAM_XRAY_ENTRY_ARGS;
	fprintf(out, ", cpu: %u, thread: %" PRId32 ", process: %" PRId32
		", kind: %s, tsc: %" PRIu64 ", data: ", event.cpu, stream->tid,
		stream->pid, kind_name(event.kind), event.tsc);
	put_scalar(out, data.data, data.size);
	fputs(" }\n", out);
}

static void put_header(FILE *out, const struct seam_trace *trace)
{
	const struct seam_xray_header *header =
		&trace->logs.items[0].index.sections.items[0].header;

	/* llvm-xray reads YAML of version 1 only, whatever it writes */
	fprintf(out, "---\nheader:\n  version: 1\n  type: %u\n"
		"  constant-tsc: %s\n  nonstop-tsc: %s\n"
		"  cycle-frequency: %" PRIu64 "\nrecords:\n",
		header->log_type, header->flags & 1 ? "true" : "false",
		header->flags & 2 ? "true" : "false",
		header->cycle_frequency);
}

static void merge(FILE *out, const struct seam_xray_map *names,
		  struct lane **heap, size_t n)
{
	for (size_t i = n / 2; i-- > 0; )
		seam_heap_sink((void **)heap, n, i, is_before);
	while (n > 0 && !ferror(out)) {
		put_record(out, names, heap[0]);
		if (!fill(heap[0]))
			heap[0] = heap[--n];
		if (n > 1)
			seam_heap_sink((void **)heap, n, 0, is_before);
	}
}

int seam_write_xray_yaml(const struct seam_export *export, struct seam_err *err)
{
	const struct seam_trace *trace = export->trace;
	size_t all = trace->streams.n, n = 0;
	struct lane *lanes = calloc(all + 1, sizeof(*lanes));
	struct lane **heap = calloc(all + 1, sizeof(*heap));
	int r = lanes && heap ? 0 : seam_err_no_memory(err);

	for (size_t i = 0; !r && i < all; i++) {
		lanes[i].order = i;
		seam_trace_read(&lanes[i].reader, trace, i);
		lanes[i].reader.raw = true;
		if (fill(&lanes[i]))
			heap[n++] = &lanes[i];
	}
	if (!r) {
		put_header(export->out, trace);
		merge(export->out, export->names, heap, n);
		fputs("...\n", export->out);
	}
	for (size_t i = 0; !r && i < all; i++)
		seam_xray_problems_merge(export->problems,
					 &lanes[i].reader.problems);
	free(lanes);
	free(heap);
	return r;
}
