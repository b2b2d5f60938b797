/* SPDX-License-Identifier: MIT */
/* xray_print.c - sections, blocks, records, each once; see xray_print.h */
#include "wire/xray/xray_print.h"

#include "base/text.h"

enum { TYPE_WIDTH = 13 };	/* of "BufferExtents" */

struct xray_printer {
	const struct seam_xray_index *index;
	FILE *out;
	enum seam_line_form form;
	const struct seam_xray_namer *namer;	/* NULL: numbers */
	uint64_t n_damaged;
};

static struct seam_line begin_line(const struct xray_printer *x,
				   uint64_t offset, const char *type)
{
	return seam_line_begin(x->out, x->form, offset, type, TYPE_WIDTH);
}

static void print_problem(struct xray_printer *x,
			  const struct seam_xray_problem *problem)
{
	struct seam_line line = begin_line(x, problem->offset, "damaged");

	seam_line_u64(&line, "bytes", problem->lost_bytes);
	seam_line_string(&line, "text", problem->text);
	seam_line_end(&line);
}

/* The name of a typed event, and the data as text where it is text. */
static void print_event(struct xray_printer *x, struct seam_line *line,
			const struct seam_xray_record *record)
{
	const char *name = x->namer && record->state == SEAM_XRAY_AT_TYPED ?
		x->namer->event(x->namer->context, record->marker.event_type) :
		NULL;
	const struct seam_xray_payload payload = {
		.data = record->data, .type = record->marker.event_type,
	};
	bool is_text = record->data.size > 0 &&
		       seam_text_are_printable(record->data);

	if (record->state == SEAM_XRAY_AT_TYPED && seam_xray_is_lost(&payload)) {
		seam_line_u64(line, "records_lost", seam_xray_n_lost(&payload));
		return;
	}
	if (name)
		seam_line_string(line, "event", name);
	if (is_text)
		seam_line_text(line, "text", record->data);
	if (!is_text || x->form != SEAM_LINE_TEXT)
		seam_line_data(line, "data", record->data);
}

static void print_record(struct xray_printer *x, unsigned int version,
			 const struct seam_xray_record *record)
{
	const struct seam_record *table =
		seam_xray_record_table(record->state, version);
	struct seam_line line = begin_line(x, record->offset, table->name);
	const char *name;

	if (record->state == SEAM_XRAY_AT_ENTRY ||
	    record->state == SEAM_XRAY_AT_EXIT) {
		seam_line_string(&line, "action",
				 seam_xray_action_name(record->action));
		name = x->namer ? x->namer->function(x->namer->context,
						     record->function) : NULL;
		seam_line_u64(&line, "function_id", record->function);
		if (name)
			seam_line_string(&line, "function", name);
		seam_line_u64(&line, "tsc_delta",
			      record->function_record.tsc_delta);
	} else {
		seam_line_record(&line, table, &record->buffer);
	}
	if (record->state == SEAM_XRAY_AT_CUSTOM ||
	    record->state == SEAM_XRAY_AT_TYPED)
		print_event(x, &line, record);
	seam_line_end(&line);
}

static void print_block(struct xray_printer *x,
			const struct seam_xray_block *block)
{
	struct seam_xray_block_reader reader;
	struct seam_xray_record record;
	int r;

	seam_xray_block_open(&reader, x->index, block);
	while ((r = seam_xray_next(&reader.fdr, &record)) > 0)
		print_record(x, reader.fdr.format->version, &record);
	if (r == 0)
		return;
	print_problem(x, &reader.fdr.problem);
	x->n_damaged++;
}

/* Not by the tables: no reserved members, and the action by name. */
static void print_basic(struct xray_printer *x,
			const struct seam_xray_basic_record *record)
{
	const struct seam_xray_basic_argument *argument = &record->argument;
	const struct seam_xray_basic_call *call = &record->call;
	struct seam_line line = begin_line(x, record->offset,
		record->is_argument ? "CallArgument" : "Function");

	if (record->is_argument) {
		seam_line_i64(&line, "function_id", argument->function_id);
		seam_line_u64(&line, "thread_id", argument->thread_id);
		seam_line_u64(&line, "process_id", argument->process_id);
		seam_line_u64(&line, "argument", argument->argument);
	} else {
		seam_line_string(&line, "action",
				 seam_xray_action_name(call->action));
		seam_line_i64(&line, "function_id", call->function_id);
		seam_line_u64(&line, "cpu", call->cpu);
		seam_line_u64(&line, "tsc", call->tsc);
		seam_line_u64(&line, "thread_id", call->thread_id);
		seam_line_u64(&line, "process_id", call->process_id);
	}
	seam_line_end(&line);
}

static void print_run(struct xray_printer *x,
		      const struct seam_xray_block *block)
{
	enum seam_endian endian =
		x->index->sections.items[block->section].format.endian;
	struct seam_xray_basic_record record;

	for (size_t at = block->begin; at < block->end &&
	     seam_xray_basic_read(x->index->file, at, endian, &record) == 0;
	     at += SEAM_XRAY_BASIC_BYTES)
		print_basic(x, &record);
}

int seam_xray_print(FILE *out, struct seam_bytes file, enum seam_line_form form,
		    const struct seam_xray_namer *namer, uint64_t *n_damaged,
		    struct seam_err *err)
{
	struct seam_xray_index index;
	struct xray_printer x = {
		.index = &index, .out = out, .form = form, .namer = namer,
	};
	int r = seam_xray_index_build(&index, file, err);
	size_t b = 0;

	if (r)
		return r;
	for (size_t s = 0; s < index.sections.n; s++) {
		const struct seam_xray_section *section =
			&index.sections.items[s];
		struct seam_line line = begin_line(&x, section->offset,
					seam_xray_header_record.name);

		seam_line_record(&line, &seam_xray_header_record,
				 &section->header);
		seam_line_end(&line);
		for (; b < index.blocks.n && index.blocks.items[b].section == s;
		     b++)
			if (section->header.log_type == SEAM_XRAY_BASIC)
				print_run(&x, &index.blocks.items[b]);
			else
				print_block(&x, &index.blocks.items[b]);
	}
	for (size_t i = 0; i < index.problems.n_kept; i++)
		print_problem(&x, &index.problems.items[i]);
	*n_damaged += x.n_damaged + index.problems.n;
	seam_xray_index_fini(&index);
	return 0;
}
