/* SPDX-License-Identifier: MIT */
/* jitdump.c - record tables, sense checks, the walk, dumps; see jitdump.h */
#include "wire/jit/jitdump.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/* doc/formats/jitdump.md has what the fields mean. */
#define F(record, member)						\
	SEAM_FIELD(struct seam_jitdump_##record, member, NULL)
#define PREFIX(record)							\
	F(record, id), F(record, total_size), F(record, timestamp)

const struct seam_record seam_jitdump_header_table = SEAM_RECORD(
	"header", NULL, F(header, magic), F(header, version),
	F(header, total_size), F(header, elf_mach), F(header, pad1),
	F(header, pid), F(header, timestamp), F(header, flags));

const struct seam_record seam_jitdump_prefix_table = SEAM_RECORD(
	"record prefix", NULL, PREFIX(prefix));

const struct seam_record seam_jitdump_load_table = SEAM_RECORD(
	"JIT_CODE_LOAD", NULL, PREFIX(load), F(load, pid), F(load, tid),
	F(load, vma), F(load, code_addr), F(load, code_size),
	F(load, code_index), F(load, name), F(load, code));

const struct seam_record seam_jitdump_move_table = SEAM_RECORD(
	"JIT_CODE_MOVE", NULL, PREFIX(move), F(move, pid), F(move, tid),
	F(move, vma), F(move, old_code_addr), F(move, new_code_addr),
	F(move, code_size), F(move, code_index));

const struct seam_record seam_jitdump_debug_info_table = SEAM_RECORD(
	"JIT_CODE_DEBUG_INFO", NULL, PREFIX(debug_info),
	F(debug_info, code_addr), F(debug_info, nr_entry),
	F(debug_info, entries));

const struct seam_record seam_jitdump_debug_entry_table = SEAM_RECORD(
	"debug entry", NULL, F(debug_entry, code_addr), F(debug_entry, line),
	F(debug_entry, discrim), F(debug_entry, name));

const struct seam_record seam_jitdump_unwinding_info_table = SEAM_RECORD(
	"JIT_CODE_UNWINDING_INFO", NULL, PREFIX(unwinding_info),
	F(unwinding_info, unwind_data_size),
	F(unwinding_info, eh_frame_hdr_size), F(unwinding_info, mapped_size),
	F(unwinding_info, unwinding_data));

static const struct {
	const char *name;
	const struct seam_record *table;
} ids[SEAM_JITDUMP_N_IDS] = {
	[SEAM_JITDUMP_LOAD] = { "JIT_CODE_LOAD", &seam_jitdump_load_table },
	[SEAM_JITDUMP_MOVE] = { "JIT_CODE_MOVE", &seam_jitdump_move_table },
	[SEAM_JITDUMP_DEBUG_INFO] = {
		"JIT_CODE_DEBUG_INFO", &seam_jitdump_debug_info_table },
	[SEAM_JITDUMP_CLOSE] = { "JIT_CODE_CLOSE", &seam_jitdump_prefix_table },
	[SEAM_JITDUMP_UNWINDING_INFO] = {
		"JIT_CODE_UNWINDING_INFO",
		&seam_jitdump_unwinding_info_table },
	[SEAM_JITDUMP_UNKNOWN] = { NULL, &seam_jitdump_prefix_table },
};

static const char *const notes[SEAM_JITDUMP_N_NOTES] = {
	[SEAM_JITDUMP_ODD_VERSION] = "version is not 1",
	[SEAM_JITDUMP_ODD_HEADER_SIZE] = "header size is not 40",
	[SEAM_JITDUMP_ODD_FLAGS] = "unknown header flags",
	[SEAM_JITDUMP_NO_MACHINE] = "header names no machine",
	[SEAM_JITDUMP_ODD_ADDRESS] = "loads whose two addresses differ",
	[SEAM_JITDUMP_NO_NAME] = "loads without a name",
	[SEAM_JITDUMP_UNKNOWN_RECORD] = "records of an unknown type",
	[SEAM_JITDUMP_BAD_RECORD] = "records that contradict themselves",
	[SEAM_JITDUMP_BAD_TAIL] = "last record cut off",
};

const char *seam_jitdump_note_text(enum seam_jitdump_note note)
{
	return notes[note];
}

const struct seam_record *seam_jitdump_table(enum seam_jitdump_id id)
{
	return ids[id].table;
}

static bool has_magic(struct seam_bytes bytes, enum seam_endian endian)
{
	struct seam_cursor c = seam_cursor_over(bytes, endian);

	return seam_cursor_u32(&c) == SEAM_JITDUMP_MAGIC;
}

int seam_jitdump_begin(struct seam_jitdump_reader *reader,
		       struct seam_bytes bytes, struct seam_err *err)
{
	const struct seam_jitdump_header *h = &reader->header;
	struct seam_cursor *c = &reader->cursor;

	*reader = (struct seam_jitdump_reader) {
		.endian = has_magic(bytes, SEAM_BIG) ? SEAM_BIG : SEAM_LITTLE,
	};
	*c = seam_cursor_over(bytes, reader->endian);
	if (bytes.size >= 4 && !has_magic(bytes, reader->endian))
		return seam_err_set(err, -EBADMSG,
				    "not a JITDUMP file: no magic number");
	if (seam_wire_read(c, &seam_jitdump_header_table, &reader->header))
		return seam_err_set(err, -ENODATA, "JITDUMP header cut off at "
				    "byte %zu of %d", bytes.size,
				    SEAM_JITDUMP_HEADER_BYTES);
	if (h->version > 2)
		return seam_err_set(err, -ENOTSUP, "JITDUMP version %" PRIu32,
				    h->version);
	reader->n_notes[SEAM_JITDUMP_ODD_VERSION] =
		h->version != SEAM_JITDUMP_VERSION;
	reader->n_notes[SEAM_JITDUMP_ODD_HEADER_SIZE] =
		h->total_size != SEAM_JITDUMP_HEADER_BYTES;
	reader->n_notes[SEAM_JITDUMP_ODD_FLAGS] =
		(h->flags & ~(uint64_t)SEAM_JITDUMP_ARCH_TIMESTAMP) != 0;
	reader->n_notes[SEAM_JITDUMP_NO_MACHINE] = !h->elf_mach;

	/* A longer header is a later one; an impossible size is no size. */
	if (h->total_size > SEAM_JITDUMP_HEADER_BYTES &&
	    h->total_size <= bytes.size)
		seam_cursor_skip(c, h->total_size - SEAM_JITDUMP_HEADER_BYTES);
	return 0;
}

/*
 * The table reads the name up to its NUL, and the rest as code.  Between the
 * two there may be padding; a name without its NUL was read into the code.
 */
static bool check_load(struct seam_jitdump_reader *reader,
		       struct seam_jitdump_load *load, struct seam_cursor *body)
{
	const uint8_t *end = body->base + body->size;
	size_t fixed = 56, code_size = (size_t)load->code_size;

	if (body->size < fixed || load->code_size > body->size - fixed)
		return false;
	if (body->error ||
	    (const uint8_t *)load->name + strlen(load->name) >=
	    end - code_size) {
		load->name = "";
		reader->n_notes[SEAM_JITDUMP_NO_NAME]++;
	}
	load->code = (struct seam_bytes) { end - code_size, code_size };
	if (load->vma != load->code_addr)
		reader->n_notes[SEAM_JITDUMP_ODD_ADDRESS]++;
	return true;
}

/* Read the record that is @body.  False when it contradicts itself. */
static bool read_record(struct seam_jitdump_reader *reader,
			struct seam_cursor *body,
			struct seam_jitdump_record *record)
{
	int r = seam_wire_read(body, ids[record->id].table, &record->prefix);
	struct seam_jitdump_unwinding_info *info = &record->unwinding_info;

	if (record->id == SEAM_JITDUMP_LOAD)
		return check_load(reader, &record->load, body);
	if (r)
		return false;
	if (record->id == SEAM_JITDUMP_UNWINDING_INFO) {
		if (info->unwind_data_size > info->unwinding_data.size ||
		    info->eh_frame_hdr_size > info->unwind_data_size)
			return false;
		/* V8 pads the record; the tables end before. */
		info->unwinding_data.size = (size_t)info->unwind_data_size;
	}
	if (record->id == SEAM_JITDUMP_UNKNOWN)
		reader->n_notes[SEAM_JITDUMP_UNKNOWN_RECORD]++;
	return true;
}

/*
 * Cut the next record off.  False at the end, which is also where a size is
 * impossible: the records after it cannot be found.
 */
static bool split_record(struct seam_jitdump_reader *reader,
			 struct seam_jitdump_record *record,
			 struct seam_cursor *body)
{
	struct seam_cursor *c = &reader->cursor;
	struct seam_cursor peek = *c;
	uint32_t id = seam_cursor_u32(&peek);
	uint32_t size = seam_cursor_u32(&peek);

	record->pos = c->pos;
	record->id = id < SEAM_JITDUMP_UNKNOWN ? (enum seam_jitdump_id)id :
		     SEAM_JITDUMP_UNKNOWN;
	if (!peek.error && size >= SEAM_JITDUMP_PREFIX_BYTES &&
	    size <= seam_cursor_left(c)) {
		*body = seam_cursor_split(c, size);
		return true;
	}
	reader->tail_bytes = seam_cursor_left(c);
	if (reader->tail_bytes)
		reader->n_notes[SEAM_JITDUMP_BAD_TAIL]++;
	seam_cursor_fail(c, -ENODATA, c->pos);
	return false;
}

bool seam_jitdump_next(struct seam_jitdump_reader *reader,
		       struct seam_jitdump_record *record)
{
	struct seam_cursor body;

	while (!reader->cursor.error && split_record(reader, record, &body)) {
		if (read_record(reader, &body, record)) {
			reader->n_records[record->id]++;
			return true;
		}
		reader->n_notes[SEAM_JITDUMP_BAD_RECORD]++;
	}
	return false;
}

/* Entries of @step bytes: each must end in a NUL and rise in its address. */
static bool steps_fit(struct seam_cursor c, uint64_t n, size_t step)
{
	uint64_t before = 0;

	for (uint64_t i = 0; i < n; i++) {
		struct seam_cursor entry = seam_cursor_split(&c, step);
		uint64_t addr = seam_cursor_u64(&entry);

		if (c.error || addr < before || entry.base[step - 1])
			return false;
		before = addr;
	}
	return true;
}

/* Records are padded to 8 bytes: up to 7 after the entries. */
enum { MAX_PADDING = 7, ENTRY_BYTES = 16 };

static size_t find_step(const struct seam_jitdump_debug_info *info,
			enum seam_endian endian)
{
	size_t size = info->entries.size;
	uint64_t n = info->nr_entry;

	if (!n || n > size / (ENTRY_BYTES + 1))
		return 0;
	for (size_t pad = 0; pad <= MAX_PADDING && pad < size; pad++) {
		size_t step = (size - pad) / (size_t)n;

		if ((size - pad) % n == 0 && step > ENTRY_BYTES &&
		    steps_fit(seam_cursor_make(info->entries.data, size,
					       endian), n, step))
			return step;
	}
	return 0;
}

struct seam_jitdump_lines
seam_jitdump_lines_make(const struct seam_jitdump_debug_info *info,
			enum seam_endian endian)
{
	struct seam_jitdump_lines lines = {
		.cursor = seam_cursor_over(info->entries, endian),
		.left = info->nr_entry,
		.name = "",
	};
	struct seam_jitdump_lines walk = lines;
	struct seam_jitdump_debug_entry entry;

	while (seam_jitdump_line(&walk, &entry))
		;
	if (seam_cursor_left(&walk.cursor) > MAX_PADDING || walk.is_cut) {
		lines.step = find_step(info, endian);
		lines.is_stepped = lines.step != 0;
	}
	return lines;
}

bool seam_jitdump_line(struct seam_jitdump_lines *lines,
		       struct seam_jitdump_debug_entry *entry)
{
	struct seam_cursor one = lines->cursor;

	if (!lines->left)
		return false;
	if (lines->step)
		one = seam_cursor_split(&lines->cursor, lines->step);
	if (seam_wire_read(&one, &seam_jitdump_debug_entry_table, entry)) {
		lines->is_cut = true;
		lines->left = 0;
		return false;
	}
	if (!lines->step)
		lines->cursor = one;
	lines->left--;
	if (strcmp(entry->name, "\xff") == 0)
		entry->name = lines->name;
	lines->name = entry->name;
	return true;
}

bool seam_jitdump_is(struct seam_bytes bytes)
{
	return bytes.size >= 4 && (memcmp(bytes.data, "JiTD", 4) == 0 ||
				   memcmp(bytes.data, "DTiJ", 4) == 0);
}

/* A header begins with its version, 1, and a kind of pointers, not 0. */
static bool is_frame_header(struct seam_bytes data)
{
	return data.size >= 4 && data.data[0] == 1 && data.data[1];
}

struct seam_bytes
seam_jitdump_eh_frame(const struct seam_jitdump_unwinding_info *info,
		      size_t *pos)
{
	struct seam_bytes all = info->unwinding_data;
	size_t header = (size_t)info->eh_frame_hdr_size;
	size_t frame = all.size - header;
	bool is_last = is_frame_header((struct seam_bytes) { all.data + frame,
							     header });

	*pos = !is_last && is_frame_header((struct seam_bytes) { all.data,
								 header }) ?
	       header : 0;
	return (struct seam_bytes) { all.data + *pos, frame };
}

/* ---- records on lines ---- */

struct jitdump_printer {
	struct seam_jitdump_reader reader;
	struct seam_bytes bytes;
	FILE *out;
	enum seam_line_form form;
	uint64_t n_damaged;
};

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

/*
 * All fields but the last, whose bytes are printed decoded.  Returns true for
 * fewer entries than nr_entry, or damaged ones.
 */
static bool put_debug_info(struct seam_line *line, enum seam_endian endian,
			   const struct seam_jitdump_debug_info *info)
{
	struct seam_record head = seam_jitdump_debug_info_table;
	struct seam_jitdump_lines lines = seam_jitdump_lines_make(info,
								  endian);
	struct seam_jitdump_debug_entry entry;
	bool is_first = true;

	head.n_fields--;
	seam_line_record(line, &head, info);
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

static const char *type_name(char buf[32], uint32_t id)
{
	snprintf(buf, 32, "TYPE_%" PRIu32, id);
	return id < SEAM_JITDUMP_UNKNOWN ? ids[id].name : buf;
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
		d->n_damaged += put_debug_info(&line, d->reader.endian,
					       &record->debug_info);
		break;
	case SEAM_JITDUMP_UNWINDING_INFO:
		seam_line_record(&line, table, &record->unwinding_info);
		break;
	case SEAM_JITDUMP_UNKNOWN:
		seam_line_record(&line, table, &record->prefix);
		seam_line_data(&line, "data", (struct seam_bytes) {
			d->bytes.data + record->pos + SEAM_JITDUMP_PREFIX_BYTES,
			record->prefix.total_size -
			SEAM_JITDUMP_PREFIX_BYTES });
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
