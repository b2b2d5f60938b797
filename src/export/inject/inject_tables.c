/* SPDX-License-Identifier: MIT */
/* inject_tables.c - DWARF lines and frames; see inject_tables.h */
#include "export/inject/inject_tables.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/strings.h"
#include "wire/wire.h"

/* ---- buffers ---- */

void seam_inject_put(struct seam_inject_buffer *b, const void *bytes,
		     size_t size)
{
	b->is_out_of_memory = b->is_out_of_memory ||
			      !SEAM_ARRAY_EXTEND(&b->data, bytes, size);
}

void seam_inject_u8(struct seam_inject_buffer *b, uint8_t v)
{
	seam_inject_put(b, &v, sizeof(v));
}

void seam_inject_u16(struct seam_inject_buffer *b, uint16_t v)
{
	seam_inject_put(b, &v, sizeof(v));
}

void seam_inject_u32(struct seam_inject_buffer *b, uint32_t v)
{
	seam_inject_put(b, &v, sizeof(v));
}

void seam_inject_u64(struct seam_inject_buffer *b, uint64_t v)
{
	seam_inject_put(b, &v, sizeof(v));
}

void seam_inject_string(struct seam_inject_buffer *b, const char *s)
{
	seam_inject_put(b, s, strlen(s) + 1);
}

void seam_inject_align(struct seam_inject_buffer *b, size_t align)
{
	while (!b->is_out_of_memory && b->data.n % align)
		seam_inject_u8(b, 0);
}

static void put_uleb(struct seam_inject_buffer *b, uint64_t v)
{
	uint8_t bytes[SEAM_ULEB_BYTES];

	seam_inject_put(b, bytes, seam_wire_put_uleb(bytes, v));
}

static void put_sleb(struct seam_inject_buffer *b, int64_t v)
{
	for (; v < -64 || v >= 64; v = v >= 0 ? v / 128 : -((127 - v) / 128))
		seam_inject_u8(b, (uint8_t)(((uint64_t)v & 0x7f) | 0x80));
	seam_inject_u8(b, (uint8_t)((uint64_t)v & 0x7f));
}

/* Reserve a 4-byte length; end_length() fills it in. */
static size_t begin_length(struct seam_inject_buffer *b)
{
	seam_inject_u32(b, 0);
	return b->data.n;
}

static void end_length(struct seam_inject_buffer *b, size_t begin)
{
	uint32_t length = (uint32_t)(b->data.n - begin);

	if (!b->is_out_of_memory)
		memcpy(b->data.items + begin - 4, &length, sizeof(length));
}

/* ---- lines ---- */

/* One compile unit that covers all code and has a line program. */
static void put_unit(struct seam_inject_buffer *abbrev,
		     struct seam_inject_buffer *info, uint64_t start,
		     uint64_t end)
{
	static const uint8_t declaration[] = {
		1, DW_TAG_compile_unit, DW_CHILDREN_no,
		DW_AT_name, DW_FORM_string, DW_AT_stmt_list, DW_FORM_data4,
		DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_addr,
		0, 0, 0,
	};
	size_t begin = begin_length(info);

	seam_inject_put(abbrev, declaration, sizeof(declaration));
	seam_inject_u16(info, 2);		/* DWARF version */
	seam_inject_u32(info, 0);		/* of .debug_abbrev */
	seam_inject_u8(info, sizeof(uint64_t));	/* bytes of an address */
	seam_inject_u8(info, 1);		/* abbreviation code */
	seam_inject_string(info, "jit");
	seam_inject_u32(info, 0);		/* of .debug_line */
	seam_inject_u64(info, start);
	seam_inject_u64(info, end);
	end_length(info, begin);
}

/* File numbers are the string ids, from 1. */
static void put_line_header(struct seam_inject_buffer *line,
			    const struct seam_strings *files)
{
	static const uint8_t operands[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1 };
	size_t begin;

	seam_inject_u16(line, 2);		/* DWARF version */
	begin = begin_length(line);
	seam_inject_u8(line, 1);	/* bytes of the shortest instruction */
	seam_inject_u8(line, 1);	/* rows are statements */
	seam_inject_u8(line, (uint8_t)-5);	/* line_base and line_range: */
	seam_inject_u8(line, 14);		/* no special opcode is used */
	seam_inject_u8(line, sizeof(operands) + 1);
	seam_inject_put(line, operands, sizeof(operands));
	seam_inject_u8(line, 0);		/* no folders */
	for (uint32_t i = 1; i < files->texts.n; i++) {
		seam_inject_string(line, seam_strings_get(files, i));
		seam_inject_put(line, "\0\0\0", 3);	/* folder, time, size */
	}
	seam_inject_u8(line, 0);
	end_length(line, begin);
}

static void put_row(struct seam_inject_buffer *line, uint64_t advance,
		    uint32_t file, const struct seam_inject_line *row,
		    int64_t line_advance)
{
	seam_inject_u8(line, DW_LNS_advance_pc);
	put_uleb(line, advance);
	seam_inject_u8(line, DW_LNS_set_file);
	put_uleb(line, file);
	seam_inject_u8(line, DW_LNS_set_column);
	put_uleb(line, row->column);
	seam_inject_u8(line, DW_LNS_advance_line);
	put_sleb(line, line_advance);
	seam_inject_u8(line, DW_LNS_copy);
}

/* The rows of one function, as a sequence. */
static void put_sequence(struct seam_inject_buffer *line,
			 struct seam_strings *files,
			 const struct seam_inject_function *f)
{
	uint64_t pc = 0;
	int64_t at_line = 1;

	seam_inject_put(line, "\0\x09\x02", 3);	/* DW_LNE_set_address */
	seam_inject_u64(line, f->file_offset);
	for (size_t i = 0; i < f->n_lines; i++) {
		const struct seam_inject_line *row = &f->lines[i];

		if (row->offset < pc || row->offset >= f->size)
			continue;
		put_row(line, row->offset - pc,
			seam_strings_put(files, row->file), row,
			(int64_t)row->line - at_line);
		pc = row->offset;
		at_line = row->line;
	}
	seam_inject_u8(line, DW_LNS_advance_pc);
	put_uleb(line, f->size - pc);
	seam_inject_put(line, "\0\x01\x01", 3);	/* DW_LNE_end_sequence */
}

/* .debug_aranges: all code is in the one unit. */
static void put_ranges(struct seam_inject_buffer *ranges, uint64_t start,
		       uint64_t end)
{
	size_t begin = begin_length(ranges);

	seam_inject_u16(ranges, 2);		/* version */
	seam_inject_u32(ranges, 0);		/* of .debug_info */
	seam_inject_u8(ranges, sizeof(uint64_t));
	seam_inject_u8(ranges, 0);		/* no segments */
	seam_inject_u32(ranges, 0);		/* padding to 16 */
	seam_inject_u64(ranges, start);
	seam_inject_u64(ranges, end - start);
	seam_inject_u64(ranges, 0);
	seam_inject_u64(ranges, 0);
	end_length(ranges, begin);
}

void seam_inject_debug(struct seam_inject_buffer *abbrev,
		       struct seam_inject_buffer *info,
		       struct seam_inject_buffer *ranges,
		       struct seam_inject_buffer *line,
		       const struct seam_inject_function *functions, size_t n,
		       uint64_t start, uint64_t end)
{
	struct seam_strings files = { 0 };
	size_t begin;

	/* Names first: the header lists them. */
	for (size_t i = 0; i < n; i++)
		for (size_t l = 0; l < functions[i].n_lines; l++)
			if (seam_strings_put(&files, functions[i].lines[l].file)
			    == SEAM_NONE)
				line->is_out_of_memory = true;
	put_unit(abbrev, info, start, end);
	put_ranges(ranges, start, end);
	begin = begin_length(line);
	put_line_header(line, &files);
	for (size_t i = 0; i < n; i++)
		if (functions[i].n_lines)
			put_sequence(line, &files, &functions[i]);
	end_length(line, begin);
	seam_strings_fini(&files);
}

/* ---- frames ---- */

enum { RELATIVE = DW_EH_PE_pcrel | DW_EH_PE_sdata4 };

/* Whether the FDEs of a CIE have relative addresses of 4 bytes. */
static bool is_relative(struct seam_cursor cie)
{
	uint8_t version = seam_cursor_u8(&cie);
	const char *augmentation = seam_cursor_cstr(&cie);

	if (cie.error || *augmentation != 'z')
		return false;
	seam_cursor_uleb128(&cie);	/* alignment of code, of data */
	seam_cursor_sleb128(&cie);
	if (version == 1)
		seam_cursor_u8(&cie);	/* register of the return address */
	else
		seam_cursor_uleb128(&cie);
	seam_cursor_uleb128(&cie);	/* bytes of augmentation data */
	for (const char *a = augmentation + 1; *a && !cie.error; a++) {
		uint8_t encoding = *a == 'S' || *a == 'B' ? 0 :
				   seam_cursor_u8(&cie);

		if (*a == 'R')
			return !cie.error && encoding == RELATIVE;
		if (*a != 'L' && *a != 'S' && *a != 'B')
			return false;
	}
	return false;
}

/* One table, and its copy in the file. */
struct frames {
	const struct seam_inject_function *function;
	struct seam_inject_buffer *frame;	/* the section */
	struct seam_inject_fdes *fdes;
	uint8_t *copy;			/* in the section */
	uint64_t addr;			/* of the copy, in the file */
};

/*
 * Relocate the FDE at @entry, with its address at @field of the table, to the
 * code in the file.  False when it covers other code than the function's.
 */
static bool move_fde(struct frames *f, struct seam_cursor body, size_t entry,
		     size_t field)
{
	int64_t was = (int32_t)seam_cursor_u32(&body);
	uint32_t size = seam_cursor_u32(&body);
	/* Offset in the code; the field was at eh_frame_offset + field. */
	int64_t in_code = (int64_t)(f->function->eh_frame_offset +
				    field) + was;
	int64_t target = (int64_t)f->function->file_offset + in_code;
	int64_t relative = target - (int64_t)(f->addr + field);
	int32_t narrow = (int32_t)relative;
	struct seam_inject_fde fde = { (uint64_t)target, f->addr + entry };

	if (body.error || in_code < 0 ||
	    (uint64_t)in_code + size > f->function->size || narrow != relative)
		return false;
	if (!SEAM_ARRAY_ADD(&f->fdes->list, fde))
		f->frame->is_out_of_memory = true;
	memcpy(f->copy + field, &narrow, sizeof(narrow));
	return true;
}

/*
 * Relocate all FDEs of one function's table.  False when it has an unknown
 * entry, and then *@size is not set.  Else *@size is the table's size without
 * a terminator.
 */
static bool move_table(struct frames *f, size_t *size)
{
	struct seam_bytes table = f->function->eh_frame;
	struct seam_cursor c = seam_cursor_over(table, SEAM_NATIVE);
	bool has_relative = false;

	for (*size = 0; seam_cursor_left(&c) >= 4; *size = c.pos) {
		size_t entry = c.pos;
		uint32_t length = seam_cursor_u32(&c);
		struct seam_cursor body;
		uint32_t id;

		if (!length)
			return true;
		body = seam_cursor_split(&c, length);
		id = seam_cursor_u32(&body);
		if (body.error)
			return false;
		if (!id)
			has_relative = is_relative(body);
		else if (!has_relative || !move_fde(f, body, entry, entry + 8))
			return false;
	}
	return true;
}

void seam_inject_frames(struct seam_inject_buffer *frame,
			struct seam_inject_fdes *fdes,
			const struct seam_inject_function *functions, size_t n,
			uint64_t frame_addr, uint64_t *n_bad)
{
	for (size_t i = 0; i < n; i++) {
		struct frames f = {
			.function = &functions[i], .frame = frame,
			.fdes = fdes,
			.addr = frame_addr + frame->data.n,
		};
		size_t start = frame->data.n, n_fdes = fdes->list.n, size;

		if (!functions[i].eh_frame.size)
			continue;
		seam_inject_put(frame, functions[i].eh_frame.data,
				functions[i].eh_frame.size);
		if (frame->is_out_of_memory)
			return;
		f.copy = frame->data.items + start;
		if (move_table(&f, &size)) {
			frame->data.n = start + size;
			seam_inject_align(frame, 4);
			continue;
		}
		/* Remove the table and its FDEs. */
		frame->data.n = start;
		fdes->list.n = n_fdes;
		++*n_bad;
	}
	seam_inject_u32(frame, 0);		/* terminator */
}

static int compare_fdes(const void *a, const void *b)
{
	const struct seam_inject_fde *x = a, *y = b;

	return SEAM_COMPARE(x->code_addr, y->code_addr);
}

void seam_inject_frame_header(struct seam_inject_buffer *header,
			      struct seam_inject_fdes *fdes,
			      uint64_t header_addr, uint64_t frame_addr)
{
	size_t n = fdes->list.n;

	SEAM_ARRAY_SORT(&fdes->list, compare_fdes);
	seam_inject_u8(header, 1);		/* version */
	seam_inject_u8(header, RELATIVE);	/* encoding of eh_frame_ptr, */
	seam_inject_u8(header, DW_EH_PE_udata4);	/* of fde_count, */
	/* of the table */
	seam_inject_u8(header, DW_EH_PE_datarel | DW_EH_PE_sdata4);
	seam_inject_u32(header, (uint32_t)(frame_addr - (header_addr + 4)));
	seam_inject_u32(header, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		const struct seam_inject_fde *fde = &fdes->list.items[i];

		seam_inject_u32(header,
				(uint32_t)(fde->code_addr - header_addr));
		seam_inject_u32(header,
				(uint32_t)(fde->fde_addr - header_addr));
	}
}
