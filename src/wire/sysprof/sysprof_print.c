/* SPDX-License-Identifier: MIT */
/* sysprof_print.c - items on lines; see sysprof_print.h */
#include "wire/sysprof/sysprof_print.h"

#include <errno.h>

enum { TYPE_WIDTH = 8 };

static const char *type_name(const struct seam_sysprof_item *item)
{
	static const char *const names[] = {
		[SEAM_SYSPROF_SYMTAB] = "ljs",
		[SEAM_SYSPROF_SYMBOL_LFUNC] = "lfunc",
		[SEAM_SYSPROF_SYMBOL_CFUNC] = "cfunc",
		[SEAM_SYSPROF_SYMBOL_TRACE] = "trace",
		[SEAM_SYSPROF_SYMTAB_END] = "final",
		[SEAM_SYSPROF_PROFILE] = "ljp",
		[SEAM_SYSPROF_SAMPLE] = "sample",
		[SEAM_SYSPROF_END] = "epilogue",
	};

	return names[item->kind];
}

static void put_frame(struct seam_line *line,
		      const struct seam_sysprof_frame *frame)
{
	seam_line_open(line, NULL, '{');
	if (frame->kind == SEAM_SYSPROF_LFUNC) {
		seam_line_hex(line, "proto", frame->value);
		seam_line_u64(line, "line", frame->line);
	} else if (frame->kind == SEAM_SYSPROF_CFUNC) {
		seam_line_hex(line, "cfunc", frame->value);
	} else {
		seam_line_u64(line, "ffid", frame->value);
	}
	seam_line_close(line, '}');
}

static void put_sample(struct seam_line *line,
		       const struct seam_sysprof_item *item)
{
	seam_line_string(line, "vmstate", seam_vmstate_name(item->vmstate));
	if (item->vmstate == SEAM_VMSTATE_TRACE) {
		seam_line_record(line, &seam_sysprof_trace_sample_table,
				 &item->trace);
		return;
	}
	seam_line_open(line, "lua", '[');
	for (size_t i = 0; i < item->n_lua; i++)
		put_frame(line, &item->lua[i]);
	seam_line_close(line, ']');
	seam_line_open(line, "host", '[');
	for (size_t i = 0; i < item->n_host; i++)
		seam_line_hex(line, NULL, item->host[i]);
	seam_line_close(line, ']');
}

static void put_fields(struct seam_line *line,
		       const struct seam_sysprof_item *item)
{
	switch (item->kind) {
	case SEAM_SYSPROF_SYMTAB:
	case SEAM_SYSPROF_PROFILE:
		seam_line_u64(line, "version", item->version);
		break;
	case SEAM_SYSPROF_SYMBOL_LFUNC:
		seam_line_record(line, &seam_sysprof_lfunc_table, &item->lfunc);
		break;
	case SEAM_SYSPROF_SYMBOL_CFUNC:
		seam_line_record(line, &seam_sysprof_cfunc_table, &item->cfunc);
		break;
	case SEAM_SYSPROF_SYMBOL_TRACE:
		seam_line_record(line, &seam_sysprof_trace_table, &item->trace);
		break;
	case SEAM_SYSPROF_SAMPLE:
		put_sample(line, item);
		break;
	case SEAM_SYSPROF_SYMTAB_END:
	case SEAM_SYSPROF_END:
		break;
	}
}

int seam_sysprof_print(FILE *out, struct seam_bytes bytes,
		       enum seam_line_form form, struct seam_err *err)
{
	struct seam_sysprof_reader reader;
	struct seam_sysprof_item item;
	size_t end;
	int r;

	seam_sysprof_begin(&reader, bytes);
	while ((r = seam_sysprof_next(&reader, &item, err)) > 0 &&
	       !ferror(out)) {
		struct seam_line line = seam_line_begin(out, form, item.offset,
						type_name(&item), TYPE_WIDTH);

		put_fields(&line, &item);
		seam_line_end(&line);
	}
	end = reader.cursor.pos;
	seam_sysprof_fini(&reader);
	if (r == 0 && end < bytes.size)
		return seam_err_set(err, -EBADMSG, "%zu bytes after the "
				    "epilogue, from byte %zu on",
				    bytes.size - end, end);
	return r < 0 ? r : 0;
}
