/* SPDX-License-Identifier: MIT */
/* jitdump_print.c - jitdumps and perf maps; see jitdump_print.h */
#include "wire/jit/jitdump_print.h"

#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>

#include "base/text.h"

struct jitdump_printer {
	struct seam_jitdump_reader reader;
	struct seam_bytes bytes;
	FILE *out;
	enum seam_line_form form;
	uint64_t n_damaged;
};

/* All fields but the last, whose bytes are printed decoded. */
static void put_fields(struct seam_line *line, const struct seam_record *table,
		       const void *in)
{
	struct seam_record head = *table;

	head.n_fields--;
	seam_line_record(line, &head, in);
}

/* -- records ------------------------------------------------------------ */

static void put_entry(struct seam_line *line,
		      const struct seam_jitdump_debug_entry *entry)
{
	if (seam_line_is_json(line)) {
		seam_line_open(line, NULL, '{');
		seam_line_record(line, &seam_jitdump_debug_entry_table, entry);
		seam_line_close(line, '}');
		return;
	}
	fprintf(line->out, "%#" PRIx64 " \"", entry->code_addr);
	seam_text_put(line->out, entry->name, SEAM_TEXT_TERMINAL);
	fprintf(line->out, "\":%" PRIu32 ":%" PRIu32, entry->line,
		entry->discrim);
}

/* Returns true for fewer entries than nr_entry, or damaged ones. */
static bool put_entries(struct seam_line *line, enum seam_endian endian,
			const struct seam_jitdump_debug_info *info)
{
	struct seam_jitdump_lines lines = seam_jitdump_lines_make(info,
								  endian);
	struct seam_jitdump_debug_entry entry;
	bool is_first = true;

	seam_line_open(line, "entries", '[');
	for (; seam_jitdump_line(&lines, &entry); is_first = false) {
		if (!is_first && !seam_line_is_json(line))
			fputs(", ", line->out);
		put_entry(line, &entry);
	}
	seam_line_close(line, ']');
	if (lines.is_cut)
		seam_line_mark(line, "cut", "CUT");
	if (lines.is_stepped)
		seam_line_mark(line, "stepped", "STEPPED");
	return lines.is_cut || lines.is_stepped;
}

/*
 * A pointer of an .eh_frame_hdr as encoded, without its base.
 * Source: LSB 5.0 Core, 10.5, "DWARF Exception Header Encoding".
 */
static void put_encoded(struct seam_line *line, const char *name,
			struct seam_cursor *c, uint8_t encoding)
{
	int64_t v = 0;

	if (encoding == DW_EH_PE_omit)
		return;
	switch (encoding & 0x0f) {
	case DW_EH_PE_uleb128: v = (int64_t)seam_cursor_uleb128(c); break;
	case DW_EH_PE_sleb128: v = seam_cursor_sleb128(c); break;
	case DW_EH_PE_udata2: v = seam_cursor_u16(c); break;
	case DW_EH_PE_sdata2: v = (int16_t)seam_cursor_u16(c); break;
	case DW_EH_PE_udata4: v = seam_cursor_u32(c); break;
	case DW_EH_PE_sdata4: v = (int32_t)seam_cursor_u32(c); break;
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: v = (int64_t)seam_cursor_u64(c); break;
	default: seam_cursor_fail(c, -EBADMSG, c->pos);
	}
	if (!c->error)
		seam_line_i64(line, name, v);
}

static void put_frame_header(struct seam_line *line, enum seam_endian endian,
			     const struct seam_jitdump_unwinding_info *info)
{
	static const char *const names[] = {
		"version", "eh_frame_ptr_enc", "fde_count_enc", "table_enc",
	};
	size_t pos, size = (size_t)info->eh_frame_hdr_size;
	struct seam_bytes frame = seam_jitdump_eh_frame(info, &pos);
	/* the header is first or last in the tables */
	struct seam_cursor c = seam_cursor_make(info->unwinding_data.data +
						(pos ? 0 : frame.size),
						size, endian);
	uint8_t values[SEAM_ARRAY_SIZE(names)];

	if (size < sizeof(values))
		return;
	seam_line_open(line, "eh_frame_hdr", '{');
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++) {
		values[i] = seam_cursor_u8(&c);
		seam_line_hex(line, names[i], values[i]);
	}
	put_encoded(line, "eh_frame_ptr", &c, values[1]);
	put_encoded(line, "fde_count", &c, values[2]);
	seam_line_close(line, '}');
}

static const char *type_name(char buf[32], uint32_t id)
{
	const char *name = id < SEAM_JITDUMP_UNKNOWN ?
			   seam_jitdump_id_name((enum seam_jitdump_id)id) :
			   NULL;

	snprintf(buf, 32, "TYPE_%" PRIu32, id);
	return name ? name : buf;
}

static void print_record(struct jitdump_printer *d,
			 const struct seam_jitdump_record *record)
{
	char name[32];
	struct seam_line line = seam_line_begin(d->out, d->form, record->pos,
				type_name(name, record->prefix.id), 0);
	const struct seam_record *table = seam_jitdump_table(record->id);

	switch (record->id) {
	case SEAM_JITDUMP_LOAD:
		seam_line_record(&line, table, &record->load);
		break;
	case SEAM_JITDUMP_DEBUG_INFO:
		put_fields(&line, table, &record->debug_info);
		d->n_damaged += put_entries(&line, d->reader.endian,
					    &record->debug_info);
		break;
	case SEAM_JITDUMP_UNWINDING_INFO:
		put_fields(&line, table, &record->unwinding_info);
		put_frame_header(&line, d->reader.endian,
				 &record->unwinding_info);
		seam_line_data(&line, "unwinding_data",
			       record->unwinding_info.unwinding_data);
		break;
	case SEAM_JITDUMP_UNKNOWN:
		seam_line_record(&line, table, &record->prefix);
		seam_line_data(&line, "data", (struct seam_bytes) {
			d->bytes.data + record->pos + SEAM_JITDUMP_PREFIX_BYTES,
			record->prefix.total_size - SEAM_JITDUMP_PREFIX_BYTES });
		break;
	default:
		seam_line_record(&line, table, &record->prefix);
		break;
	}
	seam_line_end(&line);
}

/*
 * Records that the reader skipped in [@pos, @end); it has checked their sizes.
 */
static void print_damaged(struct jitdump_printer *d, size_t pos, size_t end)
{
	while (pos < end) {
		struct seam_cursor c = seam_cursor_make(d->bytes.data + pos,
				end - pos, d->reader.endian);
		struct seam_jitdump_prefix prefix;
		struct seam_line line;
		char name[32];

		if (seam_wire_read(&c, &seam_jitdump_prefix_table, &prefix) ||
		    prefix.total_size < SEAM_JITDUMP_PREFIX_BYTES ||
		    prefix.total_size > end - pos)
			return;
		line = seam_line_begin(d->out, d->form, pos,
				       type_name(name, prefix.id), 0);
		seam_line_record(&line, &seam_jitdump_prefix_table, &prefix);
		seam_line_data(&line, "data", (struct seam_bytes) {
			c.base + c.pos, prefix.total_size - c.pos });
		seam_line_mark(&line, "damaged", "DAMAGED");
		seam_line_end(&line);
		d->n_damaged++;
		pos += prefix.total_size;
	}
}

static void print_notes(const struct jitdump_printer *d)
{
	for (int i = 0; i < SEAM_JITDUMP_N_NOTES; i++) {
		const char *text = seam_jitdump_note_text(
					(enum seam_jitdump_note)i);
		uint64_t n = d->reader.n_notes[i];

		if (n && d->form == SEAM_LINE_JSON)
			fprintf(d->out, "{\"type\":\"note\",\"text\":\"%s\","
				"\"count\":%" PRIu64 "}\n", text, n);
		else if (n)
			fprintf(d->out, "# %s: %" PRIu64 "\n", text, n);
	}
}

int seam_jitdump_print(FILE *out, struct seam_bytes bytes,
		       enum seam_line_form form, uint64_t *n_damaged,
		       struct seam_err *err)
{
	struct jitdump_printer d = { .bytes = bytes, .out = out, .form = form };
	struct seam_jitdump_record record;
	struct seam_line line;
	size_t pos, end;
	int r = seam_jitdump_begin(&d.reader, bytes, err);

	*n_damaged = 0;
	if (r)
		return r;
	line = seam_line_begin(out, form, 0, "header", 0);
	seam_line_record(&line, &seam_jitdump_header_table, &d.reader.header);
	seam_line_end(&line);
	pos = d.reader.cursor.pos;
	while (seam_jitdump_next(&d.reader, &record) && !ferror(out)) {
		print_damaged(&d, pos, record.pos);
		print_record(&d, &record);
		pos = d.reader.cursor.pos;
	}
	end = d.reader.cursor.size - d.reader.tail_bytes;
	print_damaged(&d, pos, end);
	print_notes(&d);
	*n_damaged = d.n_damaged;
	if (d.reader.tail_bytes)
		return seam_err_set(err, -ENODATA, "the record at byte %zu "
				    "does not fit in the %zu bytes that are "
				    "left", end, d.reader.tail_bytes);
	return 0;
}
