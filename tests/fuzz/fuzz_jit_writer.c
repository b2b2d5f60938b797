/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jit_writer.c - bytes as a piece of code with name, lines and tables
 *
 * Oracle: what the writer lays out by hand, the reader reads as what went in,
 * in exactly the bytes that the writer had asked for; also as a child lays the
 * records out again, at another address.  The bytes as they are, which are no
 * records, are copied within their size.
 */
#include <seam/jitdump.h>

#include "fuzz.h"
#include "traced/jit/writer.h"
#include "wire/jit/jitdump.h"

enum { MAX_LINES = 8 };

/* A string of the input, or what is left of it. */
static char *take_text(struct seam_cursor *c)
{
	size_t n = seam_cursor_u8(c) % 40;
	const uint8_t *p;

	n = n < seam_cursor_left(c) ? n : seam_cursor_left(c);
	p = seam_cursor_bytes(c, n);
	return p ? strndup((const char *)p, n) : strdup("");
}

static void check_lines(const struct seam_jitdump_record *record,
			const struct seam_jitdump_code *code)
{
	struct seam_jitdump_lines lines =
		seam_jitdump_lines_make(&record->debug_info, SEAM_LITTLE);
	struct seam_jitdump_debug_entry entry;
	const char *file = "";

	for (size_t i = 0; i < code->n_lines; i++) {
		file = code->lines[i].file ? code->lines[i].file : file;
		must(seam_jitdump_line(&lines, &entry));
		must(entry.code_addr == code->addr + code->lines[i].offset);
		must(entry.line == code->lines[i].line);
		/* The one name that stands for another cannot be told. */
		must(!strcmp(file, "\xff") || !strcmp(entry.name, file));
	}
	must(!seam_jitdump_line(&lines, &entry) && !lines.is_cut);
}

static void check(struct seam_jitdump_reader *reader,
		  const struct seam_jitdump_code *code)
{
	struct seam_jitdump_record record;

	if (code->n_lines) {
		must(seam_jitdump_next(reader, &record));
		must(record.id == SEAM_JITDUMP_DEBUG_INFO);
		check_lines(&record, code);
	}
	if (code->unwinding) {
		must(seam_jitdump_next(reader, &record));
		must(record.id == SEAM_JITDUMP_UNWINDING_INFO);
		must(record.unwinding_info.unwinding_data.size ==
		     code->unwinding->eh_frame_size +
		     code->unwinding->eh_frame_hdr_size);
	}
	must(seam_jitdump_next(reader, &record));
	must(record.id == SEAM_JITDUMP_LOAD && record.load.code_index == 5);
	must(!strcmp(record.load.name, code->name));
	must(record.load.code.size == code->size);
	must(!memcmp(record.load.code.data, code->bytes, code->size));
	must(!seam_jitdump_next(reader, &record) && !reader->tail_bytes);
}

/* @size bytes of records once more, at @addr; the caller frees them. */
static uint8_t *again(const struct seam_jitdump *dump, const uint8_t *bytes,
		      size_t size, uint64_t addr)
{
	uint8_t *copy = malloc(size);

	must(seam_writer_put_again(dump, copy, bytes, size, addr) == size);
	return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct seam_writer_own own;
	static struct seam_jitdump dump = { .own = &own };
	struct seam_cursor c = seam_cursor_make(data, size, SEAM_LITTLE);
	struct seam_jitdump_line lines[MAX_LINES];
	struct seam_jitdump_unwinding unwinding = {
		.eh_frame = data, .eh_frame_hdr = data,
		.eh_frame_size = size / 2, .eh_frame_hdr_size = size / 3,
	};
	struct seam_jitdump_code code = { .bytes = data, .size = size,
					  .lines = lines };
	struct seam_jitdump_reader reader;
	char *texts[MAX_LINES + 1];
	uint8_t *buf, *copy;
	size_t most, n;

	code.addr = seam_cursor_u64(&c);
	code.name = texts[0] = take_text(&c);
	code.unwinding = seam_cursor_u8(&c) & 1 ? &unwinding : NULL;
	code.n_lines = seam_cursor_u8(&c) % (MAX_LINES + 1);
	for (size_t i = 0; i < code.n_lines; i++) {
		texts[i + 1] = take_text(&c);
		lines[i] = (struct seam_jitdump_line) {
			.offset = seam_cursor_u16(&c),
			.line = seam_cursor_u32(&c),
			.file = *texts[i + 1] ? texts[i + 1] : NULL,
		};
	}
	most = seam_writer_code_bytes(&dump, &code);
	buf = malloc(most + SEAM_JITDUMP_HEADER_BYTES);
	n = seam_writer_put_header(&dump, buf);
	must(seam_writer_put_code(&dump, buf + n, &code, 5, code.addr) == most);
	must(!seam_jitdump_begin(&reader, (struct seam_bytes) {
				 buf, n + most }, NULL));
	check(&reader, &code);
	code.addr += size;
	copy = again(&dump, buf + n, most, code.addr);
	memcpy(buf + n, copy, most);
	free(copy);
	must(!seam_jitdump_begin(&reader, (struct seam_bytes) {
				 buf, n + most }, NULL));
	check(&reader, &code);
	free(buf);
	free(again(&dump, data, size, 0x1000));
	for (size_t i = 0; i <= code.n_lines; i++)
		free(texts[i]);
	return 0;
}
